package memstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func TestZeroOptions(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Options{})
	if s.Name() != "memory" {
		t.Errorf("name %q", s.Name())
	}
	q := request("1")
	q.Lease = time.Hour
	answer, err := s.Claim(t.Context(), q)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("Claim: %v, %v", answer.Outcome, err)
	}
	record, err := s.Lookup(t.Context(), q)
	if err != nil || record.LeaseLeft > time.Hour || record.LeaseLeft < 59*time.Minute {
		t.Errorf("lease left %v by the real clock, %v", record.LeaseLeft, err)
	}
	if name := memstore.New(memstore.Options{Name: "tests"}).Name(); name != "tests" {
		t.Errorf("name %q", name)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	for name, forgetful := range map[string]bool{"as a ledger": false, "as a store that may forget": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{Forgetful: forgetful})
			extended, completed := b.outcome(idem.Won, request("extended")).Claim, b.outcome(idem.Won, request("completed")).Claim
			tx := b.begin(request("open"), time.Minute)
			b.Forget()
			lost, err := b.Extend(t.Context(), []idem.Claim{extended})
			if err != nil || (len(lost) == 0) != forgetful {
				t.Errorf("Extend: lost %v, %v", lost, err)
			}
			if err := b.Complete(t.Context(), completed, idem.Result{}); (err == nil) != forgetful {
				t.Errorf("Complete: %v", err)
			}
			if err := tx.Complete(t.Context(), idem.Result{}); !errors.Is(err, idem.ErrClaimLost) {
				t.Errorf("Tx.Complete: %v, want ErrClaimLost", err)
			}
			if b.kept(extended.Request) != forgetful || b.kept(completed.Request) != forgetful || b.kept(request("open")) {
				t.Errorf("what is kept does not fit the answers")
			}
		})
	}
}

func TestLapse(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	b.Lapse(idem.K("order.create", "never"))
	done := request("done")
	b.complete(done, idem.Result{Status: 200})
	b.Lapse(done.Key)
	b.outcome(idem.Done, again(done))
	running := request("running")
	b.outcome(idem.Won, running)
	b.clock.Advance(2 * time.Minute)
	b.Lapse(running.Key)
	if record, err := b.Lookup(t.Context(), running); err != nil || record.LeaseLeft != -time.Minute {
		t.Errorf("a lease that was over already is now %v, %v", record.LeaseLeft, err)
	}
}

// TestRequestIDEndsWithItsRecord: neither expiry nor a takeover may leave an index entry behind that refuses honest calls.
func TestRequestIDEndsWithItsRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	first := request("1")
	b.complete(first, idem.Result{Status: 200})
	second := again(first)
	second.Key.ID = "2"
	b.outcome(idem.Mismatch, second)
	b.clock.Advance(time.Hour)
	b.outcome(idem.Won, second)
	b.clock.Advance(time.Minute)
	renewed := again(second)
	renewed.RequestID = "renewed"
	b.outcome(idem.Won, renewed)
	b.outcome(idem.Won, again(first))
}

// TestEverythingAtOnce is for the race detector: all methods, few keys, records that expire meanwhile.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{Forgetful: true})
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := range 300 {
				b.churn(request(fmt.Sprint((worker + i) % 5)))
				b.clock.Advance(time.Minute)
			}
		})
	}
	running.Wait()
	b.clock.Advance(24 * time.Hour)
	if n, err := b.Purge(t.Context(), nil, 100); err != nil || n > 5 {
		t.Errorf("Purge: %d, %v", n, err)
	}
	if n, err := b.Purge(t.Context(), nil, 100); err != nil || n != 0 {
		t.Errorf("Purge of nothing: %d, %v", n, err)
	}
}

// churn calls every method; who wins is chance, that no call fails but for a lost claim is not.
func (b bench) churn(q idem.Request) {
	ctx := b.Context()
	errs := []error{b.Ping(ctx), b.Issue(ctx, []idem.Token{{ID: "a", Key: q.Key, TTL: time.Minute}})}
	answer, err := b.Spend(ctx, "a", q)
	errs = append(errs, err)
	claim := idem.Claim{Request: q, Attempt: max(answer.Claim.Attempt, 1)}
	_, err = b.Extend(ctx, []idem.Claim{claim})
	errs = append(errs, err, b.Release(ctx, claim, idem.Failed, ""))
	answer, work, tx, err := b.ClaimTx(ctx, again(q), time.Minute)
	if errs = append(errs, err); tx != nil {
		errs = append(errs, tx.Complete(work, idem.Result{Body: []byte("body"), Kept: true}))
	}
	errs = append(errs, b.Complete(ctx, claim, idem.Result{}), b.Restore(ctx, claim, idem.Result{}))
	_, err = b.Purge(ctx, nil, 1)
	b.Lapse(q.Key)
	for _, err := range append(errs, err) {
		if err != nil && !errors.Is(err, idem.ErrClaimLost) {
			b.Errorf("outcome %v: %v", answer.Outcome, err)
		}
	}
}
