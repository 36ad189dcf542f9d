package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// ordered is a submission with a token, and a business key in its payload.
func (f *fixture) ordered(token, no string) func() *httptest.ResponseRecorder {
	guarded := f.guard.Token("order.create", web.BusinessKey(web.JSONKey("no")))
	return func() *httptest.ResponseRecorder {
		return f.do(guarded(f.handler), f.order(token, body(`{"no":"`+no+`"}`)))
	}
}

func TestBusinessKeyBesideAToken(t *testing.T) {
	t.Parallel()
	t.Run("two tokens, one key", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		first := f.ordered(f.token("order.create").Token, "7")()
		executed(t, first, 201)
		second := f.token("order.create")
		rec := f.ordered(second.Token, "7")()
		repeats(t, rec, first)
		if rec.Header().Get(requestID) != second.RequestID {
			t.Errorf("request id %q", rec.Header().Get(requestID))
		}
		f.handler.ran(t, 1)
	})
	t.Run("one request id, two keys, succeeded", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		token := f.token("order.create")
		executed(t, f.ordered(token.Token, "7")(), 201)
		f.settle()
		refused(t, f.ordered(token.Token, "8")(), 422, web.PayloadMismatch)
		f.store.real.Forget() // the ledger says the same
		refused(t, f.ordered(f.renew("order.create", token.RequestID).Token, "8")(), 422, web.PayloadMismatch)
		f.handler.ran(t, 1)
	})
	t.Run("one request id, two keys, running", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.handler = held()
		token := f.token("order.create")
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- f.ordered(token.Token, "7")() }()
		<-f.handler.started
		refused(t, f.ordered(token.Token, "8")(), 422, web.PayloadMismatch)
		f.store.real.Forget()
		refused(t, f.ordered(token.Token, "8")(), 422, web.PayloadMismatch)
		close(f.handler.release)
		executed(t, <-done, 201)
		f.handler.ran(t, 1)
	})
	t.Run("one request id, two keys, failed", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.handler.then = status(422)
		token := f.token("order.create").Token
		executed(t, f.ordered(token, "7")(), 422)
		f.handler.then = nil
		executed(t, f.ordered(token, "8")(), 201)
		refused(t, f.ordered(token, "7")(), 422, web.PayloadMismatch)
		f.handler.ran(t, 2)
	})
	t.Run("key is missing, the token is not spent", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		token := f.token("order.create").Token
		guarded := f.guard.Token("order.create", web.BusinessKey(web.JSONKey("no")))(f.handler)
		refused(t, f.do(guarded, f.order(token, body(`{}`))), 400, web.KeyMissing)
		executed(t, f.ordered(token, "7")(), 201)
	})
	t.Run("another's key", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		executed(t, f.ordered(f.token("order.create").Token, "7")(), 201)
		f.cookie = nil // another browser
		token := f.token("order.create").Token
		refused(t, f.ordered(token, "7")(), 409, web.KeyTaken)
		executed(t, f.ordered(token, "8")(), 201) // what was refused holds nothing
	})
}

// subject is whom a token was given to.
func (f *fixture) subject(token string) string {
	claims, err := f.issuer.Verify(token)
	if err != nil {
		f.t.Fatal(err)
	}
	return claims.Subject
}

// cancel makes the record of a token's request cancelled, as an operator does.
func (f *fixture) cancel(t *testing.T, token issued) {
	t.Helper()
	q := idem.Request{
		Key:     idem.Key{Type: "order.create", Scope: f.subject(token.Token), ID: token.RequestID},
		Subject: f.subject(token.Token), RequestID: token.RequestID, Owner: "operator", Lease: time.Minute, Retention: time.Hour,
	}
	answer, err := f.ledger.real.Claim(t.Context(), q)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("%v %v", answer.Outcome, err)
	}
	if err := f.ledger.real.Release(t.Context(), answer.Claim, idem.Cancelled, "not wanted any more"); err != nil {
		t.Fatal(err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create")
	f.handler.then = status(500)
	guarded := f.guard.Token("order.create")(f.handler)
	executed(t, f.do(guarded, f.order(token.Token)), 500)
	f.cancel(t, token)
	refused(t, f.do(guarded, f.order(token.Token)), 409, web.Cancelled)
	f.handler.ran(t, 1)
}

// Fifty people's tabs at once, each with a token of its own, all for one business key.
func TestRaceForABusinessKey(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]web.Option{"claim first": nil, "same transaction": {web.SameTx()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t)
				f.handler.then = func(w http.ResponseWriter, _ *http.Request) { pass(time.Second); w.WriteHeader(http.StatusCreated) }
				guarded := f.guard.Token("order.create", append(options, web.BusinessKey(web.JSONKey("no")))...)(f.handler)
				sent := make([]string, 50)
				for i := range sent {
					sent[i] = f.token("order.create").Token
				}
				replays := 0
				for _, rec := range racers(100, func(i int) *httptest.ResponseRecorder {
					return f.do(guarded, f.order(sent[i%50], body(`{"no":"7"}`)))
				}) {
					if rec.Code != 201 {
						t.Fatalf("answered %d %s", rec.Code, rec.Body)
					}
					if rec.Header().Get(replayed) != "" {
						replays++
					}
				}
				f.handler.ran(t, 1)
				if replays != 99 {
					t.Errorf("%d replays", replays)
				}
			})
		})
	}
}

// Where the route is shared, another's duplicate waits for the first like one's own.
func TestSharedKeyWaits(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores), byUser)
				f.handler.then = func(w http.ResponseWriter, _ *http.Request) { pass(time.Second); w.WriteHeader(http.StatusCreated) }
				guarded := f.guard.Key("refund", web.JSONKey("no"), web.Shared())(f.handler)
				for _, rec := range racers(6, func(i int) *httptest.ResponseRecorder {
					return f.do(guarded, keyed("application/json", `{"no":"7"}`, as([]string{"ann", "bob", "cid"}[i%3])))
				}) {
					if rec.Code != 201 {
						t.Errorf("answered %d %s", rec.Code, rec.Body)
					}
				}
				f.handler.ran(t, 1)
			})
		})
	}
}
