package storetest

import (
	"errors"
	"slices"

	"github.com/idemkit/idem"
)

// forgetChecks are for stores that may lose everything at any moment, as Redis does by a restart, a flush or an eviction.
func forgetChecks() []check {
	return []check{
		{"forget/everything is absent", forgetEverything},
		{"forget/a renewal writes the record again", forgetThenExtend},
		{"forget/a finish writes the record again", forgetThenComplete},
		{"forget/a lock that vanished is lost", forgetThenExclusive},
		{"forget/another owner's record refuses both", forgetThenTaken},
		{"forget/a release of nothing is refused", forgetThenRelease},
		{"forget/tokens are unknown, unless a ledger vouches", forgetTokens},
	}
}

func forgetEverything(f fixture) {
	running, done := request("running"), request("done")
	f.won(running, 1)
	f.complete(f.won(done, 1), result())
	f.Forget(f.T)
	f.absent(running)
	f.absent(done)
	f.won(again(done), 1)
}

func forgetThenExtend(f fixture) {
	q := request("1")
	f.lapsed(q)
	claim := f.won(again(q), 2)
	f.Forget(f.T)
	for range 2 {
		if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
			f.Fatalf("Extend: lost %v, %v", lost, err)
		}
	}
	record := f.stands(q, idem.Processing, 2)
	if record.Owner != claim.Owner || record.Subject != q.Subject || record.RequestID != q.RequestID || record.Key != q.Key || !record.Live() {
		f.Errorf("record %+v of claim %+v", record, claim)
	}
	f.outcome(idem.Busy, again(q))
	f.outcome(idem.Mismatch, corrected(q))
	f.complete(claim, result())
	f.replays(again(q), result())
}

func forgetThenComplete(f fixture) {
	q := request("1")
	f.lapsed(q)
	claim := f.won(again(q), 2)
	f.Forget(f.T)
	f.complete(claim, result())
	f.complete(claim, result())
	f.stands(q, idem.Succeeded, 2)
	f.replays(again(q), result())
	f.outcome(idem.Mismatch, corrected(q))
	f.outcome(idem.Foreign, stranger(q))
}

// forgetThenExclusive: somebody else may have had the lock since, and nobody could tell.
func forgetThenExclusive(f fixture) {
	lock, kept := request("lock"), f.won(request("kept"), 1)
	lock.Exclusive = true
	claim := f.won(lock, 1)
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim, kept}); err != nil || len(lost) != 0 {
		f.Fatalf("Extend: lost %v, %v", lost, err)
	}
	f.Forget(f.T)
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim, kept}); err != nil || !slices.Equal(lost, []int{0}) {
		f.Fatalf("Extend: lost %v, %v; want [0]", lost, err)
	}
	f.absent(lock)
	f.stands(kept.Request, idem.Processing, 1)
	f.won(again(lock), 1)
	f.lost(claim)
}

// forgetThenTaken is one reason why the answer of Redis alone is not idempotency: two run, but at most one of them is recorded.
func forgetThenTaken(f fixture) {
	q := request("1")
	first := f.won(q, 1)
	f.Forget(f.T)
	second := f.won(again(q), 1)
	f.lost(first)
	f.complete(second, result())
	f.lost(first)
	f.replays(again(q), result())
}

func forgetThenRelease(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.Forget(f.T)
	for _, as := range []idem.State{idem.Failed, idem.Cancelled, idem.Processing} {
		if err := f.Store.Release(f.Context(), claim, as, ""); !errors.Is(err, idem.ErrClaimLost) {
			f.Errorf("Release as %s: %v, want ErrClaimLost", as, err)
		}
	}
	f.absent(q)
	kept := f.won(request("2"), 1)
	lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim, kept})
	if err != nil || !slices.Equal(lost, nil) {
		f.Errorf("Extend: lost %v, %v", lost, err)
	}
}

func forgetTokens(f fixture) {
	store, ok := f.Store.(idem.TokenStore)
	if !ok {
		return
	}
	q := request("1")
	f.issue(store, q.Key, "a", "b")
	f.Forget(f.T)
	f.spends(store, idem.Unknown, "a", q)
	f.absent(q)
	vouched := again(q)
	vouched.Ledger = "the ledger"
	f.spends(store, idem.Won, "b", vouched)
}
