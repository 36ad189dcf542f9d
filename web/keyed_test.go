package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// A key-guarded route does what a token-guarded one does: one effect, replay, mismatch, another try after failure.
func TestKeyedRoute(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger", "same transaction"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				options := []web.Option{web.Anonymous()}
				if stores == "same transaction" {
					options = append(options, web.SameTx())
				}
				f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
					pass(time.Second)
					w.WriteHeader(http.StatusCreated)
					fmt.Fprint(w, "made")
				}
				guarded := f.guard.Key("transfer", web.HeaderKey("Idempotency-Key"), options...)(f.handler)
				send := func(key, text string) *httptest.ResponseRecorder {
					return f.do(guarded, keyed("application/json", text, header("Idempotency-Key", key)))
				}
				replays := 0
				for _, rec := range racers(100, func(int) *httptest.ResponseRecorder { return send("a", "{}") }) {
					if rec.Code != 201 || rec.Body.String() != "made" {
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
				refused(t, send("a", `{"changed":true}`), 422, web.PayloadMismatch)
				f.handler.then = status(500)
				executed(t, send("b", "{}"), 500)
				f.handler.then = nil
				executed(t, send("b", `{"corrected":true}`), 201)
				f.handler.ran(t, 3)
			})
		})
	}
}

func TestResolverPanics(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			token := f.token("order.create").Token
			f.handler.then = unknown
			asked := 0
			guarded := f.guard.Token("order.create", web.Resolver(func(context.Context, idem.Claim) (idem.Ending, error) {
				if asked++; asked == 1 {
					panic("boom")
				}
				return idem.Ending{State: idem.Failed}, nil
			}))(f.handler)
			executed(t, f.do(guarded, f.order(token)), 504)
			if _, with := panics(guarded, f.order(token)); with != "boom" {
				t.Errorf("panicked with %v", with)
			}
			refused(t, f.do(guarded, f.order(token, body("{}"))), 422, web.PayloadMismatch)
			f.handler.then = nil
			executed(t, f.do(guarded, f.order(token)), 201) // at once, and not when a lease has run out
			f.handler.ran(t, 2)
		})
	}
}

// The work was done, and the tokens of its page could not be stored: nobody is told that nothing was executed.
func TestTokensOfAnAnswerCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		code   string
		retry  int
	}{
		"success": {status: 200, code: web.OutcomeUnknown, retry: 409},
		"failure": {status: 422, code: web.StoreUnavailable, retry: 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withoutLedger)
			token := f.token("order.create").Token
			f.handler.then = func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				page(1, "order.create").ServeHTTP(w, r)
			}
			guarded := f.guard.Token("order.create")(f.handler)
			f.store.setFault("Issue", errAway)
			refused(t, f.do(guarded, f.order(token)), 503, c.code)
			f.store.setFault("Issue", nil)
			if rec := f.do(guarded, f.order(token)); rec.Code != c.retry {
				t.Errorf("then %d %s", rec.Code, rec.Body)
			}
		})
	}
}
