package storetest

import (
	"errors"

	"github.com/idemkit/idem"
)

// lossyChecks call each method once through a link that loses the reply of a command that was applied, and once more
// through a good one: the second answer and the state are as if nothing had been lost.
func lossyChecks(probe Backend) []check {
	checks := []check{
		{"lossy/claim", lossyClaim},
		{"lossy/claim that takes over", lossyTakeover},
		{"lossy/claim that is refused", lossyRefusal},
		{"lossy/extend", lossyExtend},
		{"lossy/complete", lossyComplete},
		{"lossy/release", lossyRelease},
		{"lossy/lookup and ping", lossyReads},
	}
	if _, ok := probe.Store.(idem.TokenStore); ok {
		checks = append(checks, check{"lossy/issue and spend", lossySpend}, check{"lossy/restore", lossyRestore})
	}
	if _, ok := probe.Store.(idem.Ledger); ok {
		checks = append(checks, check{"lossy/transaction of an open claim", lossyOpen}, check{"lossy/claim in a transaction", lossyClaimTx},
			check{"lossy/purge", lossyPurge}, check{"lossy/find and fence", lossyFind})
	}
	return checks
}

// answered passes what the lossy call returned: nothing wrong, or an error that says nothing about the claim.
func (f fixture) answered(call string, err error) {
	f.Helper()
	for _, decided := range []error{idem.ErrClaimLost, idem.ErrInvalid, idem.ErrNotFound, idem.ErrFormat} {
		if errors.Is(err, decided) {
			f.Fatalf("%s over a lossy link: %v; its own command was taken for another's", call, err)
		}
	}
}

func (f fixture) answeredAs(want idem.Outcome, answer idem.Answer, err error) {
	f.Helper()
	f.answered("Claim", err)
	if err == nil && answer.Outcome != want {
		f.Fatalf("over a lossy link: outcome %v, want %v", answer.Outcome, want)
	}
}

func lossyClaim(f fixture) {
	q := request("1")
	answer, err := f.Lossy(f.T).Claim(f.Context(), q)
	f.answeredAs(idem.Won, answer, err)
	claim := f.won(q, 1)
	f.outcome(idem.Busy, again(q))
	f.complete(claim, result())
}

func lossyTakeover(f fixture) {
	q := request("1")
	first := f.lapsed(q)
	next := again(q)
	answer, err := f.Lossy(f.T).Claim(f.Context(), next)
	f.answeredAs(idem.Won, answer, err)
	f.won(next, 2)
	f.lost(first)
	f.release(f.won(next, 2), idem.Failed)
	last := corrected(q)
	answer, err = f.Lossy(f.T).Claim(f.Context(), last)
	f.answeredAs(idem.Won, answer, err)
	f.won(last, 3)
}

func lossyRefusal(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	answer, err := f.Lossy(f.T).Claim(f.Context(), again(q))
	f.answeredAs(idem.Busy, answer, err)
	answer, err = f.Lossy(f.T).Claim(f.Context(), stranger(q))
	f.answeredAs(idem.Foreign, answer, err)
	f.stands(q, idem.Processing, 1)
	f.complete(claim, result())
	answer, err = f.Lossy(f.T).Claim(f.Context(), again(q))
	f.answeredAs(idem.Done, answer, err)
	f.replays(again(q), result())
}

func lossyExtend(f fixture) {
	kept, taken := f.lapsed(request("kept")), f.lapsed(request("taken"))
	f.won(again(taken.Request), 2)
	claims := []idem.Claim{taken, kept}
	lost, err := f.Lossy(f.T).Extend(f.Context(), claims)
	f.answered("Extend", err)
	if err == nil && (len(lost) != 1 || lost[0] != 0) {
		f.Fatalf("over a lossy link: lost %v, want [0]", lost)
	}
	if lost, err = f.Store.Extend(f.Context(), claims); err != nil || len(lost) != 1 || lost[0] != 0 {
		f.Fatalf("repeated: lost %v, %v; want [0]", lost, err)
	}
	f.outcome(idem.Busy, again(kept.Request))
	f.stands(taken.Request, idem.Processing, 2)
}

func lossyComplete(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.answered("Complete", f.Lossy(f.T).Complete(f.Context(), claim, result()))
	f.complete(claim, result())
	f.replays(again(q), result())
	f.stands(q, idem.Succeeded, 1)
}

func lossyRelease(f fixture) {
	for _, as := range []idem.State{idem.Failed, idem.Cancelled, idem.Processing} {
		q := request("as " + string(as))
		claim := f.won(q, 1)
		f.answered("Release", f.Lossy(f.T).Release(f.Context(), claim, as, "reason"))
		f.release(claim, as)
		f.stands(q, as, 1)
	}
}

func lossyReads(f fixture) {
	q := request("1")
	f.won(q, 1)
	record, err := f.Lossy(f.T).Lookup(f.Context(), q)
	f.answered("Lookup", err)
	if err == nil && (record.State != idem.Processing || record.Owner != q.Owner) {
		f.Errorf("record %+v", record)
	}
	f.answered("Ping", f.Lossy(f.T).Ping(f.Context()))
	f.stands(q, idem.Processing, 1)
}

func lossySpend(f fixture) {
	q := request("1")
	lossy := func() idem.TokenStore { return f.Lossy(f.T).(idem.TokenStore) }
	f.answered("Issue", lossy().Issue(f.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: longLease, Retention: longRetention}}))
	f.issue(f.tokens(), q.Key, "a")
	answer, err := lossy().Spend(f.Context(), "a", q)
	f.answeredAs(idem.Won, answer, err)
	claim := f.spends(f.tokens(), idem.Won, "a", q).Claim
	if claim.Attempt != 1 {
		f.Fatalf("attempt %d, want 1", claim.Attempt)
	}
	f.spends(f.tokens(), idem.Busy, "a", again(q))
	unknown := request("2")
	answer, err = lossy().Spend(f.Context(), "never issued", unknown)
	f.answeredAs(idem.Unknown, answer, err)
	f.absent(unknown)
}

func lossyRestore(f fixture) {
	q := request("1")
	f.won(again(q), 1)
	f.answered("Restore", f.Lossy(f.T).(idem.TokenStore).Restore(f.Context(), idem.Claim{Request: q, Attempt: 3}, result()))
	f.restored(q, 3)
}
