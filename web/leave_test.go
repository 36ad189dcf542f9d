package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem/web"
)

// A client that goes away does not cancel the work, and its retry gets the result.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := held()
				h.then = func(w http.ResponseWriter, r *http.Request) {
					if err := r.Context().Err(); err != nil {
						t.Errorf("the work's context has ended: %v", err)
					}
					w.WriteHeader(http.StatusCreated)
				}
				guarded := f.guard.Token("order.create")(h)
				ctx, leave := context.WithCancel(t.Context())
				first := make(chan *httptest.ResponseRecorder)
				go func() { first <- f.do(guarded, f.order(token).WithContext(ctx)) }()
				<-h.started
				leave()
				close(h.release)
				executed(t, <-first, 201)
				repeats(t, f.do(guarded, f.order(token)), &httptest.ResponseRecorder{Code: http.StatusCreated, Body: f.do(guarded, f.order(token)).Body})
				h.ran(t, 1)
			})
		})
	}
}

// A waiter whose client left does not take over, and what it held at the entrance is free.
func TestWaiterLeaves(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := held()
				h.then = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
				guarded := f.guard.Token("order.create")(h)
				first, second := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
				go func() { first <- f.do(guarded, f.order(token)) }()
				<-h.started
				ctx, leave := context.WithCancel(t.Context())
				go func() { second <- f.do(guarded, f.order(token).WithContext(ctx)) }()
				synctest.Wait()
				leave()
				if rec := <-second; rec.Code < 400 {
					t.Errorf("a client that left was told %d", rec.Code)
				}
				close(h.release)
				executed(t, <-first, 500)
				pass(time.Minute)
				h.ran(t, 1)
				h.then = nil
				executed(t, f.do(guarded, f.order(token)), 201)
				h.ran(t, 2)
			})
		})
	}
}

// The client leaves just when a store has said "won", before the next is asked: nothing may run on the entrance's word alone.
func TestClientLeavesBetweenTheStores(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Spend", "Claim"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{}
			guarded := f.guard.Token("order.create")(h)
			ctx, leave := context.WithCancel(t.Context())
			faults := f.store.faults
			if method == "Claim" {
				faults = f.ledger.faults
			}
			faults.onAfter(method, func(context.Context) error { leave(); return nil })
			f.do(guarded, f.order(token).WithContext(ctx))
			claimed := f.ledger.count("Claim")
			if int(h.runs.Load()) > claimed {
				t.Errorf("ran %d times with %d claims of the ledger", h.runs.Load(), claimed)
			}
			faults.onAfter(method, nil)
			if rec := f.do(guarded, f.order(token)); rec.Code != 201 {
				t.Errorf("answered %d %s", rec.Code, rec.Body)
			}
			h.ran(t, 1)
		})
	}
}

// An answer is an error, not an empty 200, where a middleware's deadline ends the wait and the client is still there.
func TestDeadlineOfAMiddlewareEndsTheWait(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		token := f.token("order.create").Token
		h := held()
		guarded := f.guard.Token("order.create")(h)
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- f.do(guarded, f.order(token)) }()
		<-h.started
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		refused(t, f.do(guarded, f.order(token).WithContext(ctx)), 503, web.StoreUnavailable)
		close(h.release)
		executed(t, <-first, 201)
	})
}
