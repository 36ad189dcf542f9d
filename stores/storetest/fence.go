package storetest

import (
	"errors"
	"slices"

	"github.com/idemkit/idem"
)

func fenceChecks() []check {
	return []check{
		{"fence/after a takeover the first can write nothing", fenceAfterTakeover},
		{"fence/after the winner's success the first can write nothing", fenceAfterSuccess},
		{"fence/after the winner's failure the first can write nothing", fenceAfterFailure},
		{"fence/after the winner's cancellation the first can write nothing", fenceAfterCancellation},
		{"fence/a lapsed claim that nobody took still finishes", lapsedFinishes},
		{"fence/right owner, wrong attempt", fenceByAttempt},
		{"fence/right attempt, wrong owner", fenceByOwner},
		{"fence/a claim that never was", fenceOfNothing},
	}
}

func fenceAfterTakeover(f fixture) {
	q := request("1")
	first := f.lapsed(q)
	second := f.won(again(q), 2)
	f.lost(first)
	if record := f.stands(q, idem.Processing, 2); record.Owner != second.Owner || !record.Live() {
		f.Errorf("record %+v", record)
	}
	f.complete(second, result())
	f.replays(again(q), result())
}

func fenceAfterSuccess(f fixture) {
	q := request("1")
	first := f.lapsed(q)
	f.complete(f.won(again(q), 2), result())
	f.lost(first)
	f.replays(again(q), result())
}

func fenceAfterFailure(f fixture) {
	q := request("1")
	first := f.lapsed(q)
	f.release(f.won(again(q), 2), idem.Failed)
	f.lost(first)
	f.stands(q, idem.Failed, 2)
}

func fenceAfterCancellation(f fixture) {
	q := request("1")
	first := f.lapsed(q)
	f.release(f.won(again(q), 2), idem.Cancelled)
	f.lost(first)
	f.stands(q, idem.Cancelled, 2)
}

func lapsedFinishes(f fixture) {
	done := request("1")
	f.complete(f.lapsed(done), result())
	f.replays(again(done), result())
	failed := request("2")
	f.release(f.lapsed(failed), idem.Failed)
	f.stands(failed, idem.Failed, 1)
}

func fenceByAttempt(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	for _, attempt := range []int{0, 2, -1, 1 << 20} {
		forged := claim
		forged.Attempt = attempt
		f.lost(forged)
	}
	f.stands(q, idem.Processing, 1)
	f.complete(claim, result())
	claim.Attempt = 2
	f.lost(claim)
	f.replays(again(q), result())
}

func fenceByOwner(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	forged := claim
	forged.Owner = idem.NewOwner()
	f.lost(forged)
	f.complete(claim, result())
	f.lost(forged)
	f.replays(again(q), result())
	ended := request("2")
	forged = f.won(ended, 1)
	f.release(forged, idem.Processing)
	forged.Owner = ""
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{forged}); err != nil || !slices.Equal(lost, []int{0}) {
		f.Errorf("Extend without an owner: lost %v, %v; want [0]", lost, err)
	}
	if err := f.Store.Complete(f.Context(), forged, result()); !errors.Is(err, idem.ErrClaimLost) {
		f.Errorf("Complete without an owner: %v, want ErrClaimLost", err)
	}
	f.stands(ended, idem.Processing, 1)
}

// fenceOfNothing is left to stores that do not forget: to the others the claim may have been.
func fenceOfNothing(f fixture) {
	q := request("1")
	never := idem.Claim{Request: q, Attempt: 1}
	if err := f.Store.Release(f.Context(), never, idem.Failed, ""); !errors.Is(err, idem.ErrClaimLost) {
		f.Errorf("Release: %v, want ErrClaimLost", err)
	}
	f.absent(q)
	if f.Forget == nil {
		f.lost(never)
		f.absent(q)
	}
}
