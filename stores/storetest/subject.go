package storetest

import "github.com/idemkit/idem"

func subjectChecks() []check {
	return []check{
		{"subject/another's key is foreign in every state", foreign},
		{"subject/a shared key answers everybody", shared},
		{"subject/a shared failed or lapsed key goes to anybody", sharedTakeover},
		{"subject/nobody in particular is one subject", anonymous},
	}
}

// stranger is a call of another subject under the same key.
func stranger(q idem.Request) idem.Request {
	q = again(q)
	q.Subject, q.RequestID = "mallory", "request-of-mallory"
	return q
}

func foreign(f fixture) {
	states := map[string]func(idem.Claim){
		"running":   func(idem.Claim) {},
		"lapsed":    func(c idem.Claim) { f.Lapse(f.T, c.Key) },
		"done":      func(c idem.Claim) { f.complete(c, result()) },
		"failed":    func(c idem.Claim) { f.release(c, idem.Failed) },
		"cancelled": func(c idem.Claim) { f.release(c, idem.Cancelled) },
		"unknown":   func(c idem.Claim) { f.release(c, idem.Processing) },
	}
	for name, reach := range states {
		q := request(name)
		reach(f.won(q, 1))
		before := f.lookup(q)
		for _, next := range []idem.Request{stranger(q), corrected(stranger(q))} {
			answer := f.outcome(idem.Foreign, next)
			if !blank(answer.Record) || answer.Claim.Attempt != 0 {
				f.Errorf("%s: a foreign answer tells %+v", name, answer)
			}
		}
		if after := f.stands(q, before.State, 1); after.Owner != before.Owner || after.Subject != q.Subject {
			f.Errorf("%s: record %+v, before %+v", name, after, before)
		}
	}
}

func blank(r idem.Record) bool {
	return r.Key == idem.Key{} && r.State == "" && r.Attempt == 0 && r.Owner == "" && r.Subject == "" && r.RequestID == "" &&
		len(r.Fingerprint) == 0 && sameResult(r.Result, idem.Result{}) && r.LeaseLeft == 0
}

func shared(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	guest := stranger(q)
	guest.Shared = true
	f.outcome(idem.Busy, guest)
	f.outcome(idem.Mismatch, corrected(guest))
	f.complete(claim, result())
	f.replays(guest, result())
	f.outcome(idem.Mismatch, corrected(guest))
	f.outcome(idem.Foreign, stranger(q))
}

func sharedTakeover(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Failed)
	guest := stranger(q)
	guest.Shared = true
	f.won(guest, 2)
	if record := f.stands(q, idem.Processing, 2); record.Subject != guest.Subject {
		f.Errorf("subject %q", record.Subject)
	}
	f.outcome(idem.Foreign, again(q))
	f.Lapse(f.T, q.Key)
	host := again(q)
	host.Shared = true
	f.complete(f.won(host, 3), result())
	f.replays(guest, result())
}

func anonymous(f fixture) {
	q := request("1")
	q.Subject = ""
	claim := f.won(q, 1)
	f.outcome(idem.Busy, again(q))
	f.outcome(idem.Foreign, stranger(q))
	f.complete(claim, result())
	f.replays(again(q), result())
}
