package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idemkit/idem"
)

func findChecks() []check {
	return []check{
		{"find/what was processing and lapsed, unchanged for longest first", findLapsed},
		{"find/by state", findByState},
		{"find/a renewal is a change", findRenewed},
		{"find/only what was quiet for long enough", findQuiet},
		{"find/no types, no records", findNoTypes},
		{"find/refuses what says nothing", findRefuses},
		{"find/what it returns claims the same record", findThenClaim},
	}
}

// kind is a business type of the tests about finding.
const kind = "refund"

func ofKind(id, businessType string) idem.Request {
	q := request(id)
	q.Key.Type = businessType
	return q
}

func (f fixture) find(q idem.Query) []idem.Record {
	f.Helper()
	records, err := f.other.(idem.Ledger).Find(f.Context(), q)
	if err != nil {
		f.Fatalf("Find(%+v): %v", q, err)
	}
	return records
}

// finds fails the test unless exactly these ids are found, in this order.
func (f fixture) finds(q idem.Query, want ...string) []idem.Record {
	f.Helper()
	records := f.find(q)
	var got []string
	for _, r := range records {
		got = append(got, r.Key.ID)
	}
	if !slices.Equal(got, want) {
		f.Fatalf("Find(%+v): %q, want %q", q, got, want)
	}
	return records
}

func findLapsed(f fixture) {
	for _, id := range []string{"1", "2", "3"} {
		f.lapsed(ofKind(id, kind))
	}
	f.won(ofKind("live", kind), 1)
	f.lapsed(ofKind("another type", "another"))
	q := idem.Query{State: idem.Processing, Types: []string{kind, "unheard of"}, Limit: 10}
	for _, r := range f.finds(q, "1", "2", "3") {
		want := ofKind(r.Key.ID, kind)
		if r.Key != want.Key || r.State != idem.Processing || r.Live() || r.Attempt != 1 || r.Owner == "" || r.Subject != want.Subject ||
			r.RequestID != want.RequestID || string(r.Fingerprint) != string(want.Fingerprint) {
			f.Errorf("record %+v", r)
		}
	}
	q.Limit = 2
	f.finds(q, "1", "2")
	q.Limit, q.Types = 10, []string{"another"}
	f.finds(q, "another type")
	q.Types = []string{kind + " ", "REFUND", "%"}
	f.finds(q)
}

func findByState(f fixture) {
	f.complete(f.won(ofKind("done", kind), 1), result())
	f.release(f.won(ofKind("failed", kind), 1), idem.Failed)
	f.release(f.won(ofKind("cancelled", kind), 1), idem.Cancelled)
	f.release(f.won(ofKind("unknown", kind), 1), idem.Processing)
	f.won(ofKind("live", kind), 1)
	for state, id := range map[idem.State]string{
		idem.Succeeded: "done", idem.Failed: "failed", idem.Cancelled: "cancelled", idem.Processing: "unknown",
	} {
		record := f.finds(idem.Query{State: state, Types: []string{kind}, Limit: 10}, id)[0]
		if record.State != state || record.Attempt != 1 {
			f.Errorf("record %+v", record)
		}
	}
	done := f.finds(idem.Query{State: idem.Succeeded, Types: []string{kind}, Limit: 1}, "done")[0]
	if !sameResult(done.Result, result()) {
		f.Errorf("result %+v", done.Result)
	}
}

func findRenewed(f fixture) {
	first := f.lapsed(ofKind("1", kind))
	f.lapsed(ofKind("2", kind))
	q := idem.Query{State: idem.Processing, Types: []string{kind}, Limit: 10}
	f.finds(q, "1", "2")
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{first}); err != nil || len(lost) != 0 {
		f.Fatalf("Extend: lost %v, %v", lost, err)
	}
	f.finds(q, "2")
	f.Lapse(f.T, first.Key)
	f.finds(q, "2", "1")
}

func findQuiet(f fixture) {
	const quiet = 200 * time.Millisecond
	began := time.Now()
	f.release(f.won(ofKind("1", kind), 1), idem.Failed)
	f.lapsed(ofKind("2", kind))
	for state, id := range map[idem.State]string{idem.Failed: "1", idem.Processing: "2"} {
		q := idem.Query{State: state, Types: []string{kind}, Quiet: longLease, Limit: 10}
		f.finds(q)
		q.Quiet = quiet
		f.eventually("it was quiet for long enough", func() bool { return len(f.find(q)) == 1 })
		if waited := time.Since(began); waited < quiet {
			f.Errorf("%s was quiet for %v after %v", id, quiet, waited)
		}
		f.finds(q, id)
	}
}

func findNoTypes(f fixture) {
	f.lapsed(ofKind("1", kind))
	for _, none := range [][]string{nil, {}} {
		f.finds(idem.Query{State: idem.Processing, Types: none, Limit: 10})
	}
}

func findRefuses(f fixture) {
	for name, q := range map[string]idem.Query{
		"no limit":       {State: idem.Processing, Types: []string{kind}},
		"below none":     {State: idem.Processing, Types: []string{kind}, Limit: -1},
		"no state":       {Types: []string{kind}, Limit: 1},
		"no known state": {State: "lapsed", Types: []string{kind}, Limit: 1},
	} {
		if records, err := f.ledger().Find(f.Context(), q); !errors.Is(err, idem.ErrInvalid) || len(records) != 0 {
			f.Errorf("%s: %d records, %v; want ErrInvalid", name, len(records), err)
		}
	}
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	for _, types := range [][]string{nil, {kind}} {
		if _, err := f.ledger().Find(ctx, idem.Query{State: idem.Failed, Types: types, Limit: 1}); !errors.Is(err, context.Canceled) {
			f.Errorf("Find of %q with a cancelled context: %v", types, err)
		}
	}
}

// findThenClaim: a ledger may have replaced parts that do not fit its columns, and what it returns must still mean the record that it read.
func findThenClaim(f fixture) {
	for part, set := range map[string]func(*idem.Request, string){
		"tenant":     func(q *idem.Request, s string) { q.Key.Tenant = s },
		"type":       func(q *idem.Request, s string) { q.Key.Type = s },
		"scope":      func(q *idem.Request, s string) { q.Key.Scope = s },
		"id":         func(q *idem.Request, s string) { q.Key.ID = s },
		"both":       func(q *idem.Request, s string) { q.Key.Scope, q.Key.ID = s, s },
		"subject":    func(q *idem.Request, s string) { q.Subject, q.Key.ID = s, fmt.Sprintf("%q", s) },
		"request id": func(q *idem.Request, s string) { q.RequestID, q.Key.ID = s, fmt.Sprintf("%q", s) },
	} {
		var asked []idem.Request
		for i, value := range hostile() {
			q := ofKind("for "+part, kind+" by "+part)
			q.RequestID = fmt.Sprintf("request-%s-%d", part, i)
			set(&q, value)
			f.lapsed(q)
			asked = append(asked, q)
		}
		f.claimsFound(part, asked)
	}
}

// claimsFound claims what is found and sees that exactly the records that were asked for are claimed.
func (f fixture) claimsFound(what string, asked []idem.Request) {
	f.Helper()
	var types []string
	for _, q := range asked {
		types = append(types, q.Key.Type)
	}
	found := f.find(idem.Query{State: idem.Processing, Types: types, Limit: len(asked) + 1})
	if len(found) != len(asked) {
		f.Fatalf("%s: found %d records of %d", what, len(found), len(asked))
	}
	owners := map[string]bool{}
	for _, r := range found {
		next := idem.Request{
			Key: r.Key, Subject: r.Subject, RequestID: r.RequestID, Fingerprint: r.Fingerprint,
			Owner: idem.NewOwner(), Lease: longLease, Retention: longRetention,
		}
		f.won(next, 2)
		owners[next.Owner] = true
	}
	for _, q := range asked {
		if record := f.stands(q, idem.Processing, 2); !owners[record.Owner] || record.Key != q.Key || record.RequestID != q.RequestID {
			f.Errorf("%s: record %+v of request %+v", what, record, q)
		}
	}
}
