package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// TestLedgerAway: nothing runs unrecorded. What Redis holds is still replayed.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	b := bare(t)
	b.server = testkit.PostgresServer(t)
	b.onPostgres(t, b.server.Database(t)).withRedis(t)
	v := visit(t, start(t, b))
	done, item := v.token(), v.item()
	first := v.submit(done, "", one(item))
	v.wantFirst(first, 1)
	token, other := v.token(), v.item()

	b.server.Stop(t)
	v.becomes(http.StatusServiceUnavailable, "unavailable")
	v.want(v.get("/healthz"), http.StatusOK)
	refused := v.submit(token, "", one(other))
	v.wantRefused(refused, http.StatusServiceUnavailable, "store_unavailable")
	if refused.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to come again")
	}
	v.discreet(refused)
	v.want(v.do(v.transferring("transfer-1", "", move("alice", "bob", 1))), http.StatusServiceUnavailable)
	v.want(v.do(v.refunding("r-1", "")), http.StatusServiceUnavailable)
	v.discreet(v.get("/api/accounts"))
	v.wantReplay(v.submit(done, "", one(item)), first)
	v.want(v.get("/form"), http.StatusOK)

	b.server.Start(t)
	v.becomes(http.StatusOK, "ok")
	v.wantOrders(other, 0)
	v.wantFirst(v.submit(token, "", one(other)), 1)
	v.wantOrders(other, 1)
	v.wantReplay(v.submit(done, "", one(item)), first)
	if got := v.balances()["alice"]; got != opened/3 {
		t.Errorf("alice has %d after a transfer that was refused", got)
	}
}

// TestLedgerDiesUnderWork: it is not known whether it was written; the same again finds out.
func TestLedgerDiesUnderWork(t *testing.T) {
	t.Parallel()
	b := bare(t)
	b.server = testkit.PostgresServer(t)
	b.onPostgres(t, b.server.Database(t)).withRedis(t)
	v := visit(t, start(t, b, "IDEM_LEASE=1s"))
	token, item := v.token(), v.item()
	running := v.begin(v.ordering(token, "?delay=700ms", one(item)))
	b.running(t, "order.create")
	b.server.Stop(t)
	failed := v.wait(running)
	v.want(failed, http.StatusServiceUnavailable)
	v.discreet(failed)
	b.server.Start(t)
	v.becomes(http.StatusOK, "ok")
	v.want(v.submit(token, "", one(item)), http.StatusCreated)
	v.wantOrders(item, 1)
}

// TestLedgerLinkBreaks at every moment of a call in turn, the commit included: whatever its answer, the same again ends well, and there is one order.
func TestLedgerLinkBreaks(t *testing.T) {
	t.Parallel()
	db := testkit.Postgres(t)
	link := testkit.Proxy(t, db.Addr)
	b := bare(t).onPostgresVia(t, db, link.Addr()).withRedis(t)
	v := visit(t, start(t, b, "IDEM_LEASE=1s"))
	breaks := map[string]func(){
		"a reply is lost":          func() { link.DropReplies(1) },
		"three replies are lost":   func() { link.DropReplies(3) },
		"all connections are cut":  link.Cut,
		"no new ones for a moment": func() { link.Refuse(true); link.Cut() },
	}
	for name, fails := range breaks {
		for _, when := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 103 * time.Millisecond} {
			token, item := v.token(), v.item()
			running := v.begin(v.ordering(token, "?delay=100ms", one(item)))
			<-time.After(when)
			fails()
			a := v.wait(running)
			link.DropReplies(0)
			link.Refuse(false)
			if a.StatusCode != http.StatusCreated && a.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s after %v: %d %s", name, when, a.StatusCode, a.body)
			}
			v.discreet(a)
			testkit.Eventually(t, 15*time.Second, name+": the same again is answered", func() bool {
				again := v.submit(token, "", one(item))
				return again.StatusCode == http.StatusCreated && (a.StatusCode != http.StatusCreated || again.body == a.body)
			})
			b.wantCount(t, 1, `SELECT count(*) FROM shop_order WHERE item = $1`, item)
		}
	}
}
