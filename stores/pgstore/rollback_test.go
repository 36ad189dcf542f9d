package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

// pgx#2557: a rollback on a closed connection hung. It has a bounded time of its own, whatever its caller's context says, undoes the work, and gives the
// connection's place in the pool back - here there is one.
func TestRollbackEndsWhateverTheConnectionDoes(t *testing.T) {
	t.Parallel()
	const bound = 8 * time.Second // of which five are the store's
	cancelled := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	for name, spoil := range map[string]func(l *lab, link *testkit.Link, ctx context.Context) context.Context{
		"it is closed": func(l *lab, link *testkit.Link, ctx context.Context) context.Context { link.Cut(); return ctx },
		"the server ended it": func(l *lab, _ *testkit.Link, ctx context.Context) context.Context {
			l.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`)
			return ctx
		},
		"nothing arrives": func(l *lab, link *testkit.Link, ctx context.Context) context.Context {
			link.Latency(time.Hour)
			return ctx
		},
		"nothing arrives, and the caller left": func(l *lab, link *testkit.Link, ctx context.Context) context.Context {
			link.Latency(time.Hour)
			return cancelled(ctx)
		},
		"its answer is lost":  func(l *lab, link *testkit.Link, ctx context.Context) context.Context { link.DropReplies(1); return ctx },
		"the caller has left": func(l *lab, _ *testkit.Link, ctx context.Context) context.Context { return cancelled(ctx) },
	} {
		eachWayOf(t, name, func(t *testing.T, w way) {
			l := newShop(t)
			link := testkit.Proxy(t, l.db.Addr)
			store := open(t, l.db.PoolVia(t, link.Addr(), func(c *pgxpool.Config) { c.MaxConns = 1 }))
			far, q := &lab{T: t, db: l.db, pool: l.pool, store: store}, request("1")
			ctx, tx := w.start(far, q)
			far.insertBusiness(ctx)
			ctx = spoil(l, link, ctx)
			begun := time.Now()
			_ = tx.Rollback(ctx)
			took := time.Since(begun)
			if took > bound {
				t.Errorf("it took %v", took)
			}
			link.Latency(0)
			if took > time.Second {
				link.Cut() // a server that hears nothing more ends the transaction by its own limit
			}
			testkit.Eventually(t, 10*time.Second, "the work is undone", func() bool {
				return query[int](l, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`) == 0
			})
			l.business(0)
			l.leaves(q, w.after)
			fresh := request("2")
			if answer, err := store.Claim(t.Context(), fresh); err != nil || answer.Outcome != idem.Won {
				t.Errorf("the pool's next user: %v, %v", answer.Outcome, err)
			}
		})
	}
}

func eachWayOf(t *testing.T, name string, run func(t *testing.T, w way)) {
	t.Helper()
	for _, w := range ways() {
		t.Run(name+"/"+w.name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}
