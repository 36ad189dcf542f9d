package idem_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// The traps that articles on the subject name: what each leads to does not happen here.
func TestTraps(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]func(t *testing.T, r *rig){
		"too coarse a key rejects a different operation":          tooCoarse,
		"too fine a key recognises nothing":                       tooFine,
		"a unique index alone tells the caller nothing":           uniqueIndexAlone,
		"Redis alone is not idempotency":                          redisAlone,
		"processing without a time limit":                         processingForEver,
		"records never cleaned up":                                neverCleanedUp,
		"an unlock without comparing the value":                   unlockWithoutComparing,
		"a status in Redis for a transaction that rolled back":    statusWithoutCommit,
		"succeeded written over a claim that another took over":   successOverAnother,
		"a lost answer is told as a duplicate":                    lostAnswer,
		"a business failure forgets which attempt it was":         failureForgets,
		"fields put together so that a:bc equals ab:c":            fieldsRunTogether,
		"a token that is checked first and deleted second":        checkThenDelete,
		"evidence that is rolled back with the business":          evidenceRolledBack,
		"a different request id spends the token of another form": otherRequestID,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trap(t, newRig(t, both))
		})
	}
}

func tooCoarse(t *testing.T, r *rig) {
	work := succeed("receipt")
	r.must(t, r.order(t, "request-1"), work.work)
	r.must(t, payload(r.order(t, "request-2"), "another thing of the same user"), work.work)
	if work.runs.Load() != 2 {
		t.Errorf("%d of two operations ran", work.runs.Load())
	}
}

func tooFine(t *testing.T, r *rig) {
	work := succeed("receipt")
	for _, requestID := range []string{"retry-1", "retry-2", "retry-3"} { // a client that makes a new one each time
		call := r.order(t, requestID)
		call.Key = idem.K("refund", "R-1")
		r.must(t, call, work.work)
	}
	if work.runs.Load() != 1 {
		t.Errorf("one refund was made %d times", work.runs.Load())
	}
}

func uniqueIndexAlone(t *testing.T, r *rig) {
	call := r.order(t, "request-1")
	r.must(t, call, succeed("receipt").work)
	if reply := r.must(t, call, succeed("second").work); !reply.Replayed || string(reply.Result.Body) != "receipt" || reply.Result.Status != 201 {
		t.Errorf("the duplicate is told %+v", reply)
	}
}

func redisAlone(t *testing.T, r *rig) {
	work, call := succeed("receipt"), r.order(t, "request-1")
	for range 3 {
		r.entrance.Forget()
		r.must(t, call, work.work)
		drain(t, r.Engine)
	}
	if work.runs.Load() != 1 {
		t.Errorf("ran %d times", work.runs.Load())
	}
}

func processingForEver(t *testing.T, r *rig) {
	call := r.order(t, "request-1")
	for _, lease := range []time.Duration{0, -time.Second} {
		endless := call
		endless.Lease = lease
		if _, err := r.Do(t.Context(), endless, succeed("never").work); !errors.Is(err, idem.ErrInvalid) {
			t.Errorf("a lease of %v: %v", lease, err)
		}
	}
	died := call.Request
	died.Owner, died.Lease = idem.NewOwner(), 20*time.Millisecond
	if _, err := r.ledger.Claim(t.Context(), died); err != nil {
		t.Fatal(err)
	}
	if reply := r.must(t, call, succeed("receipt").work); reply.Attempt != 2 {
		t.Errorf("after a crash: %+v", reply)
	}
}

func neverCleanedUp(t *testing.T, r *rig) {
	var ahead atomic.Int64
	ledger := memstore.New(memstore.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	engine, err := idem.NewEngine(idem.EngineConfig{Ledger: ledger})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		call := r.order(t, id)
		call.TokenID, call.Retention = "", idem.DefaultRetention
		if _, err := engine.Do(t.Context(), call, succeed("receipt").work); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{0, 3, 0} {
		if n, err := (idem.Janitor{Ledger: ledger, Batch: 2}).Purge(t.Context()); n != want || err != nil {
			t.Errorf("%d records were purged, %v; want %d", n, err, want)
		}
		ahead.Store(int64(idem.DefaultRetention) + int64(time.Minute))
	}
}

func unlockWithoutComparing(t *testing.T, r *rig) {
	late := r.lapsed(t, r.order(t, "request-1").Request)
	holder := r.taken(t, late.Request)
	for name, err := range map[string]error{
		"release": r.ledger.Release(t.Context(), late, idem.Failed, ""),
		"finish":  r.ledger.Complete(t.Context(), late, idem.Result{}),
	} {
		if !errors.Is(err, idem.ErrClaimLost) {
			t.Errorf("%s by the one that lost: %v", name, err)
		}
	}
	if err := r.ledger.Complete(t.Context(), holder, idem.Result{Status: 201}); err != nil {
		t.Errorf("the holder's finish: %v", err)
	}
}

// lapsed is a claim whose holder was away for too long.
func (r *rig) lapsed(t *testing.T, q idem.Request) idem.Claim {
	t.Helper()
	q.Owner, q.Lease = idem.NewOwner(), time.Millisecond
	answer, err := r.ledger.Claim(t.Context(), q)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("%v, %v", answer.Outcome, err)
	}
	return answer.Claim
}

// taken is the claim of the next one.
func (r *rig) taken(t *testing.T, q idem.Request) idem.Claim {
	t.Helper()
	q.Owner, q.Lease = idem.NewOwner(), time.Minute
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		answer, err := r.ledger.Claim(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Outcome == idem.Won {
			return answer.Claim
		}
	}
	t.Fatal("nobody could take it over")
	return idem.Claim{}
}

func statusWithoutCommit(t *testing.T, r *rig) {
	work, call := succeed("receipt"), noWait(r.order(t, "request-1"))
	failure := errors.New("rolled back")
	r.ledger.commit.Store(&failure)
	if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	drain(t, r.Engine)
	if record, err := r.entrance.Lookup(t.Context(), call.Request); err != nil || record.State == idem.Succeeded {
		t.Errorf("the entrance says %s, %v", record.State, err)
	}
	r.ledger.commit.Store(nil)
	if reply := r.must(t, call, work.work); reply.Replayed {
		t.Errorf("%+v", reply)
	}
}

func successOverAnother(t *testing.T, r *rig) {
	late := r.lapsed(t, r.order(t, "request-1").Request)
	holder := r.taken(t, late.Request)
	if err := r.ledger.Complete(t.Context(), holder, idem.Result{Status: 201, Body: []byte("holder"), Kept: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.ledger.Complete(t.Context(), late, idem.Result{Status: 500, Body: []byte("late"), Kept: true}); !errors.Is(err, idem.ErrClaimLost) {
		t.Errorf("the late finish: %v", err)
	}
	if record, err := r.ledger.Lookup(t.Context(), late.Request); err != nil || string(record.Result.Body) != "holder" || record.Attempt != 2 {
		t.Errorf("%+v, %v", record, err)
	}
}

func lostAnswer(t *testing.T, r *rig) {
	call, work := r.order(t, "request-1"), hold(succeed("receipt").ending)
	leaving, leave := context.WithCancel(t.Context())
	first := r.goDo(leaving, call, work.work)
	await(t, work.started, "the first")
	leave() // nobody reads its answer
	close(work.release)
	await(t, first, "the first answer")
	if reply := r.must(t, call, succeed("second").work); string(reply.Result.Body) != "receipt" {
		t.Errorf("%+v", reply)
	}
}

func failureForgets(t *testing.T, r *rig) {
	call := r.order(t, "request-1")
	for attempt := 1; attempt <= 3; attempt++ {
		if reply := r.must(t, call, end(idem.Failed).work); reply.Attempt != attempt {
			t.Errorf("attempt %d, want %d", reply.Attempt, attempt)
		}
	}
}

func fieldsRunTogether(t *testing.T, _ *rig) {
	parts := [][]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"a:bc"}, {"a", ":bc"}, {"a\x00", "bc"}, {"a", "\x00bc"}}
	seen := map[string][]string{}
	for _, one := range parts {
		digest := idem.Digest(one...)
		if other, ok := seen[digest]; ok {
			t.Errorf("%q and %q are one", one, other)
		}
		seen[digest] = one
	}
}

func checkThenDelete(t *testing.T, r *rig) {
	work, call := succeed("receipt"), r.order(t, "request-1")
	var all []<-chan answered
	for range 50 {
		all = append(all, r.goDo(t.Context(), call, work.work))
	}
	for _, one := range all {
		await(t, one, "an answer")
	}
	if work.runs.Load() != 1 {
		t.Errorf("%d were let through", work.runs.Load())
	}
}

func evidenceRolledBack(t *testing.T, r *rig) {
	call := r.order(t, "request-1")
	r.must(t, call, func(ctx context.Context) idem.Ending {
		if record, err := r.ledger.Lookup(ctx, call.Request); err != nil || record.State != idem.Processing {
			t.Errorf("while it works: %s, %v", record.State, err)
		}
		return idem.Ending{State: idem.Failed, Reason: "timed out, rolled back"}
	})
	if record, err := r.ledger.Lookup(t.Context(), call.Request); err != nil || record.State != idem.Failed || record.Attempt != 1 {
		t.Errorf("afterwards: %+v, %v", record, err)
	}
}

func otherRequestID(t *testing.T, _ *rig) {
	alone := newRig(t, entranceOnly)
	call := alone.order(t, "request-1")
	other := call
	other.Key.ID, other.Entrance.ID = "request-2", "request-2"
	if _, err := alone.Do(t.Context(), other, succeed("stolen").work); !errors.Is(err, idem.ErrTokenUsed) {
		t.Errorf("another request id: %v", err)
	}
	if reply := alone.must(t, call, succeed("receipt").work); reply.Replayed || string(reply.Result.Body) != "receipt" {
		t.Errorf("its own: %+v", reply)
	}
}
