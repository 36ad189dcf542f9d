package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// Who lost its claim answers with the winner's result.
func TestClaimLost(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				f.handler = held()
				token := f.token("order.create")
				guarded := f.guard.Token("order.create")(f.handler)
				first, second := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
				go func() { first <- f.do(guarded, f.order(token.Token)) }()
				<-f.handler.started
				key := idem.Key{Type: "order.create", Scope: f.subject(token.Token), ID: token.RequestID}
				f.store.real.Lapse(key)
				f.ledger.real.Lapse(key)
				go func() { second <- f.do(guarded, f.order(token.Token)) }()
				<-f.handler.started // the second took over
				f.handler.release <- struct{}{}
				f.handler.release <- struct{}{}
				a, b := <-first, <-second
				if a.Code != 201 || b.Code != 201 || a.Body.String() != b.Body.String() {
					t.Errorf("answered %d %q and %d %q", a.Code, a.Body, b.Code, b.Body)
				}
				if (a.Header().Get(replayed) == "true") == (b.Header().Get(replayed) == "true") {
					t.Errorf("replayed %q and %q", a.Header().Get(replayed), b.Header().Get(replayed))
				}
				f.handler.ran(t, 2)
			})
		})
	}
}

// The claim is cancelled under the running work: nobody has a result for it.
func TestClaimCancelledWhileRunning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t, withoutStore)
		token := f.token("order.create").Token
		f.handler.then = func(w http.ResponseWriter, r *http.Request) {
			claim := idem.FromContext(r.Context())
			if err := f.ledger.real.Release(r.Context(), claim, idem.Failed, "an operator"); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), idem.ErrClaimLost) {
				t.Errorf("cause %v", context.Cause(r.Context()))
			}
			w.WriteHeader(http.StatusCreated)
		}
		guarded := f.guard.Token("order.create")(f.handler)
		refused(t, f.do(guarded, f.order(token)), 409, web.ClaimLost)
		f.handler.then = nil
		executed(t, f.do(guarded, f.order(token)), 201)
	})
}

// The same where the handler noticed, and failed for it. It answers with its own failure only where nobody has a result.
func TestClaimLostByAHandlerThatFails(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		for name, winner := range map[string]int{"the winner succeeds": 201, "the winner fails": 422} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T) {
					f := newFixture(t, only(stores))
					f.handler = held()
					f.handler.then = func(w http.ResponseWriter, r *http.Request) {
						if idem.FromContext(r.Context()).Attempt == 1 {
							<-r.Context().Done()
							w.WriteHeader(http.StatusInternalServerError)
							return
						}
						w.WriteHeader(winner)
					}
					token := f.token("order.create")
					guarded := f.guard.Token("order.create")(f.handler)
					first, second := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
					go func() { first <- f.do(guarded, f.order(token.Token)) }()
					<-f.handler.started
					key := idem.Key{Type: "order.create", Scope: f.subject(token.Token), ID: token.RequestID}
					f.store.real.Lapse(key)
					f.ledger.real.Lapse(key)
					go func() { second <- f.do(guarded, f.order(token.Token)) }()
					<-f.handler.started
					close(f.handler.release)
					executed(t, <-second, winner)
					rec := <-first
					if winner == 201 && (rec.Code != 201 || rec.Header().Get(replayed) != "true") || winner == 422 && rec.Code != 500 {
						t.Errorf("answered %d %s", rec.Code, rec.Body)
					}
				})
			})
		}
	}
}
