package sqlitestore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// endless writes until its context ends.
const endless = `WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n) INSERT INTO orders SELECT 'n' || x FROM n`

func TestTxAskedForAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, work := f.store.Open(t.Context(), f.won(request("1"), 1), 0)
	var calls sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		calls.Go(func() {
			tx, err := sqlitestore.Tx(ctx)
			if err != nil {
				t.Errorf("Tx: %v", err)
				return
			}
			f.order(tx, id)
		})
	}
	calls.Wait()
	f.complete(work)
	f.orders(4)
}

// Work whose goroutine goes on after the guard gave it up: the end of the transaction waits for the statement, the guard does not.
func TestEndBesideARunningStatement(t *testing.T) {
	t.Parallel()
	ends := map[string]func(context.Context, idem.Tx) error{
		"rollback": func(ctx context.Context, work idem.Tx) error { return work.Rollback(ctx) },
		"complete": func(ctx context.Context, work idem.Tx) error { return work.Complete(ctx, created()) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			workCtx, stop := context.WithCancel(t.Context())
			defer stop()
			_, tx, work := f.claimTx(q, 0)
			running, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				close(running)
				if _, err := tx.ExecContext(workCtx, endless); !errors.Is(err, context.Canceled) {
					t.Errorf("the statement: %v, want the context's error", err)
				}
			}()
			<-running
			f.eventually("the statement has the turn", func() bool {
				_, err := tx.ExecContext(soon(t), `SELECT 1`)
				return errors.Is(err, context.DeadlineExceeded)
			})
			if err := end(soon(t), work); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want the context's error", name, err)
			}
			stop()
			<-ended
			f.eventually("the gate is free", func() bool {
				answer, err := f.store.Claim(soon(t), again(q))
				return err == nil && answer.Outcome == idem.Won && answer.Claim.Attempt == 1
			})
			f.orders(0)
		})
	}
}

func TestCallersThatGiveUpLeaveNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, work := f.store.Open(t.Context(), f.won(request("waiting"), 1), 0)
	_, _, slow := f.work(f.won(request("slow"), 1))
	if _, err := sqlitestore.Tx(timedOut(ctx, t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Tx: %v, want the context's error", err)
	}
	if n, err := f.store.Purge(soon(t), nil, 10); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Purge: %d, %v, want the context's error", n, err)
	}
	if urgent, regular := f.store.Waiting(); urgent+regular != 0 {
		t.Fatalf("%d and %d still wait", urgent, regular)
	}
	f.complete(slow)
	tx, err := sqlitestore.Tx(ctx) // asks again
	if err != nil {
		t.Fatalf("Tx: %v", err)
	}
	f.order(tx, "1")
	f.complete(work)
	f.orders(1)
}

func timedOut(ctx context.Context, t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Another process has the writer: what cannot be written says so, and pending renewals stay pending.
func TestAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), briefly("1")
	claim := f.won(q, 1)
	other := openFile(t, f.path)
	_, _, work := f.work(f.won(request("slow"), 1))
	f.held(t.Context(), claim)
	f.clock.advance(2 * brief)

	// The other process gets the lock as this one's transaction ends, before the renewal is written.
	blocked := make(chan func() error)
	go func() {
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Errorf("the other process: %v", err)
		}
		blocked <- tx.Rollback
	}()
	f.complete(work) // in the same commit, so that there is no such gap
	free := <-blocked
	if left := f.stands(q, idem.Processing, 1).LeaseLeft; left != brief {
		t.Errorf("the lease is %v, want %v", left, brief)
	}
	for name, call := range map[string]func() error{
		"Claim":    func() error { _, err := f.store.Claim(soon(t), request("2")); return err },
		"Complete": func() error { return f.store.Complete(soon(t), claim, created()) },
		"Extend":   func() error { _, err := f.store.Extend(soon(t), []idem.Claim{claim}); return err },
		"Tx": func() error {
			ctx, _ := f.store.Open(soon(t), claim, 0)
			_, err := sqlitestore.Tx(ctx)
			return err
		},
	} {
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}
	if err := free(); err != nil {
		t.Fatal(err)
	}
	f.held(t.Context(), claim)
}
