package storetest

import (
	"time"

	"github.com/idemkit/idem"
)

// keepChecks are for ledgers: what an entrance is told of a success must not outlive it there.
func keepChecks() []check {
	return []check{
		{"keep/a reader learns what is left of it", keepLeft},
		{"keep/nothing where they are kept as long as the record, or not at all", keepNothing},
	}
}

// kept is what every way to read the record says about how long its header and body are kept.
func (f fixture) kept(q idem.Request) map[string]idem.Result {
	f.Helper()
	elsewhere := idem.Request{Key: q.Key, Subject: q.Subject, RequestID: q.RequestID}
	elsewhere.Key.ID = "never"
	return map[string]idem.Result{
		"Lookup":                 f.lookup(q).Result,
		"Lookup by request id":   f.lookup(elsewhere).Result,
		"Claim":                  f.outcome(idem.Done, again(q)).Record.Result,
		"Claim, another payload": f.outcome(idem.Mismatch, corrected(q)).Record.Result,
		"Find":                   f.find(idem.Query{State: idem.Succeeded, Types: []string{q.Key.Type}, Limit: 1})[0].Result,
	}
}

func keepLeft(f fixture) {
	q, r := request("1"), result()
	r.Keep = time.Hour
	f.complete(f.won(q, 1), r)
	before := time.Duration(0)
	for name, seen := range f.kept(q) {
		if !sameResult(seen, r) || seen.Keep > r.Keep || seen.Keep < r.Keep-10*time.Minute {
			f.Errorf("%s: %v left of %v; result %+v", name, seen.Keep, r.Keep, seen)
		}
		before = max(before, seen.Keep)
	}
	f.eventually("less is left", func() bool { return f.lookup(q).Result.Keep < before })
}

func keepNothing(f fixture) {
	for name, r := range map[string]idem.Result{
		"as long as the record": result(),
		"not kept":              {Status: 204, Keep: time.Hour},
	} {
		q := ofKind(name, name)
		f.complete(f.won(q, 1), r)
		for way, seen := range f.kept(q) {
			if seen.Keep != 0 || seen.Kept != r.Kept {
				f.Errorf("%s: %s: %+v", name, way, seen)
			}
		}
	}
}
