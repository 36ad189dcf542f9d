package storetest

import (
	"time"

	"github.com/idemkit/idem"
)

func takeoverChecks() []check {
	return []check{
		{"takeover/a lapsed claim goes to the next, attempt one higher", takeover},
		{"takeover/not before the lease is over", takeoverByTheClock},
		{"takeover/a lapsed claim holds its payload", lapsedHoldsPayload},
		{"takeover/a released unknown outcome holds its payload", unknownHoldsPayload},
		{"takeover/a failed one goes to any payload, attempt one higher", failedThenClaimed},
		{"takeover/attempts only grow", attemptsGrow},
		{"takeover/a cancelled one never", cancelledNever},
	}
}

func takeover(f fixture) {
	q := request("1")
	f.lapsed(q)
	if record := f.stands(q, idem.Processing, 1); record.Live() || record.LeaseLeft > 0 {
		f.Fatalf("lease left %v after its end", record.LeaseLeft)
	}
	next := again(q)
	next.RequestID = "renewed"
	f.won(next, 2)
	record := f.stands(q, idem.Processing, 2)
	if record.Owner != next.Owner || record.RequestID != "renewed" || !record.Live() {
		f.Errorf("record %+v", record)
	}
	f.outcome(idem.Busy, again(q))
}

// takeoverByTheClock needs the store's own clock: the lease runs out by itself, and not at once.
func takeoverByTheClock(f fixture) {
	q := request("1")
	q.Lease = 400 * time.Millisecond
	asked := time.Now()
	f.won(q, 1)
	next := again(q)
	next.Lease = longLease
	f.eventually("the claim is taken over", func() bool {
		before := time.Now()
		answer := f.ask(f.Store, next)
		if answer.Outcome == idem.Won {
			if held := time.Since(asked); held < q.Lease {
				f.Errorf("taken over after %v of %v", held, q.Lease)
			}
			return true
		}
		if answer.Outcome != idem.Busy || before.Sub(asked) > 20*q.Lease {
			f.Fatalf("outcome %v after %v", answer.Outcome, before.Sub(asked))
		}
		return false
	})
	f.stands(q, idem.Processing, 2)
}

func lapsedHoldsPayload(f fixture) {
	q := request("1")
	f.lapsed(q)
	if answer := f.outcome(idem.Mismatch, corrected(q)); answer.Record.Live() {
		f.Errorf("record %+v is live", answer.Record)
	}
	f.won(again(q), 2)
}

func unknownHoldsPayload(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Processing)
	f.outcome(idem.Mismatch, corrected(q))
	f.won(again(q), 2)
}

func failedThenClaimed(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Failed)
	next := corrected(q)
	claim := f.won(next, 2)
	f.outcome(idem.Mismatch, again(q))
	f.outcome(idem.Busy, again(next))
	f.complete(claim, result())
	f.outcome(idem.Mismatch, again(q))
	f.replays(again(next), result())
}

func attemptsGrow(f fixture) {
	q := request("1")
	for attempt := 1; attempt <= 6; attempt++ {
		claim := f.won(again(q), attempt)
		switch attempt % 3 {
		case 0:
			f.Lapse(f.T, q.Key)
		case 1:
			f.release(claim, idem.Failed)
		case 2:
			f.release(claim, idem.Processing)
		}
	}
	f.complete(f.won(again(q), 7), result())
	if record := f.stands(q, idem.Succeeded, 7); record.Live() {
		f.Errorf("a finished record is live")
	}
}

func cancelledNever(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Cancelled)
	for _, next := range []idem.Request{again(q), corrected(q)} {
		answer := f.outcome(idem.Withdrawn, next)
		if answer.Record.State != idem.Cancelled || answer.Record.Attempt != 1 {
			f.Errorf("record %+v", answer.Record)
		}
	}
	f.Lapse(f.T, q.Key)
	f.outcome(idem.Withdrawn, again(q))
}
