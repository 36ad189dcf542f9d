package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// slow makes every call of both stores take so much longer before it is carried out, and as much before its answer arrives.
func (f *fixture) slow(latency time.Duration) {
	late := func(context.Context) error { pass(latency); return nil }
	for _, faults := range []*faults{f.store.faults, f.ledger.faults} {
		for _, method := range []string{
			"Issue", "Spend", "Claim", "ClaimTx", "Lookup", "Extend", "Complete", "Tx.Complete", "Tx.Rollback", "Release", "Restore", "Purge", "Ping",
		} {
			faults.onBefore(method, late)
			faults.onAfter(method, late)
		}
	}
}

// IdempotentAPI#23: a slow Redis let several run. Every call is slow, in both directions, with and without renewals of the lease on the way; the
// first fails in some rows, so that waiters take over slowly too.
func TestSlowStores(t *testing.T) {
	t.Parallel()
	routes := map[string][]web.Option{"claim first": nil, "same transaction": {web.SameTx()}}
	for route, options := range routes {
		for _, stores := range []string{"both", "store", "ledger"} {
			if route == "same transaction" && stores == "store" {
				continue // needs a ledger
			}
			for _, latency := range []time.Duration{100 * time.Millisecond, 450 * time.Millisecond, 1400 * time.Millisecond} {
				for _, failures := range []int{0, 1} {
					t.Run(fmt.Sprintf("%s/%s/%v/%d failures", route, stores, latency, failures), func(t *testing.T) {
						t.Parallel()
						inBubble(t, func(t *testing.T) { slowRace(t, stores, latency, failures, options) })
					})
				}
			}
		}
	}
}

func slowRace(t *testing.T, stores string, latency time.Duration, failures int, options []web.Option) {
	t.Helper()
	f := newFixture(t, only(stores))
	token := f.token("order.create").Token
	f.slow(latency)
	running, most := 0, 0
	f.handler.then = func(w http.ResponseWriter, r *http.Request) { // two at once would be a data race too
		running++
		most = max(most, running)
		pass(20 * time.Second)
		running--
		if int(f.handler.runs.Load()) <= failures {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "made")
	}
	options = append([]web.Option{web.Lease(12 * time.Second), web.Wait(10 * time.Minute), web.Limit(time.Minute)}, options...)
	guarded := f.guard.Token("order.create", options...)(f.handler)
	failed, replays := 0, 0
	for _, rec := range racers(8, func(int) *httptest.ResponseRecorder { return f.do(guarded, f.order(token)) }) {
		switch {
		case rec.Code == http.StatusInternalServerError:
			failed++
		case rec.Code != http.StatusCreated || rec.Body.String() != "made":
			t.Errorf("answered %d %s", rec.Code, rec.Body)
		case rec.Header().Get(replayed) == "true":
			replays++
		}
	}
	f.handler.ran(t, failures+1)
	if most != 1 || failed != failures || replays != 8-failures-1 {
		t.Errorf("%d at once, %d failures, %d replays", most, failed, replays)
	}
}
