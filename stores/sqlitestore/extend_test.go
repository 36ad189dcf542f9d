package sqlitestore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// brief is short enough to wait a third of it.
const brief = 60 * time.Millisecond

func briefly(id string) idem.Request {
	q := request(id)
	q.Lease = brief
	return q
}

func (f fixture) held(ctx context.Context, claims ...idem.Claim) {
	f.Helper()
	if lost, err := f.store.Extend(ctx, claims); err != nil || len(lost) > 0 {
		f.Fatalf("Extend: lost %v, %v; want all held", lost, err)
	}
}

func TestExtendRenewsAllAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kept, taken, done, released := request("kept"), request("taken"), request("done"), request("released")
	claims := []idem.Claim{f.won(taken, 1), f.won(kept, 1), f.won(done, 1), f.won(released, 1)}
	f.clock.advance(2 * lease)
	f.won(again(taken), 2)
	if err := f.store.Complete(t.Context(), claims[2], created()); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Release(t.Context(), claims[3], idem.Failed, ""); err != nil {
		t.Fatal(err)
	}
	lost, err := f.store.Extend(t.Context(), claims)
	if err != nil || !slices.Equal(lost, []int{0, 2, 3}) {
		t.Fatalf("Extend: lost %v, %v; want 0, 2 and 3", lost, err)
	}
	if left := f.stands(kept, idem.Processing, 1).LeaseLeft; left != lease {
		t.Fatalf("a lapsed lease that nobody took is renewed to %v, want %v", left, lease)
	}
	if lost, err := f.store.Extend(t.Context(), nil); lost != nil || err != nil {
		t.Fatalf("Extend of nothing: %v, %v", lost, err)
	}
}

// A transaction that stands open for three leases keeps every renewal from being written, and loses nobody's claim.
func TestOpenTransactionLosesNoClaim(t *testing.T) {
	t.Parallel()
	ends := map[string]func(fixture, idem.Tx){"completed": fixture.complete, "rolled back": fixture.rollback}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q, slow := newFixture(t), briefly("waiting"), briefly("slow")
			waiting := f.won(q, 1)
			own := f.won(slow, 1)
			ctx, tx, work := f.work(own)
			f.order(tx, "1")
			for range 3 {
				f.clock.advance(brief)
				f.held(t.Context(), waiting, own)
				f.held(ctx, own)
				// A duplicate beside the transaction finds the claim alive, and so does one that reads.
				f.claim(again(q), idem.Busy)
				if !f.stands(q, idem.Processing, 1).Live() {
					t.Fatal("the record of a waiting renewal looks lapsed")
				}
			}
			f.clock.advance(brief / 2)
			end(f, work)

			if left := f.stands(q, idem.Processing, 1).LeaseLeft; left != brief {
				t.Fatalf("the lease is %v at the end of the transaction, want %v", left, brief)
			}
			if answer, err := f.another().Claim(t.Context(), again(q)); err != nil || answer.Outcome != idem.Busy {
				t.Fatalf("another process: %v, %v; want busy", answer.Outcome, err)
			}
			if err := f.store.Complete(t.Context(), waiting, created()); err != nil {
				t.Fatalf("Complete after it: %v", err)
			}
		})
	}
}

// Where nobody asked for renewal, the lease of a claim ends in spite of the transaction of another.
func TestOpenTransactionKeepsNoDeadClaim(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("dead")
	f.won(q, 1)
	_, _, work := f.work(f.won(request("slow"), 1))
	f.clock.advance(2 * lease)
	took := make(chan idem.Answer, 1)
	go func() {
		answer, err := f.store.Claim(t.Context(), again(q))
		if err != nil {
			t.Errorf("Claim: %v", err)
		}
		took <- answer
	}()
	f.complete(work)
	if answer := <-took; answer.Outcome != idem.Won || answer.Claim.Attempt != 2 {
		t.Fatalf("takeover: %+v", answer)
	}
}

// A claim that waits for the writer is judged after the renewals that wait with it.
func TestRenewalGoesBeforeTakeover(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("contested")
	holder := f.won(q, 1)
	_, _, work := f.work(f.won(request("slow"), 1))
	f.clock.advance(2 * lease)

	var calls sync.WaitGroup
	calls.Go(func() {
		answer, err := f.store.Claim(t.Context(), again(q))
		if err != nil || answer.Outcome != idem.Busy {
			t.Errorf("the duplicate: %v, %v; want busy", answer.Outcome, err)
		}
	})
	f.eventually("the duplicate waits", func() bool { _, regular := f.store.Waiting(); return regular == 1 })
	calls.Go(func() {
		if lost, err := f.store.Extend(t.Context(), []idem.Claim{holder}); err != nil || len(lost) > 0 {
			t.Errorf("the holder: lost %v, %v", lost, err)
		}
	})
	f.eventually("the renewal waits", func() bool { urgent, _ := f.store.Waiting(); return urgent == 1 })
	f.complete(work)
	calls.Wait()
}

func TestNotedRenewalsOfEndedClaims(t *testing.T) {
	t.Parallel()
	f, done, released := newFixture(t), briefly("done"), briefly("released")
	claims := []idem.Claim{f.won(done, 1), f.won(released, 1)}
	_, _, work := f.work(f.won(request("slow"), 1))
	f.held(t.Context(), claims...)
	var calls sync.WaitGroup
	calls.Go(func() {
		if err := f.store.Complete(t.Context(), claims[0], created()); err != nil {
			t.Errorf("Complete: %v", err)
		}
	})
	calls.Go(func() {
		if err := f.store.Release(t.Context(), claims[1], idem.Processing, "gateway timed out"); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
	f.rollback(work)
	calls.Wait()
	f.stands(done, idem.Succeeded, 1)
	if f.stands(released, idem.Processing, 1).Live() {
		t.Fatal("a released claim was renewed")
	}
	f.won(again(released), 2)
}

func TestExtendUnderContexts(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	claim := f.won(q, 1)
	_, _, work := f.work(f.won(request("slow"), 1))

	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	f.held(soon, claim) // a third of the lease would be ten seconds

	stopped, stop := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := f.store.Extend(stopped, []idem.Claim{claim})
		errs <- err
	}()
	f.eventually("the renewal waits", func() bool { urgent, _ := f.store.Waiting(); return urgent == 1 })
	stop()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatalf("Extend under a cancelled context: %v", err)
	}
	if _, err := f.store.Extend(stopped, []idem.Claim{claim}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Extend under an ended context: %v", err)
	}
	f.complete(work)
}

func TestNestedCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.won(request("other"), 1)
	done := request("done")
	if err := f.store.Complete(t.Context(), f.won(done, 1), created()); err != nil {
		t.Fatal(err)
	}
	ctx, _, work := f.work(f.won(request("outer"), 1))
	inner, _ := f.store.Open(ctx, other, 0)
	calls := map[string]func() error{
		"Claim": func() error { _, err := f.store.Claim(ctx, request("new")); return err },
		"ClaimTx": func() error {
			_, _, _, err := f.store.ClaimTx(ctx, request("new"), 0) // the contract has four
			return err
		},
		"Complete":      func() error { return f.store.Complete(ctx, other, created()) },
		"Release":       func() error { return f.store.Release(ctx, other, idem.Failed, "") },
		"Purge":         func() error { _, err := f.store.Purge(ctx, nil, 1); return err },
		"Tx of another": func() error { _, err := sqlitestore.Tx(inner); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, sqlitestore.ErrNested) {
			t.Errorf("%s inside the own transaction: %v, want ErrNested", name, err)
		}
	}
	f.held(ctx, other)
	if answer, err := f.store.Claim(ctx, again(done)); err != nil || answer.Outcome != idem.Done {
		t.Errorf("a duplicate needs no writer: %v, %v", answer.Outcome, err)
	}
	if err := f.store.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	f.complete(work)
	if err := f.store.Release(ctx, other, idem.Failed, ""); err != nil {
		t.Errorf("Release from the context of work that ended: %v", err)
	}
}
