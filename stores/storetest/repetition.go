package storetest

import (
	"errors"

	"github.com/idemkit/idem"
)

// A caller whose reply was lost sends the same command again. These checks do so without any fault; lossy.go does it with one.
func repetitionChecks() []check {
	return []check{
		{"repetition/a claim by its owner is won again, the same attempt", repeatedClaim},
		{"repetition/a repeated claim does not renew the lease", repeatedClaimLeavesLease},
		{"repetition/a takeover by its owner", repeatedTakeover},
		{"repetition/complete", repeatedComplete},
		{"repetition/release", repeatedRelease},
		{"repetition/an owner that finished is answered like anybody", finishedOwner},
	}
}

func repeatedClaim(f fixture) {
	q := request("1")
	for range 3 {
		f.won(q, 1)
	}
	if answer := f.ask(f.other, q); answer.Outcome != idem.Won || answer.Claim.Attempt != 1 {
		f.Fatalf("the other handle answers %+v", answer)
	}
	f.outcome(idem.Busy, again(q))
	f.complete(f.won(q, 1), result())
}

// repeatedClaimLeavesLease pins a choice: the claim is told as it stands.
func repeatedClaimLeavesLease(f fixture) {
	q := request("1")
	f.lapsed(q)
	f.won(q, 1)
	if f.stands(q, idem.Processing, 1).Live() {
		f.Errorf("the repeated claim renewed the lease")
	}
	f.won(again(q), 2)
	f.outcome(idem.Busy, q)
}

func repeatedTakeover(f fixture) {
	q := request("1")
	f.lapsed(q)
	next := again(q)
	for range 3 {
		f.won(next, 2)
	}
	f.stands(q, idem.Processing, 2)
}

func repeatedComplete(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.complete(claim, result())
	other := idem.Result{Status: 500, Body: []byte("another"), Kept: true}
	f.complete(claim, result())
	f.complete(claim, other)
	f.replays(again(q), result())
	f.stands(q, idem.Succeeded, 1)
}

func repeatedRelease(f fixture) {
	for _, as := range []idem.State{idem.Failed, idem.Cancelled, idem.Processing} {
		q := request("as " + string(as))
		claim := f.won(q, 1)
		for range 3 {
			f.release(claim, as)
		}
		f.stands(q, as, 1)
		if as == idem.Cancelled {
			continue
		}
		next := f.won(again(q), 2)
		if err := f.Store.Release(f.Context(), claim, as, ""); !errors.Is(err, idem.ErrClaimLost) {
			f.Errorf("%s, repeated after the next claim: %v, want ErrClaimLost", as, err)
		}
		f.release(next, as)
		if err := f.Store.Release(f.Context(), claim, as, ""); !errors.Is(err, idem.ErrClaimLost) {
			f.Errorf("%s, repeated after the next release: %v, want ErrClaimLost", as, err)
		}
		f.release(next, as)
	}
}

func finishedOwner(f fixture) {
	done := request("done")
	f.complete(f.won(done, 1), result())
	f.replays(done, result())
	f.outcome(idem.Mismatch, func() idem.Request { q := done; q.Fingerprint = []byte("other"); return q }())
	failed := request("failed")
	f.release(f.won(failed, 1), idem.Failed)
	f.won(failed, 2)
	f.won(failed, 2)
}
