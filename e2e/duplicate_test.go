package e2e_test

import (
	"net/http"
	"testing"
	"time"
)

// scenarios need nothing but a demo that runs, and share one.
func scenarios() map[string]func(v *visitor) {
	return map[string]func(v *visitor){
		"submitted twice":                       submittedTwice,
		"refused, corrected, submitted":         corrected,
		"failed with a status, sent again":      func(v *visitor) { failedOnce(v, "?fail=500", http.StatusInternalServerError) },
		"failed with a panic, sent again":       func(v *visitor) { failedOnce(v, "?fail=panic", http.StatusInternalServerError) },
		"refused by the work, sent again":       func(v *visitor) { failedOnce(v, "?fail=422", http.StatusUnprocessableEntity) },
		"a hundred at once":                     hundred,
		"a hundred at once of slow work":        hundredSlow,
		"another payload under the same token":  otherPayload,
		"two intentions":                        twoIntentions,
		"renewed after it was done":             renewed,
		"a transfer, twenty times":              transfers,
		"transfers that cross":                  transfersCross,
		"a refund, ten times":                   refunds,
		"somebody else's token":                 foreignToken,
		"a form, twice":                         formTwice,
		"a form with a file, at once, one shop": formAtOnce,
	}
}

func TestOneProcess(t *testing.T) {
	t.Parallel()
	eachBackend(t, inOneProcess)
	t.Run("Redis Cluster and Postgres", func(t *testing.T) {
		t.Parallel()
		inOneProcess(t, clusterAndPostgres(t))
	})
}

func inOneProcess(t *testing.T, b *backend) {
	t.Helper()
	d := start(t, b)
	for name, scenario := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(visit(t, d))
		})
	}
}

func submittedTwice(v *visitor) {
	token, requestID := v.tokenFor("order.create")
	item := v.item()
	first := v.submit(token, "", one(item))
	v.wantFirst(first, 1)
	if got := first.Header.Get("Location"); got != "/orders/"+member[string](v, first, "id") {
		v.Errorf("Location is %q", got)
	}
	second := v.submit(token, "", one(item))
	v.wantReplay(second, first)
	for _, a := range []answer{first, second} {
		if got := a.Header.Get("Idempotent-Request-Id"); got != requestID {
			v.Errorf("the answer names the request id %q, want %q", got, requestID)
		}
		if len(a.Header.Values("Content-Security-Policy")) != 1 || len(a.Header.Values("Set-Cookie")) != 0 {
			v.Errorf("headers are %v", a.Header)
		}
	}
	v.wantReplay(v.submit(token, "?fail=exit&delay=5s", one(item)), first) // the fingerprint ignores both
	v.wantOrders(item, 1)
	v.want(v.get(first.Header.Get("Location")), http.StatusOK)
}

func corrected(v *visitor) {
	token, item := v.token(), v.item()
	v.want(v.submit(token, "", `{"item":"`+item+`","quantity":100}`), http.StatusUnprocessableEntity)
	v.wantOrders(item, 0)
	first := v.submit(token, "", `{"item":"`+item+`","quantity":99}`)
	v.wantFirst(first, 2)
	v.wantReplay(v.submit(token, "", `{"item":"`+item+`","quantity":99}`), first)
	v.wantOrders(item, 1)
}

// failedOnce: what the failed attempt wrote is gone.
func failedOnce(v *visitor, query string, status int) {
	token, item := v.token(), v.item()
	v.want(v.submit(token, query, one(item)), status)
	v.wantOrders(item, 0)
	v.wantFirst(v.submit(token, query, one(item)), 2)
	v.wantOrders(item, 1)
}

func hundred(v *visitor) { race(v, "") }

func hundredSlow(v *visitor) { race(v, "?delay=700ms") }

func race(v *visitor, query string) {
	token, item := v.token(), v.item()
	v.wantOneFirst(v.together(100, func(int) *http.Request { return v.ordering(token, query, one(item)) }))
	v.wantOrders(item, 1)
}

func otherPayload(v *visitor) {
	token, item, other := v.token(), v.item(), v.item()
	first := v.submit(token, "", one(item))
	v.wantFirst(first, 1)
	v.wantRefused(v.submit(token, "", one(other)), http.StatusUnprocessableEntity, "payload_mismatch")
	v.wantOrders(other, 0)
	v.wantReplay(v.submit(token, "", one(item)), first)
}

// twoIntentions: the same order twice on purpose is two orders.
func twoIntentions(v *visitor) {
	first, second, item := v.token(), v.token(), v.item()
	v.wantFirst(v.submit(first, "", one(item)), 1)
	v.wantFirst(v.submit(second, "", one(item)), 1)
	v.wantOrders(item, 2)
}

func renewed(v *visitor) {
	token, requestID := v.tokenFor("order.create")
	item := v.item()
	first := v.submit(token, "", one(item))
	v.wantFirst(first, 1)
	again := v.post("/api/idempotent/token", `{"action":"order.create","requestId":"`+requestID+`"}`)
	v.want(again, http.StatusCreated)
	renewed := member[string](v, again, "token")
	v.demo.secret(renewed)
	replay := v.submit(renewed, "", one(item))
	v.wantReplay(replay, first)
	v.wantOrders(item, 1)
}

func foreignToken(v *visitor) {
	token, item := v.token(), v.item()
	other := visit(v.T, v.demo)
	other.token()
	other.wantRefused(other.submit(token, "", one(item)), http.StatusForbidden, "token_wrong_subject")
	v.wantFirst(v.submit(token, "", one(item)), 1)
}

// TestTwoProcesses share what they can, as behind a load balancer: half of the duplicates come to each. Where each keeps its tokens for itself the
// ledger brings them together.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		left, other := start(t, b), start(t, b)
		for name, query := range map[string]string{"quick": "", "slow": "?delay=500ms"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				v := visit(t, left)
				both := []*visitor{v, v.at(other)}
				token, item := v.token(), v.item()
				begun := time.Now()
				answers := v.together(100, func(i int) *http.Request { return both[i%2].ordering(token, query, one(item)) })
				v.wantOneFirst(answers)
				v.wantOrders(item, 1)
				if took := time.Since(begun); took > 5*time.Second { // not the waiting time
					t.Errorf("the duplicates waited for %v", took)
				}
			})
		}
	})
}
