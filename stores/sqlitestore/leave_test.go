package sqlitestore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

// impatient is a ledger whose handle waits 20 ms for another process.
func impatient(t *testing.T) (store *Store, another *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	another, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=20&_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = db.Close(), another.Close() })
	if err := Migrate(t.Context(), db, Options{}); err != nil {
		t.Fatal(err)
	}
	if store, err = New(db, Options{}); err != nil {
		t.Fatal(err)
	}
	return store, another
}

func leased(id string, lease time.Duration) idem.Request {
	return idem.Request{Key: idem.K("order.create", id), Owner: idem.NewOwner(), Lease: lease, Retention: time.Hour}
}

func won(t *testing.T, s *Store, q idem.Request) idem.Claim {
	t.Helper()
	answer, err := s.Claim(t.Context(), q)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("Claim: %v, %v; want won", answer.Outcome, err)
	}
	return answer.Claim
}

// A renewal that could not be written when the gate was left is written by whoever comes next, before it judges.
func TestRenewalOutlivesAFailedLeave(t *testing.T) {
	t.Parallel()
	store, another := impatient(t)
	claim := won(t, store, leased("1", time.Millisecond))
	if err := store.gate.enter(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	claim.Lease = time.Hour // as it is to be renewed
	store.gate.mu.Lock()
	store.gate.note([]idem.Claim{claim})
	store.gate.mu.Unlock()

	blocking, err := another.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	store.leave(t.Context())
	if store.gate.held || len(store.gate.pending) != 1 {
		t.Fatalf("held %v, %d pending; want free with the renewal kept", store.gate.held, len(store.gate.pending))
	}
	if err := blocking.Rollback(); err != nil {
		t.Fatal(err)
	}
	duplicate := leased("1", time.Hour)
	if answer, err := store.Claim(t.Context(), duplicate); err != nil || answer.Outcome != idem.Busy {
		t.Fatalf("while it is pending: %v, %v; want busy", answer.Outcome, err)
	}
	won(t, store, leased("2", time.Hour))
	if len(store.gate.pending) != 0 {
		t.Fatal("still pending after the next writer")
	}
	record, err := store.Lookup(t.Context(), duplicate)
	if err != nil || record.LeaseLeft < time.Minute {
		t.Fatalf("lease %v, %v; want the renewed one", record.LeaseLeft, err)
	}
}

// Another process that has the writer beyond the handle's busy timeout is an error like any other; ClaimTx asks again as long as it may.
func TestAnotherProcessBeyondTheBusyTimeout(t *testing.T) {
	t.Parallel()
	store, another := impatient(t)
	claim := won(t, store, leased("1", time.Hour))
	blocking, err := another.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Claim":    func() error { _, err := store.Claim(t.Context(), leased("2", time.Hour)); return err },
		"Extend":   func() error { _, err := store.Extend(t.Context(), []idem.Claim{claim}); return err },
		"Complete": func() error { return store.Complete(t.Context(), claim, idem.Result{}) },
		"Release":  func() error { return store.Release(t.Context(), claim, idem.Failed, "") },
		"Purge":    func() error { _, err := store.Purge(t.Context(), nil, 1); return err },
		"Tx": func() error {
			ctx, _ := store.Open(t.Context(), claim, 0)
			_, err := Tx(ctx)
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !isBusy(err) {
			t.Errorf("%s: %v, want SQLITE_BUSY", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if answer, _, _, err := store.ClaimTx(ctx, leased("2", time.Hour), 0); err != nil || answer.Outcome != idem.Busy {
		t.Errorf("ClaimTx: %v, %v; want busy", answer.Outcome, err)
	}
	if store.gate.held {
		t.Error("a failed call holds the gate")
	}

	answers := make(chan error, 1)
	go func() {
		_, _, work, err := store.ClaimTx(t.Context(), leased("3", time.Hour), 0)
		if err == nil {
			err = work.Complete(t.Context(), idem.Result{Status: 204})
		}
		answers <- err
	}()
	if err := blocking.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-answers; err != nil {
		t.Errorf("ClaimTx once the other is done: %v", err)
	}
	if err := store.Complete(t.Context(), claim, idem.Result{Status: 204}); err != nil {
		t.Errorf("Complete once the other is done: %v", err)
	}
}

// A store may be there before its table is.
func TestNewBeforeMigrate(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := New(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Claim(t.Context(), leased("1", time.Hour)); err == nil {
		t.Fatal("claimed without a table")
	}
	if err := Migrate(t.Context(), db, Options{}); err != nil {
		t.Fatal(err)
	}
	won(t, store, leased("1", time.Hour))
	if store.ready.Load() == nil {
		t.Fatal("the statements are not prepared")
	}
}

// Renewals that wait for a transaction are in its commit, so that no other process comes between. The clock, which each renewal asks, tells when it was.
func TestRenewalsCommitWithTheWork(t *testing.T) {
	t.Parallel()
	store, another := impatient(t)
	if _, err := another.ExecContext(t.Context(), `CREATE TABLE orders (id TEXT)`); err != nil {
		t.Fatal(err)
	}
	waiting := won(t, store, leased("waiting", 3*time.Millisecond))
	ctx, work := store.Open(t.Context(), won(t, store, leased("slow", time.Hour)), 0)
	tx, err := Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES ('1')`); err != nil {
		t.Fatal(err)
	}
	if lost, err := store.Extend(t.Context(), []idem.Claim{waiting}); err != nil || len(lost) > 0 {
		t.Fatalf("Extend: lost %v, %v", lost, err)
	}
	asked, late := 0, 0
	store.now = func() time.Time {
		var committed int
		if err := another.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(&committed); err != nil {
			t.Error(err)
		}
		asked++
		late += committed
		return time.Now()
	}
	if err := work.Complete(t.Context(), idem.Result{Status: 204}); err != nil {
		t.Fatal(err)
	}
	if asked < 2 || late > 0 {
		t.Errorf("the clock was asked %d times, %d of them after the commit", asked, late)
	}
	if len(store.gate.pending) != 0 {
		t.Error("still pending")
	}
}
