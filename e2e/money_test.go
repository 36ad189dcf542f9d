package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

// opened is what the shop's three accounts hold together, whatever is transferred.
const opened = 3000

// balances are the accounts' by name. Their sum never changes.
func (v *visitor) balances() map[string]int {
	v.Helper()
	var found struct {
		Accounts []struct {
			Name    string
			Balance int
		}
	}
	must(v.T, json.Unmarshal([]byte(v.get("/api/accounts").body), &found))
	balances, sum := map[string]int{}, 0
	for _, a := range found.Accounts {
		balances[a.Name] = a.Balance
		sum += a.Balance
	}
	if sum != opened {
		v.Errorf("the accounts hold %d, want %d: %v", sum, opened, balances)
	}
	return balances
}

func (v *visitor) transferring(key, query, body string) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, "/api/transfers"+query, body, "Content-Type", "application/json", "Idempotency-Key", key)
}

func move(from, to string, amount int) string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d}`, from, to, amount)
}

// transfers has carol to itself: nobody else moves her money.
func transfers(v *visitor) {
	key := idem.NewOwner()
	v.wantOneFirst(v.together(20, func(int) *http.Request { return v.transferring(key, "?delay=50ms", move("carol", "alice", 40)) }))
	if got := v.balances()["carol"]; got != opened/3-40 {
		v.Errorf("carol has %d after a transfer of 40", got)
	}
	v.want(v.do(v.transferring(idem.NewOwner(), "", move("carol", "alice", 1001))), http.StatusUnprocessableEntity)
	v.want(v.do(v.transferring(`"`+key+`"`, "", move("carol", "alice", 40))), http.StatusCreated)
	v.wantRefused(v.do(v.transferring(key, "", move("carol", "alice", 41))), http.StatusUnprocessableEntity, "payload_mismatch")
	if got := v.balances()["carol"]; got != opened/3-40 {
		v.Errorf("carol has %d after replays of a transfer of 40", got)
	}
}

// transfersCross: as many go to and fro, twice each. Some may be refused with 409 or 503, and are then sent again.
func transfersCross(v *visitor) {
	ways := []string{move("alice", "bob", 7), move("bob", "alice", 7)}
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = idem.NewOwner()
	}
	answers := v.together(20, func(i int) *http.Request { return v.transferring(keys[i/2], "", ways[i/2%2]) })
	for _, a := range answers {
		v.want(a, http.StatusCreated)
	}
	v.balances()
}

func (v *visitor) refunding(no, query string) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, "/api/refunds"+query, `{"refundNo":"`+no+`","orderNo":"o-1","amount":5}`, "Content-Type", "application/json")
}

const sent = `SELECT count(*) FROM shop_gateway WHERE refund_no = $1`

func refunds(v *visitor) {
	no := "r-" + idem.NewOwner()[:8]
	v.wantOneFirst(v.together(10, func(int) *http.Request { return v.refunding(no, "?delay=50ms") }))
	v.demo.backend.wantCount(v.T, 1, sent, no)
}

// TestTransferKilled: claim, work and record are one transaction, and so nothing is left of it.
func TestTransferKilled(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b, "IDEM_WAIT=0")
		v, key := visit(t, d), idem.NewOwner()
		request := func(query string) *http.Request { return v.transferring(key, query, move("alice", "bob", 100)) }

		// Whichever comes second is told that the first one runs.
		one, other := v.begin(request("?delay=20s")), v.begin(request("?delay=20s"))
		told := one
		select {
		case <-one.done:
		case <-other.done:
			told = other
		case <-time.After(20 * time.Second):
			t.Fatal("neither was told that the other one runs")
		}
		v.wantRefused(v.wait(told), http.StatusConflict, "in_progress")
		d.kill()
		<-one.done
		<-other.done

		d.restart(t)
		if got := v.balances()["alice"]; got != opened/3 {
			t.Errorf("alice has %d after a transfer that was killed", got)
		}
		first := v.do(request(""))
		v.want(first, http.StatusCreated)
		if replayed(first) {
			t.Error("a transfer that was killed is replayed")
		}
		v.wantReplay(v.do(request("")), first)
		if got := v.balances()["alice"]; got != opened/3-100 {
			t.Errorf("alice has %d after a transfer of 100", got)
		}
	})
}

// TestRefundKilled: the process dies when the gateway has made the refund and nobody else knows. The next one asks the gateway.
func TestRefundKilled(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b, "IDEM_LEASE=1s")
		v, no := visit(t, d), "r-"+idem.NewOwner()[:8]
		if a, err := v.try(v.refunding(no, "?fail=exit")); err == nil {
			t.Fatalf("the process was to end, and answered %d %s", a.StatusCode, a.body)
		}
		d.gone(t)
		b.wantCount(t, 1, sent, no)

		d.restart(t)
		first := v.do(v.refunding(no, ""))
		v.want(first, http.StatusCreated)
		if state := member[string](v, first, "state"); state != "refunded" || member[float64](v, first, "attempt") != 2 {
			t.Errorf("the refund is %s", first.body)
		}
		v.wantReplay(v.do(v.refunding(no, "")), first)
		b.wantCount(t, 1, sent, no)
	})
}
