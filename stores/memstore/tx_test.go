package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func (b bench) begin(q idem.Request, limit time.Duration) idem.Tx {
	b.Helper()
	answer, _, tx, err := b.ClaimTx(b.Context(), q, limit)
	if err != nil || answer.Outcome != idem.Won {
		b.Fatalf("ClaimTx: %v, %v", answer.Outcome, err)
	}
	return tx
}

func TestTransactionLimit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit, idle time.Duration
		lost        bool
	}{
		"within":       {time.Minute, time.Minute - 1, false},
		"at its limit": {time.Minute, time.Minute, true},
		"no limit":     {0, 1000 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			q := request("1")
			tx := b.begin(q, row.limit)
			b.clock.Advance(row.idle)
			if !row.lost {
				b.outcome(idem.Busy, again(q))
				if err := tx.Complete(t.Context(), idem.Result{Status: 200}); err != nil {
					t.Fatal(err)
				}
				b.outcome(idem.Done, again(q))
				return
			}
			b.outcome(idem.Won, again(q))
			if err := tx.Complete(t.Context(), idem.Result{Status: 200}); !errors.Is(err, idem.ErrClaimLost) {
				t.Fatalf("Complete: %v, want ErrClaimLost", err)
			}
		})
	}
}

func TestBesideOpenTransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	first := b.outcome(idem.Won, q).Claim
	b.Lapse(q.Key)
	tx := b.begin(again(q), time.Minute)
	for name, call := range map[string]func() error{
		"complete": func() error { return b.Complete(t.Context(), first, idem.Result{}) },
		"release":  func() error { return b.Release(t.Context(), first, idem.Failed, "") },
	} {
		if err := call(); !errors.Is(err, idem.ErrClaimLost) {
			t.Errorf("%s by the claim that is being taken over: %v, want ErrClaimLost", name, err)
		}
	}
	if lost, err := b.Extend(t.Context(), []idem.Claim{first}); err != nil || len(lost) != 1 {
		t.Errorf("Extend: lost %v, %v; want [0]", lost, err)
	}
	b.outcome(idem.Busy, again(q))
	stranger := again(q)
	stranger.Subject = "mallory"
	if answer := b.outcome(idem.Foreign, stranger); answer.Record.Key != (idem.Key{}) {
		t.Errorf("a foreign answer tells %+v", answer.Record)
	}
	other := again(q)
	other.Key.ID = "2"
	b.outcome(idem.Busy, other)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Complete(t.Context(), first, idem.Result{Status: 200}); err != nil {
		t.Errorf("Complete after the rollback: %v", err)
	}
}

func TestRestoredUnderOpenTransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	tx := b.begin(q, time.Minute)
	vouched := idem.Claim{Request: again(q), Attempt: 4}
	if err := b.Restore(t.Context(), vouched, idem.Result{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Complete(t.Context(), idem.Result{Status: 500}); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("Complete: %v, want ErrClaimLost", err)
	}
	if r := b.outcome(idem.Done, again(q)).Record; r.Attempt != 4 || r.Result.Status != 201 {
		t.Errorf("record %+v", r)
	}
}

func TestTransactionEndsOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, idem.Tx) error{
		"completed":   func(ctx context.Context, tx idem.Tx) error { return tx.Complete(ctx, idem.Result{Status: 200}) },
		"rolled back": func(ctx context.Context, tx idem.Tx) error { return tx.Rollback(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			q := request("1")
			tx := b.begin(q, time.Minute)
			if err := end(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			if err := tx.Complete(t.Context(), idem.Result{Status: 500}); !errors.Is(err, idem.ErrClaimLost) {
				t.Errorf("Complete: %v, want ErrClaimLost", err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Errorf("Rollback after the end: %v", err)
			}
			if b.kept(q) != (name == "completed") {
				t.Errorf("record kept: %t", b.kept(q))
			}
		})
	}
}

// TestRollbackOfAnother: a transaction past its limit must not let go of the key that another holds by now.
func TestRollbackOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	slow := b.begin(q, time.Minute)
	b.clock.Advance(time.Minute)
	quick := b.begin(again(q), time.Minute)
	if err := slow.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.outcome(idem.Busy, again(q))
	if err := quick.Complete(t.Context(), idem.Result{Status: 200}); err != nil {
		t.Fatal(err)
	}
	b.outcome(idem.Done, again(q))
}
