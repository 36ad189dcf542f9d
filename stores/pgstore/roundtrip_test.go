package pgstore_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

// meter counts round trips: a reply that comes after something was sent.
type meter struct{ trips atomic.Int64 }

func (m *meter) configure(c *pgxpool.Config) {
	dial := c.ConnConfig.DialFunc
	c.MaxConns = 1
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &metered{Conn: conn, meter: m}, err
	}
}

type metered struct {
	net.Conn
	meter *meter
	sent  atomic.Bool
}

func (c *metered) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.sent.Swap(false) {
		c.meter.trips.Add(1)
	}
	return n, err
}

// writes counts the transactions that wrote, by the numbers that the server gave out. The server must be the test's own.
func (l *lab) writes() int64 {
	return query[int64](l, `SELECT txid_snapshot_xmax(txid_current_snapshot())`)
}

func TestRoundTripsAndCommits(t *testing.T) {
	t.Parallel()
	server := testkit.PostgresServer(t)
	var m meter
	db := server.Database(t)
	db.Exec(t, script(t))
	db.Exec(t, `CREATE TABLE business (id text)`)
	pool := db.Pool(t, m.configure)
	metered := &lab{T: t, db: db, pool: pool, store: open(t, pool)}
	counter := &lab{T: t, db: db, pool: db.Pool(t)}
	write := func(ctx context.Context) { metered.insertBusiness(ctx) }

	for _, row := range []struct {
		name          string
		trips, writes int64
		run           func(q idem.Request)
	}{
		{"a first claim", 1, 1, func(q idem.Request) { metered.won(q, 1) }},
		{"claim, work elsewhere, finish", 2, 2, func(q idem.Request) {
			_, tx := metered.store.Open(t.Context(), metered.won(q, 1), time.Minute)
			metered.commit(t.Context(), tx)
		}},
		{"claim, work in the transaction, finish: begin and one statement are the work's", 4, 2, func(q idem.Request) {
			ctx, tx := metered.store.Open(t.Context(), metered.won(q, 1), time.Minute)
			write(ctx)
			metered.commit(ctx, tx)
		}},
		{"the same transaction: as many as begin, the statement and commit have alone", 3, 1, func(q idem.Request) {
			ctx, tx := metered.begun(q)
			write(ctx)
			metered.commit(ctx, tx)
		}},
	} {
		row.run(request("warm up: " + row.name)) // the driver prepares each statement once a connection
		trips, writes := m.trips.Load(), counter.writes()
		row.run(request(row.name))
		if got := m.trips.Load() - trips; got != row.trips {
			t.Errorf("%s: %d round trips, want %d", row.name, got, row.trips)
		}
		if got := counter.writes() - writes; got != row.writes {
			t.Errorf("%s: %d transactions wrote, want %d", row.name, got, row.writes)
		}
	}
}

func TestDuplicatesWriteNothing(t *testing.T) {
	t.Parallel()
	server := testkit.PostgresServer(t)
	db := server.Database(t)
	db.Exec(t, script(t))
	pool := db.Pool(t)
	l := &lab{T: t, db: db, pool: pool, store: open(t, pool)}
	running, done := request("running"), request("done")
	l.won(running, 1)
	if err := l.store.Complete(t.Context(), l.won(done, 1), result()); err != nil {
		t.Fatal(err)
	}
	before := l.writes()
	for range 10 {
		l.asked(idem.Busy, again(running))
		l.asked(idem.Done, again(done))
	}
	if got := l.writes() - before; got != 0 {
		t.Errorf("twenty duplicates wrote in %d transactions", got)
	}
}

// Renewals are the most frequent write: they must touch no index.
func TestRenewalsAreHeapOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	claim := l.won(request("1"), 1)
	const renewals = 5
	for range renewals {
		if lost, err := l.store.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) > 0 {
			t.Fatalf("Extend: %v, %v", lost, err)
		}
	}
	l.store.Close() // a session's counters are published at its end
	testkit.Eventually(t, 10*time.Second, "the renewals are counted, all as heap-only updates", func() bool {
		return query[bool](l, `SELECT n_tup_upd = $1 AND n_tup_hot_upd = $1 FROM pg_stat_user_tables WHERE relname = 'idempotent_record'`, renewals)
	})
}
