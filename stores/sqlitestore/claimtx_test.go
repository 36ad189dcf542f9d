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

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestClaimTxMeetsAnother(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ask  func(f fixture, q idem.Request) (idem.Answer, error)
		want idem.Outcome
	}{
		"same process, same key": {func(f fixture, q idem.Request) (idem.Answer, error) {
			answer, _, _, err := f.store.ClaimTx(soon(f.T), again(q), 0)
			return answer, err
		}, idem.Busy},
		"same process, another key": {func(f fixture, _ idem.Request) (idem.Answer, error) {
			answer, _, _, err := f.store.ClaimTx(soon(f.T), request("other"), 0)
			return answer, err
		}, idem.Busy},
		"another process": {func(f fixture, q idem.Request) (idem.Answer, error) {
			answer, _, _, err := f.another().ClaimTx(soon(f.T), again(q), 0)
			return answer, err
		}, idem.Busy},
		"Claim of the same key does not wait": {func(f fixture, q idem.Request) (idem.Answer, error) {
			return f.store.Claim(f.Context(), again(q))
		}, idem.Busy},
		"Claim of the same request id does not wait": {func(f fixture, q idem.Request) (idem.Answer, error) {
			other := request("other")
			other.RequestID = q.RequestID
			return f.store.Claim(f.Context(), other)
		}, idem.Busy},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			q.RequestID = "request-1"
			_, tx, work := f.claimTx(q, 0)
			f.order(tx, "1")
			if answer, err := tt.ask(f, q); err != nil || answer.Outcome != tt.want {
				t.Fatalf("%v, %v; want %v", answer.Outcome, err, tt.want)
			}
			f.complete(work)
			f.stands(q, idem.Succeeded, 1)
		})
	}
}

func TestClaimOfAnotherKeyWaitsForItsContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, _, work := f.claimTx(request("1"), 0)
	if _, err := f.store.Claim(soon(t), request("2")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Claim: %v, want the context's error", err)
	}
	if _, err := f.another().Claim(soon(t), request("2")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Claim of another process: %v, want the context's error", err)
	}
	f.rollback(work)
	f.won(request("2"), 1)
}

func TestClaimTxAnswersWithoutWaiting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	busy, done := request("busy"), request("done")
	f.won(busy, 1)
	if err := f.store.Complete(t.Context(), f.won(done, 1), created()); err != nil {
		t.Fatal(err)
	}
	foreign := again(done)
	foreign.Subject = "mallory"
	other := again(done)
	other.Fingerprint = []byte("another")
	_, _, work := f.claimTx(request("slow"), 0)
	for q, want := range map[*idem.Request]idem.Outcome{&busy: idem.Busy, &done: idem.Done, &foreign: idem.Foreign, &other: idem.Mismatch} {
		duplicate := again(*q)
		answer, ctx, tx, err := f.store.ClaimTx(t.Context(), duplicate, 0)
		if err != nil || answer.Outcome != want || ctx != nil || tx != nil {
			t.Errorf("ClaimTx: %v, %v, %v, %v; want %v and nothing", answer.Outcome, ctx, tx, err, want)
		}
	}
	f.complete(work)
}

// Duplicates that wait get the result as soon as it is there, and one of them takes over where there is none.
func TestDuplicatesWaitForTheTransaction(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		end      func(fixture, idem.Tx)
		won      int
		attempts int
	}{
		"completed":   {fixture.complete, 0, 1},
		"rolled back": {fixture.rollback, 1, 1},
	}
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			_, _, work := f.claimTx(q, 0)
			const duplicates = 6
			var calls sync.WaitGroup
			outcomes := make(chan idem.Outcome, duplicates)
			for range duplicates {
				calls.Go(func() {
					answer, _, tx, err := f.store.ClaimTx(t.Context(), again(q), 0)
					if err != nil {
						t.Errorf("ClaimTx: %v", err)
					}
					if tx != nil {
						f.complete(tx)
					}
					outcomes <- answer.Outcome
				})
			}
			f.eventually("all wait", func() bool { _, regular := f.store.Waiting(); return regular == duplicates })
			if open := f.db.Stats().InUse; open != 1 {
				t.Errorf("%d connections in use while duplicates wait, want the transaction's", open)
			}
			tt.end(f, work)
			calls.Wait()
			close(outcomes)
			got := map[idem.Outcome]int{}
			for outcome := range outcomes {
				got[outcome]++
			}
			if got[idem.Won] != tt.won || got[idem.Done] != duplicates-tt.won {
				t.Errorf("outcomes %v", got)
			}
			f.stands(q, idem.Succeeded, tt.attempts)
		})
	}
}

func TestClaimTxTakesOver(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	first := f.won(q, 1)
	f.clock.advance(2 * lease)
	answer, _, work, err := f.store.ClaimTx(t.Context(), again(q), 0)
	if err != nil || answer.Claim.Attempt != 2 {
		t.Fatalf("ClaimTx: %+v, %v", answer, err)
	}
	f.rollback(work)
	f.stands(q, idem.Processing, 1) // as it was
	f.held(t.Context(), first)
}

func TestClaimTxOfItsOwnClaim(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	f.won(q, 1)
	_, _, work := f.claimTx(q, 0)
	f.complete(work)
	f.stands(q, idem.Succeeded, 1)
}

func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	t.Run("is rolled back and lets others write", func(t *testing.T) {
		t.Parallel()
		f, q := newFixture(t), request("1")
		ctx, tx, work := f.claimTx(q, 500*time.Millisecond)
		f.order(tx, "1")
		f.won(request("2"), 1) // waits until the limit
		f.refused(ctx, tx)
		if err := work.Complete(t.Context(), created()); !errors.Is(err, sqlitestore.ErrWorkEnded) {
			t.Fatalf("Complete: %v, want ErrWorkEnded", err)
		}
		f.rollback(work)
		f.orders(0)
		f.won(again(q), 1)
	})
	t.Run("claim first: left for the next", func(t *testing.T) {
		t.Parallel()
		f, q := newFixture(t), request("1")
		ctx, work := f.store.Open(t.Context(), f.won(q, 1), 20*time.Millisecond)
		if _, err := sqlitestore.Tx(ctx); err != nil {
			t.Fatal(err)
		}
		f.eventually("the transaction ends", func() bool { _, err := sqlitestore.Tx(ctx); return err != nil })
		if err := work.Complete(t.Context(), created()); !errors.Is(err, sqlitestore.ErrWorkEnded) {
			t.Fatalf("Complete: %v, want ErrWorkEnded", err)
		}
		f.leftFree(q)
	})
	t.Run("in use is not idle", func(t *testing.T) {
		t.Parallel()
		f, q := newFixture(t), request("1")
		const limit = time.Second
		_, tx, work := f.claimTx(q, limit)
		begun := time.Now()
		tick := time.NewTicker(limit / 20)
		defer tick.Stop()
		for time.Since(begun) < limit+limit/2 {
			<-tick.C
			if _, err := tx.ExecContext(t.Context(), `UPDATE orders SET id = id`); err != nil {
				t.Fatalf("after %v: %v", time.Since(begun), err)
			}
		}
		f.complete(work)
	})
}
