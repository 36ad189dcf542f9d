package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// database is a ledger with a table of the business' own beside it.
type database struct {
	ledger idem.Ledger
	grant  func(ctx context.Context, id string) error // in the handler's transaction
	grants func() int                                 // committed ones
}

const grantsTable = `CREATE TABLE grants (id TEXT NOT NULL)`

// onDatabases runs a test on each ledger that has a database.
func onDatabases(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) database{"SQLite": openSQLite, "Postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func openSQLite(t *testing.T) database {
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), grantsTable); err != nil {
		t.Fatal(err)
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return database{
		ledger: ledger,
		grant: func(ctx context.Context, id string) error {
			tx, err := sqlitestore.Tx(ctx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `INSERT INTO grants VALUES (?)`, id)
			return err
		},
		grants: func() (n int) {
			if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM grants`).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		},
	}
}

func openPostgres(t *testing.T) database {
	db := testkit.Postgres(t)
	pool := db.Pool(t)
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, grantsTable)
	ledger, err := pgstore.New(pool, pgstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	return database{
		ledger: ledger,
		grant: func(ctx context.Context, id string) error {
			tx, err := pgstore.Tx(ctx)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO grants VALUES ($1)`, id)
			return err
		},
		grants: func() (n int) {
			if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM grants`).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		},
	}
}

// granter is a consumer that grants points in the ledger's transaction and then does what the test says.
type granter struct {
	*testing.T
	database
	then func() error
	runs []int // attempts
	c    *consumer.Consumer
}

func newGranter(t *testing.T, d database, options ...consumer.Option) *granter {
	t.Helper()
	g := &granter{T: t, database: d, then: func() error { return nil }}
	options = append([]consumer.Option{consumer.Logger(slog.New(slog.DiscardHandler)), consumer.Attempts(3)}, options...)
	c, err := consumer.New(d.ledger, name, func(ctx context.Context, m consumer.Message) error {
		g.runs = append(g.runs, idem.FromContext(ctx).Attempt)
		if err := g.grant(ctx, m.ID); err != nil {
			return err
		}
		return g.then()
	}, options...)
	if err != nil {
		t.Fatal(err)
	}
	g.c = c
	return g
}

// deliver checks the verdict, and how many grants are committed after it.
func (g *granter) deliver(m consumer.Message, action consumer.Action, attempt, grants int) consumer.Verdict {
	g.Helper()
	v := g.c.Handle(context.Background(), m)
	if v.Action != action || v.Attempt != attempt {
		g.Errorf("verdict %+v, want %v at attempt %d", v, action, attempt)
	}
	if n := g.grants(); n != grants {
		g.Errorf("%d grants, want %d", n, grants)
	}
	return v
}

func (g *granter) stands(state idem.State, attempt int) {
	g.Helper()
	r, err := g.ledger.Lookup(context.Background(), idem.Request{Key: key("1")})
	if err != nil || r.State != state || r.Attempt != attempt {
		g.Errorf("the record is %q at attempt %d (%v), want %q at %d", r.State, r.Attempt, err, state, attempt)
	}
}

// ways are the two in which the ledger's transaction holds what the handler writes.
func ways() map[string][]consumer.Option {
	return map[string][]consumer.Option{"claim first": nil, "same transaction": {consumer.SameTx()}}
}

func TestBusinessAndRecordCommitTogether(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		for way, options := range ways() {
			t.Run(way, func(t *testing.T) {
				g := newGranter(t, d, options...)
				before, m := g.grants(), order("order of "+way)
				g.then = func() error { return errBroken }
				if v := g.deliver(m, consumer.Retry, 1, before); !v.Counted || !errors.Is(v.Err, errBroken) {
					t.Errorf("verdict %+v", v)
				}
				g.then = func() error { panic("no points left") }
				g.deliver(m, consumer.Retry, 2, before)
				g.then = func() error { return nil }
				g.deliver(m, consumer.Ack, 3, before+1)
				if v := g.deliver(m, consumer.Ack, 0, before+1); !v.Replayed {
					t.Errorf("verdict %+v, want a replay", v)
				}
				if fmt.Sprint(g.runs) != "[1 2 3]" {
					t.Errorf("attempts %v, want 1, 2, 3", g.runs)
				}
			})
		}
	})
}

// In one transaction no attempt survives: the failure is recorded after the rollback.
func TestSameTxRecordsFailures(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		g := newGranter(t, d, consumer.SameTx())
		g.then = func() error { return errBroken }
		g.deliver(order("1"), consumer.Retry, 1, 0)
		g.stands(idem.Failed, 1)
		g.deliver(order("1"), consumer.Retry, 2, 0)
		g.stands(idem.Failed, 2)
		v := g.deliver(order("1"), consumer.DeadLetter, 3, 0)
		if !errors.Is(v.Err, errBroken) {
			t.Errorf("error %v, want the last one", v.Err)
		}
		if v := g.deliver(order("1"), consumer.DeadLetter, 4, 0); !strings.Contains(v.Err.Error(), errBroken.Error()) {
			t.Errorf("error %q, want the last one known in it", v.Err)
		}
		if len(g.runs) != 3 {
			t.Errorf("%d runs, want 3", len(g.runs))
		}
		g.then = func() error { return nil }
		g.deliver(order("1").Dead(g.deliver(order("1"), consumer.DeadLetter, 5, 0)), consumer.Ack, 6, 1)
	})
}

// A process that is killed in the transaction leaves nothing: only the broker knows how often it has handed the message out.
func TestSameTxCountsTheBrokersDeliveries(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		g := newGranter(t, d, consumer.SameTx())
		m := order("1")
		m.Delivery = 3
		g.then = func() error { return errBroken }
		g.deliver(m, consumer.DeadLetter, 1, 0)
		if len(g.runs) != 1 {
			t.Errorf("%d runs, want the third delivery's", len(g.runs))
		}
		m = order("2")
		m.Delivery = 4
		if v := g.deliver(m, consumer.DeadLetter, 1, 0); !errors.Is(v.Err, consumer.ErrExhausted) {
			t.Errorf("verdict %+v", v)
		}
		if len(g.runs) != 1 {
			t.Errorf("%d runs; the fourth delivery must not be one", len(g.runs))
		}
	})
}

// Claim-first, the ledger counts killed attempts by itself, and what the broker counts may be anything.
func TestClaimFirstIgnoresTheBrokersDeliveries(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		g := newGranter(t, d)
		m := order("1")
		m.Delivery = 1000
		g.deliver(m, consumer.Ack, 1, 1)
	})
}

func TestSameTxFailureThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		d.ledger = away{d.ledger} // for Claim; ClaimTx works
		g := newGranter(t, d, consumer.SameTx())
		g.then = func() error { return errBroken }
		v := g.deliver(order("1"), consumer.Retry, 1, 0)
		if !errors.Is(v.Err, errBroken) || !v.Counted {
			t.Errorf("verdict %+v", v)
		}
		if _, err := g.ledger.Lookup(context.Background(), idem.Request{Key: key("1")}); !errors.Is(err, idem.ErrNotFound) {
			t.Errorf("something stands: %v", err)
		}
	})
}

// Two deliveries at once: one commits, the other is busy or a replay; the grant is there once.
func TestSameTxAtOnce(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		c, err := consumer.New(d.ledger, name, func(ctx context.Context, m consumer.Message) error {
			if err := d.grant(ctx, m.ID); err != nil {
				return err
			}
			select {
			case <-time.After(50 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, consumer.SameTx(), consumer.Backoff(10*time.Millisecond, 20*time.Millisecond), consumer.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		queue := consumer.NewQueue("orders")
		for range 8 {
			if err := queue.Publish(t.Context(), order("1")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, queue, c, 4) }()
		testkit.Eventually(t, 60*time.Second, "all acknowledged", func() bool { return queue.Len() == 0 })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := d.grants(); n != 1 || len(queue.Dead()) != 0 {
			t.Errorf("%d grants and %d dead letters, want 1 and none", n, len(queue.Dead()))
		}
	})
}
