package memstore_test

import (
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func TestFindByTheStoresClock(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := idem.Query{State: idem.Processing, Types: []string{"order.create"}, Limit: 10}
	finds := func(quiet time.Duration, want int) {
		t.Helper()
		q.Quiet = quiet
		if records, err := b.Find(t.Context(), q); err != nil || len(records) != want {
			t.Fatalf("found %+v, %v; want %d", records, err, want)
		}
	}
	b.outcome(idem.Won, request("1"))
	b.clock.Advance(time.Minute - 1)
	finds(0, 0)
	b.clock.Advance(1)
	finds(0, 1)
	finds(time.Minute, 1)
	finds(time.Minute+1, 0)
	b.clock.Advance(time.Hour - time.Minute)
	finds(0, 0)
}

// What a failed record gives up changes it.
func TestGivingUpTheRequestIDIsAChange(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q, next := request("1"), request("2")
	next.RequestID = q.RequestID
	if err := b.Release(t.Context(), b.outcome(idem.Won, q).Claim, idem.Failed, ""); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	search := idem.Query{State: idem.Failed, Types: []string{"order.create"}, Quiet: time.Minute, Limit: 1}
	for _, want := range []int{1, 0} {
		if records, err := b.Find(t.Context(), search); err != nil || len(records) != want {
			t.Fatalf("found %+v, %v; want %d", records, err, want)
		}
		b.outcome(idem.Won, next)
	}
}

func TestKeepIsWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	b.complete(q, idem.Result{Status: 201, Body: []byte("body"), Kept: true, Keep: 10 * time.Minute})
	for _, left := range []time.Duration{10 * time.Minute, 4 * time.Minute} {
		if r := b.outcome(idem.Done, again(q)).Record.Result; r.Keep != left || !r.Kept {
			t.Errorf("%v left of it, want %v", r.Keep, left)
		}
		b.clock.Advance(6 * time.Minute)
	}
	if r := b.outcome(idem.Done, again(q)).Record.Result; r.Keep != 0 || r.Kept {
		t.Errorf("result %+v after its time", r)
	}
}

// What the ledger passes on to the entrance ends there with the ledger's.
func TestRestoredResultEndsWithTheLedgers(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	entrance := memstore.New(memstore.Options{Now: b.clock.Now, Forgetful: true})
	q := request("1")
	b.complete(q, idem.Result{Status: 201, Body: []byte("body"), Kept: true, Keep: 10 * time.Minute})
	b.clock.Advance(6 * time.Minute)
	seen, err := b.Lookup(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := entrance.Restore(t.Context(), idem.Claim{Request: q, Attempt: seen.Attempt}, seen.Result); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{true, false} {
		r, err := entrance.Lookup(t.Context(), q)
		if err != nil || r.Result.Kept != kept {
			t.Errorf("result %+v, %v; kept %v wanted", r.Result, err, kept)
		}
		b.clock.Advance(4 * time.Minute)
	}
}

func TestScanLeavesOutWhatEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	short := request("short")
	short.Lease, short.Retention = time.Second, time.Second
	b.outcome(idem.Won, short)
	b.outcome(idem.Won, request("long"))
	seen := 0
	err := b.Scan(t.Context(), func(r idem.Record, _ string) error {
		b.clock.Advance(time.Second)
		seen++
		return nil
	})
	if err != nil || seen < 1 {
		t.Fatalf("Scan: %v after %d", err, seen)
	}
	seen = 0
	err = b.Scan(t.Context(), func(r idem.Record, _ string) error {
		if r.Key != request("long").Key {
			t.Errorf("%+v is over", r.Key)
		}
		seen++
		return nil
	})
	if err != nil || seen != 1 {
		t.Fatalf("Scan: %v after %d", err, seen)
	}
}

// Dropped records let their request ids go, and fences outlive everything.
func TestDropAndFence(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q, next := request("1"), request("2")
	next.RequestID = q.RequestID
	b.outcome(idem.Won, q)
	b.outcome(idem.Mismatch, next)
	seen, err := b.Lookup(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := b.Drop(t.Context(), seen); !done || err != nil {
		t.Fatalf("Drop: %v, %v", done, err)
	}
	b.outcome(idem.Won, next)
	for want := int64(1); want <= 3; want++ {
		if number, err := b.Fence(t.Context()); number != want || err != nil {
			t.Errorf("Fence: %d, %v; want %d", number, err, want)
		}
		b.Forget()
	}
}
