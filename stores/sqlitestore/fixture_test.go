package sqlitestore_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

const lease = 30 * time.Second

// clock is the ledgers' of one test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is a ledger in a file of its own, beside a business table, with calls that fail the test.
type fixture struct {
	*testing.T
	path  string
	db    *sql.DB
	clock *clock
	store *sqlitestore.Store
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{T: t, path: filepath.Join(t.TempDir(), "ledger.db"), clock: newClock()}
	f.db = openFile(t, f.path)
	if err := sqlitestore.Migrate(t.Context(), f.db, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	f.exec(`CREATE TABLE orders (id TEXT PRIMARY KEY)`)
	f.store = f.ledger(f.db)
	return f
}

func openFile(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func (f fixture) ledger(db *sql.DB) *sqlitestore.Store {
	f.Helper()
	store, err := sqlitestore.New(db, sqlitestore.Options{Now: f.clock.Now})
	if err != nil {
		f.Fatal(err)
	}
	return store
}

// another is a ledger on the same file as another process has it.
func (f fixture) another() *sqlitestore.Store {
	f.Helper()
	return f.ledger(openFile(f, f.path))
}

func (f fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.db.ExecContext(f.Context(), query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

func (f fixture) count(query string, args ...any) (n int) {
	f.Helper()
	if err := f.db.QueryRowContext(f.Context(), query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

func (f fixture) orders(want int) {
	f.Helper()
	if got := f.count(`SELECT count(*) FROM orders`); got != want {
		f.Fatalf("%d orders, want %d", got, want)
	}
}

func (f fixture) records(want int) {
	f.Helper()
	if got := f.count(`SELECT count(*) FROM idempotent_record`); got != want {
		f.Fatalf("%d records, want %d", got, want)
	}
}

func request(id string) idem.Request {
	return idem.Request{
		Key: idem.K("order.create", id), Subject: "alice", Fingerprint: []byte("payload"),
		Owner: idem.NewOwner(), Lease: lease, Retention: 24 * time.Hour,
	}
}

func again(q idem.Request) idem.Request {
	q.Owner = idem.NewOwner()
	return q
}

func created() idem.Result {
	return idem.Result{Status: 201, Header: [][2]string{{"Location", "/orders/1"}}, Body: []byte("made"), Kept: true}
}

func (f fixture) claim(q idem.Request, want idem.Outcome) idem.Answer {
	f.Helper()
	answer, err := f.store.Claim(f.Context(), q)
	if err != nil || answer.Outcome != want {
		f.Fatalf("Claim: %v, %v; want %v", answer.Outcome, err, want)
	}
	return answer
}

func (f fixture) won(q idem.Request, attempt int) idem.Claim {
	f.Helper()
	claim := f.claim(q, idem.Won).Claim
	if claim.Attempt != attempt {
		f.Fatalf("attempt %d, want %d", claim.Attempt, attempt)
	}
	return claim
}

func (f fixture) stands(q idem.Request, state idem.State, attempt int) idem.Record {
	f.Helper()
	record, err := f.store.Lookup(f.Context(), q)
	if err != nil || record.State != state || record.Attempt != attempt {
		f.Fatalf("record %s at attempt %d, %v; want %s at %d", record.State, record.Attempt, err, state, attempt)
	}
	return record
}

// work opens the claim's work and its transaction.
func (f fixture) work(c idem.Claim) (context.Context, sqlitestore.DBTX, idem.Tx) {
	f.Helper()
	ctx, work := f.store.Open(f.Context(), c, 0)
	tx, err := sqlitestore.Tx(ctx)
	if err != nil {
		f.Fatalf("Tx: %v", err)
	}
	return ctx, tx, work
}

func (f fixture) claimTx(q idem.Request, limit time.Duration) (context.Context, sqlitestore.DBTX, idem.Tx) {
	f.Helper()
	answer, ctx, work, err := f.store.ClaimTx(f.Context(), q, limit)
	if err != nil || answer.Outcome != idem.Won {
		f.Fatalf("ClaimTx: %v, %v; want won", answer.Outcome, err)
	}
	tx, err := sqlitestore.Tx(ctx)
	if err != nil {
		f.Fatalf("Tx: %v", err)
	}
	return ctx, tx, work
}

func (f fixture) order(tx sqlitestore.DBTX, id string) {
	f.Helper()
	if _, err := tx.ExecContext(f.Context(), `INSERT INTO orders VALUES (?)`, id); err != nil {
		f.Fatalf("insert order: %v", err)
	}
}

func (f fixture) complete(work idem.Tx) {
	f.Helper()
	if err := work.Complete(f.Context(), created()); err != nil {
		f.Fatalf("Complete: %v", err)
	}
}

func (f fixture) rollback(work idem.Tx) {
	f.Helper()
	if err := work.Rollback(f.Context()); err != nil {
		f.Fatalf("Rollback: %v", err)
	}
}

// eventually polls until done is true.
func (f fixture) eventually(what string, done func() bool) {
	f.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case <-poll.C:
		case <-deadline:
			f.Fatalf("not within a minute: %s", what)
		}
	}
}
