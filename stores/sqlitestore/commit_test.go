package sqlitestore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idemkit/idem"
)

func TestCommitFails(t *testing.T) {
	t.Parallel()
	const orphan = `INSERT INTO lines VALUES ('no such order')`
	open := func(t *testing.T) fixture {
		f := newFixture(t)
		f.exec(`CREATE TABLE lines (order_id TEXT REFERENCES orders(id) DEFERRABLE INITIALLY DEFERRED)`)
		return f
	}
	t.Run("claim first", func(t *testing.T) {
		t.Parallel()
		f, q := open(t), request("1")
		_, tx, work := f.work(f.won(q, 1))
		if _, err := tx.ExecContext(t.Context(), orphan); err != nil {
			t.Fatal(err)
		}
		if err := work.Complete(t.Context(), created()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) || errors.Is(err, idem.ErrClaimLost) {
			t.Fatalf("Complete: %v, want the commit's error", err)
		}
		f.leftFree(q)
	})
	t.Run("same transaction", func(t *testing.T) {
		t.Parallel()
		f, q := open(t), request("1")
		_, tx, work := f.claimTx(q, 0)
		if _, err := tx.ExecContext(t.Context(), orphan); err != nil {
			t.Fatal(err)
		}
		if err := work.Complete(t.Context(), created()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Fatalf("Complete: %v, want the commit's error", err)
		}
		f.records(0)
		f.won(again(q), 1)
	})
	t.Run("and the ledger cannot be read", func(t *testing.T) {
		t.Parallel()
		f, q := open(t), request("1")
		_, tx, work := f.work(f.won(q, 1))
		if _, err := tx.ExecContext(t.Context(), orphan); err != nil {
			t.Fatal(err)
		}
		if err := f.db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := work.Complete(t.Context(), created()); !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Fatalf("Complete: %v, want ErrOutcomeUnknown", err)
		}
	})
}

func TestCompleteUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f, q := newFixture(t), request("1")
	_, tx, work := f.work(f.won(q, 1))
	f.order(tx, "1")
	if err := work.Complete(over, created()); !errors.Is(err, context.Canceled) {
		t.Fatalf("Complete: %v, want the context's error", err)
	}
	f.orders(0)
	f.leftFree(q)

	alone := request("2")
	_, work = f.store.Open(t.Context(), f.won(alone, 1), 0)
	if err := work.Complete(over, created()); !errors.Is(err, context.Canceled) {
		t.Fatalf("Complete without a transaction: %v, want the context's error", err)
	}
	f.leftFree(alone)

	same := request("3")
	_, _, work = f.claimTx(same, 0)
	if err := work.Rollback(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("Rollback: %v", err)
	}
	f.eventually("the gate is free", func() bool {
		answer, err := f.store.Claim(t.Context(), again(same))
		return err == nil && answer.Outcome == idem.Won
	})
}
