package e2e_test

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// wantGranted waits until every order has its points, and looks that none has them twice.
func (b *backend) wantGranted(t *testing.T, db *sql.DB, orders int) {
	t.Helper()
	testkit.Eventually(t, 40*time.Second, "no event is left", func() bool {
		return b.count(t, db, `SELECT count(*) FROM shop_outbox`) == 0
	})
	for statement, want := range map[string]int{
		`SELECT count(*) FROM shop_order`:                     orders,
		`SELECT count(*) FROM shop_points`:                    orders,
		`SELECT count(DISTINCT order_id) FROM shop_points`:    orders,
		`SELECT CAST(sum(points) AS BIGINT) FROM shop_points`: 10 * orders,
	} {
		if got := b.count(t, db, statement); got != want {
			t.Errorf("%s: %d, want %d", statement, got, want)
		}
	}
}

// TestPointsOnce though the process is killed between the order, its event, the points and their record.
func TestPointsOnce(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b, "IDEM_LEASE=1s")
		v := visit(t, d)
		db := b.open(t)
		defer db.Close()
		orders := 0
		for _, after := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond} {
			for range 3 {
				v.wantFirst(v.submit(v.token(), "", one(v.item())), 1)
				orders++
			}
			<-time.After(after)
			d.kill()
			d.restart(t)
		}
		last := v.submit(v.token(), "", one(v.item()))
		b.wantGranted(t, db, orders+1)
		receipt := v.get(last.Header.Get("Location"))
		v.want(receipt, http.StatusOK)
		if !strings.Contains(receipt.body, "10 points granted") {
			t.Errorf("the receipt: %s", receipt.body)
		}
	})
}

// TestPointsAtTwoProcesses that work on one outbox, while Redis forgets everything.
func TestPointsAtTwoProcesses(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		both := []*visitor{v, v.at(start(t, b))}
		db := b.open(t)
		defer db.Close()
		tokens := make([]string, 20)
		for i := range tokens {
			tokens[i] = v.token()
		}
		for _, a := range v.together(len(tokens), func(i int) *http.Request { return both[i%2].ordering(tokens[i], "", one(v.item())) }) {
			v.wantFirst(a, 1)
		}
		b.redis.FlushAll(t)
		b.wantGranted(t, db, len(tokens))
	})
}

// TestPointsAfterAGracefulStop: what was ordered last is granted by whoever starts next.
func TestPointsAfterAGracefulStop(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b)
		v := visit(t, d)
		v.wantFirst(v.submit(v.token(), "", one(v.item())), 1)
		d.process.End(stopSignal)
		if code := d.exit(t, time.Second); code != 0 {
			t.Errorf("the process ended with %d", code)
		}
		d.restart(t)
		db := b.open(t)
		defer db.Close()
		b.wantGranted(t, db, 1)
	})
}
