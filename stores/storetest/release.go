package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/idemkit/idem"
)

func releaseChecks() []check {
	checks := []check{
		{"release/as failed drops owner and payload, keeps the attempt", releaseFailed},
		{"release/as cancelled is for good", releaseCancelled},
		{"release/as processing ends the lease, holds the payload", releaseProcessing},
		{"release/as processing of a lapsed claim drops its owner", releaseLapsed},
		{"release/as anything else is invalid", releaseIllegal},
		{"release/not as another state after the first", releaseOnceOnly},
		{"release/not after success", releaseAfterSuccess},
	}
	for name, reason := range map[string]string{
		"long":              strings.Repeat("because ", 1000),
		"hostile":           "a\x00b\xff\xfe'\"{}",
		"cut inside a rune": strings.Repeat("é", 800) + "x",
		"odd cut":           "x" + strings.Repeat("世", 500),
	} {
		checks = append(checks, check{"release/with a reason that is " + name, func(f fixture) {
			q := request("1")
			claim := f.won(q, 1)
			for range 2 {
				if err := f.Store.Release(f.Context(), claim, idem.Failed, reason); err != nil {
					f.Fatalf("Release: %v", err)
				}
			}
			f.because(f.stands(q, idem.Failed, 1), reason)
		}})
	}
	return append(checks, check{"release/its reason stays until the next one or the success", reasonStays})
}

// because fails the test unless a ledger's record has the reason.
func (f fixture) because(r idem.Record, reason string) {
	f.Helper()
	if _, ok := f.Store.(idem.Ledger); ok && r.Reason != idem.Reason(reason) {
		f.Errorf("reason %q at attempt %d, want %q", r.Reason, r.Attempt, reason)
	}
}

// reasonStays: who gives an operation up after a crash must be able to say why the attempt before failed.
func reasonStays(f fixture) {
	q := request("1")
	f.because(f.stands(f.won(q, 1).Request, idem.Processing, 1), "")
	for i, as := range []idem.State{idem.Failed, idem.Processing, idem.Failed} {
		reason := fmt.Sprint("attempt ", i+1, " broke")
		q = again(q)
		if i == 0 {
			f.Lapse(f.T, q.Key)
		}
		claim := f.won(q, i+2)
		if err := f.Store.Release(f.Context(), claim, as, reason); err != nil {
			f.Fatalf("Release: %v", err)
		}
		f.because(f.stands(q, as, i+2), reason)
	}
	q = again(q)
	f.won(q, 5)
	f.because(f.stands(q, idem.Processing, 5), "attempt 3 broke")
	f.Lapse(f.T, q.Key)
	q = again(q)
	claim := f.won(q, 6)
	f.because(f.stands(q, idem.Processing, 6), "attempt 3 broke")
	f.complete(claim, result())
	f.because(f.stands(q, idem.Succeeded, 6), "")
}

func releaseFailed(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.release(claim, idem.Failed)
	record := f.stands(q, idem.Failed, 1)
	if record.Owner != "" || len(record.Fingerprint) != 0 || record.Live() || record.Subject != q.Subject {
		f.Errorf("record %+v", record)
	}
	f.lostTo(claim, idem.Failed)
	f.won(again(q), 2)
	f.lost(claim)
}

func releaseCancelled(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.release(claim, idem.Cancelled)
	if record := f.stands(q, idem.Cancelled, 1); record.Owner != "" || record.Live() {
		f.Errorf("record %+v", record)
	}
	f.lostTo(claim, idem.Cancelled)
	f.outcome(idem.Withdrawn, again(q))
	f.stands(q, idem.Cancelled, 1)
}

func releaseProcessing(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.release(claim, idem.Processing)
	record := f.stands(q, idem.Processing, 1)
	if record.Owner != "" || len(record.Fingerprint) == 0 || record.Live() {
		f.Errorf("record %+v", record)
	}
	f.lostTo(claim, idem.Processing)
	f.outcome(idem.Mismatch, corrected(q))
	f.won(again(q), 2)
	f.lost(claim)
}

// releaseLapsed: the record looks released already, but its owner could still write.
func releaseLapsed(f fixture) {
	q := request("1")
	claim := f.lapsed(q)
	f.release(claim, idem.Processing)
	if record := f.stands(q, idem.Processing, 1); record.Owner != "" || record.Live() {
		f.Errorf("record %+v", record)
	}
	f.lostTo(claim, idem.Processing)
}

// lostTo fails the test unless a released claim is refused everything but the repetition of its release.
func (f fixture) lostTo(c idem.Claim, as idem.State) {
	f.Helper()
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{c}); err != nil || len(lost) != 1 {
		f.Errorf("Extend: lost %v, %v; want [0]", lost, err)
	}
	if err := f.Store.Complete(f.Context(), c, result()); !errors.Is(err, idem.ErrClaimLost) {
		f.Errorf("Complete: %v, want ErrClaimLost", err)
	}
	f.release(c, as)
	f.stands(c.Request, as, c.Attempt)
}

func releaseIllegal(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	for _, as := range []idem.State{idem.Succeeded, "", "unknown", "FAILED"} {
		if err := f.Store.Release(f.Context(), claim, as, ""); !errors.Is(err, idem.ErrInvalid) {
			f.Errorf("Release as %q: %v, want ErrInvalid", as, err)
		}
	}
	f.stands(q, idem.Processing, 1)
	f.complete(claim, result())
}

func releaseOnceOnly(f fixture) {
	ends := []idem.State{idem.Failed, idem.Cancelled, idem.Processing}
	for _, first := range ends {
		q := request("once " + string(first))
		claim := f.won(q, 1)
		f.release(claim, first)
		for _, second := range ends {
			if second == first {
				continue
			}
			if err := f.Store.Release(f.Context(), claim, second, ""); !errors.Is(err, idem.ErrClaimLost) {
				f.Errorf("released as %s, then as %s: %v, want ErrClaimLost", first, second, err)
			}
		}
		f.stands(q, first, 1)
	}
}

func releaseAfterSuccess(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.complete(claim, result())
	for _, as := range []idem.State{idem.Failed, idem.Cancelled, idem.Processing} {
		if err := f.Store.Release(f.Context(), claim, as, ""); !errors.Is(err, idem.ErrClaimLost) {
			f.Errorf("Release as %s: %v, want ErrClaimLost", as, err)
		}
	}
	f.replays(again(q), result())
}
