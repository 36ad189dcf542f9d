package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
)

func ledgerChecks() []check {
	checks := []check{
		{"ledger/its name stays", ledgerName},
		{"request id/under another key is a mismatch", requestIDElsewhere},
		{"request id/a failed record gives it up", requestIDGivenUp},
		{"request id/a record that moved on lets its old one go", requestIDReplaced},
		{"request id/is unique per tenant, type and subject", requestIDScope},
		{"request id/an empty one is not unique", requestIDEmpty},
		{"request id/in use elsewhere is a mismatch for any record", requestIDAgainstRecords},
		{"request id/another's key comes first", requestIDAndForeign},
		{"request id/finds the record", requestIDLookup},
		{"request id/race: many keys, one wins", requestIDRace},
	}
	return gather(checks, txChecks(), purgeChecks(), abandonedChecks(), findChecks(), sequenceChecks(), keepChecks())
}

func (f fixture) ledger() idem.Ledger { return f.Store.(idem.Ledger) }

func ledgerName(f fixture) {
	name := f.ledger().Name()
	f.won(request("1"), 1)
	if name == "" || f.ledger().Name() != name {
		f.Errorf("names %q and %q", name, f.ledger().Name())
	}
}

// moved is a call for another key that bears the same request id.
func moved(q idem.Request, id string) idem.Request {
	q = again(q)
	q.Key.ID = id
	return q
}

func requestIDElsewhere(f fixture) {
	states := map[string]func(idem.Claim){
		"running":   func(idem.Claim) {},
		"lapsed":    func(c idem.Claim) { f.Lapse(f.T, c.Key) },
		"unknown":   func(c idem.Claim) { f.release(c, idem.Processing) },
		"done":      func(c idem.Claim) { f.complete(c, result()) },
		"cancelled": func(c idem.Claim) { f.release(c, idem.Cancelled) },
	}
	for name, reach := range states {
		q := request(name)
		claim := f.won(q, 1)
		reach(claim)
		next := moved(q, "not "+name)
		for range 2 {
			if answer := f.outcome(idem.Mismatch, next); answer.Record.Key != q.Key {
				f.Errorf("%s: the record shown is of %+v", name, answer.Record.Key)
			}
		}
		next.RequestID = ""
		f.absent(next)
		f.won(next, 1)
	}
}

func requestIDGivenUp(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Failed)
	next := moved(q, "2")
	claim := f.won(next, 1)
	if record := f.stands(q, idem.Failed, 1); record.RequestID != "" {
		f.Errorf("the failed record still bears %q", record.RequestID)
	}
	if record := f.stands(next, idem.Processing, 1); record.RequestID != q.RequestID {
		f.Errorf("the new record bears %q", record.RequestID)
	}
	f.outcome(idem.Mismatch, again(q))
	f.release(claim, idem.Failed)
	f.won(again(q), 2)
	f.outcome(idem.Mismatch, again(next))
}

func requestIDReplaced(f fixture) {
	q := request("1")
	f.release(f.won(q, 1), idem.Failed)
	renewed := again(q)
	renewed.RequestID = "another intention"
	claim := f.won(renewed, 2)
	f.won(moved(q, "2"), 1)
	f.outcome(idem.Mismatch, moved(renewed, "3"))
	f.release(claim, idem.Failed)
	without := again(q)
	without.RequestID = ""
	f.won(without, 3)
	if record := f.stands(without, idem.Processing, 3); record.RequestID != "" {
		f.Errorf("the record bears %q", record.RequestID)
	}
	f.won(moved(renewed, "3"), 1)
}

func requestIDScope(f fixture) {
	q := request("1")
	f.won(q, 1)
	for name, change := range map[string]func(*idem.Request){
		"tenant":  func(q *idem.Request) { q.Key.Tenant = "another" },
		"type":    func(q *idem.Request) { q.Key.Type = "another" },
		"subject": func(q *idem.Request) { q.Subject = "another" },
		"case":    func(q *idem.Request) { q.RequestID = "REQUEST-1" },
	} {
		next := moved(q, "of "+name)
		change(&next)
		f.won(next, 1)
	}
	scoped := moved(q, "2")
	scoped.Key.Scope = "alice"
	f.outcome(idem.Mismatch, scoped)
}

func requestIDEmpty(f fixture) {
	for i := range 5 {
		q := request(fmt.Sprint(i))
		q.RequestID = ""
		claim := f.won(q, 1)
		if i%2 == 0 {
			f.complete(claim, result())
		}
	}
}

// requestIDAgainstRecords: the intention is bound to the first key, whatever stands under the second.
func requestIDAgainstRecords(f fixture) {
	bound := request("bound")
	f.won(bound, 1)
	states := map[string]func(idem.Claim){
		"running": func(idem.Claim) {},
		"lapsed":  func(c idem.Claim) { f.Lapse(f.T, c.Key) },
		"done":    func(c idem.Claim) { f.complete(c, result()) },
		"failed":  func(c idem.Claim) { f.release(c, idem.Failed) },
	}
	for name, reach := range states {
		q := request(name)
		reach(f.won(q, 1))
		before := f.lookup(q)
		if answer := f.outcome(idem.Mismatch, moved(bound, name)); answer.Record.Key != bound.Key {
			f.Errorf("%s: the record shown is of %+v", name, answer.Record.Key)
		}
		if after := f.stands(q, before.State, 1); after.RequestID != q.RequestID {
			f.Errorf("%s: the record bears %q", name, after.RequestID)
		}
	}
}

func requestIDAndForeign(f fixture) {
	theirs, ours := request("theirs"), request("ours")
	f.won(theirs, 1)
	ours.Subject = "bob"
	f.won(ours, 1)
	next := moved(ours, "theirs")
	if answer := f.outcome(idem.Foreign, next); !blank(answer.Record) {
		f.Errorf("a foreign answer tells %+v", answer.Record)
	}
	next.Shared = true
	f.outcome(idem.Mismatch, next)
}

func requestIDLookup(f fixture) {
	q := request("1")
	f.complete(f.won(q, 1), result())
	elsewhere := idem.Request{Key: q.Key, Subject: q.Subject, RequestID: q.RequestID}
	elsewhere.Key.ID = "never"
	if record := f.stands(elsewhere, idem.Succeeded, 1); record.Key != q.Key || !sameResult(record.Result, result()) {
		f.Errorf("record %+v", record)
	}
	other := elsewhere
	other.Subject = "bob"
	f.absent(other)
	other = elsewhere
	other.RequestID = ""
	f.absent(other)
	second := request("2")
	f.won(second, 1)
	elsewhere.Key = second.Key
	f.stands(elsewhere, idem.Processing, 1)
}

func requestIDRace(f fixture) {
	q := request("1")
	var next atomic.Int64
	fan := func(s idem.Store) asking {
		return func(ctx context.Context, q idem.Request) (idem.Answer, error) {
			q.Key.ID = fmt.Sprint(next.Add(1))
			return s.Claim(ctx, q)
		}
	}
	won := 0
	for _, c := range f.race(fan(f.Store), fan(f.other), q) {
		switch {
		case c.err != nil:
			f.Fatalf("error: %v", c.err)
		case c.answer.Outcome == idem.Won:
			won++
		case c.answer.Outcome != idem.Mismatch:
			f.Fatalf("outcome %v, want mismatch", c.answer.Outcome)
		}
	}
	if won != 1 {
		f.Fatalf("%d keys won one request id", won)
	}
}

// bounded is a context for what may wait for a transaction to end.
func (f fixture) bounded(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), limit)
	f.Cleanup(cancel)
	return ctx
}
