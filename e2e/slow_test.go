package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// TestLedgerSlow: racers at one process and at two, with each round trip to Postgres so much slower, and those to Redis as well. The lease is
// shorter than the work, so that renewals are late too.
func TestLedgerSlow(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		for name, both := range map[string]bool{"Postgres": false, "Postgres and Redis": true} {
			t.Run(fmt.Sprint(name, " ", latency), func(t *testing.T) {
				t.Parallel()
				db := testkit.Postgres(t)
				link := testkit.Proxy(t, db.Addr)
				b := bare(t).onPostgresVia(t, db, link.Addr()).withRedis(t)
				v := visit(t, start(t, b, "IDEM_LEASE=3s", "IDEM_WAIT=60s"))
				here := []*visitor{v, v.at(start(t, b, "IDEM_LEASE=3s", "IDEM_WAIT=60s"))}
				token, item := v.token(), v.item()
				link.Latency(latency)
				if both {
					b.link.Latency(latency)
				}
				v.wantOneFirst(v.together(20, func(i int) *http.Request { return here[i%2].ordering(token, "?delay=4s", one(item)) }))
				b.wantCount(t, 1, `SELECT count(*) FROM shop_order WHERE item = $1`, item)
			})
		}
	}
}
