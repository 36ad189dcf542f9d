package storetest

import (
	"github.com/idemkit/idem"
)

func dropCompares(f fixture) {
	q := request("1")
	f.won(q, 1)
	seen := f.lookup(q)
	for name, change := range map[string]func(*idem.Record){
		"state":          func(r *idem.Record) { r.State = idem.Succeeded },
		"no state":       func(r *idem.Record) { r.State = "" },
		"owner":          func(r *idem.Record) { r.Owner = idem.NewOwner() },
		"no owner":       func(r *idem.Record) { r.Owner = "" },
		"attempt":        func(r *idem.Record) { r.Attempt++ },
		"attempt before": func(r *idem.Record) { r.Attempt-- },
		"key":            func(r *idem.Record) { r.Key.ID = "2" },
		"scope":          func(r *idem.Record) { r.Key.Scope = "alice" },
	} {
		other := seen
		change(&other)
		if done, err := f.tokens().Drop(f.Context(), other); done || err != nil {
			f.Errorf("another %s: %v, %v", name, done, err)
		}
	}
	f.Lapse(f.T, q.Key)
	next := f.won(again(q), 2)
	f.drop(seen, false)
	f.stands(q, idem.Processing, 2)
	f.complete(next, result())
	f.replays(again(q), result())
}

func dropStates(f fixture) {
	for state, q := range f.inEachState() {
		seen := f.stands(q, state, 1)
		f.drop(seen, true)
		f.absent(q)
		f.drop(seen, false)
		f.won(corrected(q), 1)
	}
}

func dropLeavesTokens(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a", "b")
	f.release(f.spends(f.tokens(), idem.Won, "a", q).Claim, idem.Failed)
	f.drop(f.stands(q, idem.Failed, 1), true)
	f.spends(f.tokens(), idem.Unknown, "a", again(q))
	f.spends(f.tokens(), idem.Won, "b", again(q))
}

func dropHostile(f fixture) {
	asked := hostileRequests()
	for _, q := range asked {
		f.won(q, 1)
	}
	for _, seen := range f.scan() {
		f.drop(seen.record, true)
	}
	for _, q := range asked {
		f.absent(q)
	}
}
