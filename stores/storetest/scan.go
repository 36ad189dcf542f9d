package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/idemkit/idem"
)

func scanChecks() []check {
	return []check{
		{"scan/every record, as it stands, with its ledger", scanStates},
		{"scan/any bytes in any part", scanHostile},
		{"scan/many, while others come and go", scanMany},
		{"scan/nothing", scanNothing},
		{"scan/ends with the first error", scanEnds},
		{"drop/only while state, owner and attempt are the same", dropCompares},
		{"drop/in every state", dropStates},
		{"drop/leaves tokens alone", dropLeavesTokens},
		{"drop/any bytes in any part", dropHostile},
	}
}

// scanned is what a scan showed of one key last.
type scanned struct {
	record idem.Record
	ledger string
}

func (f fixture) scan() map[idem.Key]scanned {
	f.Helper()
	all := map[idem.Key]scanned{}
	err := f.another().Scan(f.Context(), func(r idem.Record, ledger string) error {
		if !sameResult(r.Result, idem.Result{Status: r.Result.Status}) || r.Result.Keep != 0 {
			f.Errorf("%+v: of the result the scan shows %+v", r.Key, r.Result)
		}
		all[r.Key] = scanned{r, ledger}
		return nil
	})
	if err != nil {
		f.Fatalf("Scan: %v", err)
	}
	return all
}

func (f fixture) drop(r idem.Record, want bool) {
	f.Helper()
	if done, err := f.tokens().Drop(f.Context(), r); err != nil || done != want {
		f.Fatalf("Drop of %s %+v: %v, %v; want %v", r.State, r.Key, done, err, want)
	}
}

// inEachState makes a record for each way in which one may stand, half of them with a ledger.
func (f fixture) inEachState() map[idem.State]idem.Request {
	f.Helper()
	asked := map[idem.State]idem.Request{}
	for _, state := range []idem.State{idem.Processing, idem.Succeeded, idem.Failed, idem.Cancelled} {
		q := request(string(state))
		if state == idem.Succeeded || state == idem.Processing {
			q.Ledger = "pg:shop.public.records"
		}
		claim := f.won(q, 1)
		switch state {
		case idem.Succeeded:
			f.complete(claim, result())
		case idem.Failed, idem.Cancelled:
			f.release(claim, state)
		case idem.Processing:
		}
		asked[state] = q
	}
	return asked
}

func scanStates(f fixture) {
	asked := f.inEachState()
	restored := request("restored")
	restored.Ledger = "sqlite:shop.db#records"
	if err := f.tokens().Restore(f.Context(), idem.Claim{Request: restored, Attempt: 4}, result()); err != nil {
		f.Fatalf("Restore: %v", err)
	}
	f.issue(f.tokens(), request("a token is no record").Key, "a")
	all := f.scan()
	if len(all) != len(asked)+1 {
		f.Errorf("%d keys, want %d", len(all), len(asked)+1)
	}
	for state, q := range asked {
		got := all[q.Key]
		want := f.stands(q, state, 1)
		if got.ledger != q.Ledger || got.record.State != state || got.record.Attempt != 1 || got.record.Owner != want.Owner ||
			got.record.Subject != q.Subject || got.record.RequestID != q.RequestID || got.record.Live() != want.Live() ||
			got.record.Result.Status != want.Result.Status {
			f.Errorf("%s: %+v of ledger %q, want %+v of %q", state, got.record, got.ledger, want, q.Ledger)
		}
	}
	if got := all[restored.Key]; got.ledger != restored.Ledger || got.record.Attempt != 4 || got.record.State != idem.Succeeded {
		f.Errorf("restored: %+v of ledger %q", got.record, got.ledger)
	}
}

// hostileRequests have every hostile string in every part that a record repeats.
func hostileRequests() []idem.Request {
	var asked []idem.Request
	for part, set := range map[string]func(*idem.Request, string){
		"tenant":     func(q *idem.Request, s string) { q.Key.Tenant = s },
		"type":       func(q *idem.Request, s string) { q.Key.Type = s },
		"scope":      func(q *idem.Request, s string) { q.Key.Scope = s },
		"id":         func(q *idem.Request, s string) { q.Key.ID = s },
		"subject":    func(q *idem.Request, s string) { q.Subject, q.Key.ID = s, fmt.Sprintf("subject %q", s) },
		"request id": func(q *idem.Request, s string) { q.RequestID, q.Key.ID = s, fmt.Sprintf("request id %q", s) },
		"ledger":     func(q *idem.Request, s string) { q.Ledger, q.Key.ID = s, fmt.Sprintf("ledger %q", s) },
	} {
		for i, value := range hostile() {
			q := request("for " + part)
			q.RequestID = fmt.Sprintf("request-%s-%d", part, i)
			set(&q, value)
			asked = append(asked, q)
		}
	}
	return asked
}

func scanHostile(f fixture) {
	asked := hostileRequests()
	for _, q := range asked {
		f.won(q, 1)
	}
	all := f.scan()
	if len(all) != len(asked) {
		f.Errorf("%d keys, want %d", len(all), len(asked))
	}
	for _, q := range asked {
		if got := all[q.Key]; got.record.Key != q.Key || got.record.Owner != q.Owner || got.record.Subject != q.Subject ||
			got.record.RequestID != q.RequestID || got.ledger != q.Ledger {
			f.Errorf("%+v: %+v of ledger %q", q.Key, got.record, got.ledger)
		}
	}
}

func scanMany(f fixture) {
	const many = 600
	for i := range many {
		f.won(request(fmt.Sprint(i)), 1)
	}
	seen, visits := map[string]bool{}, 0
	err := f.tokens().Scan(f.Context(), func(r idem.Record, _ string) error {
		seen[r.Key.ID] = true
		if visits++; visits > many/4 {
			return nil
		}
		come := request(fmt.Sprint("come ", visits))
		if _, err := f.Store.Claim(f.Context(), come); err != nil {
			return err
		}
		gone, err := f.Store.Lookup(f.Context(), come)
		if err != nil {
			return err
		}
		_, err = f.tokens().Drop(f.Context(), gone)
		return err
	})
	if err != nil {
		f.Fatalf("Scan: %v", err)
	}
	for i := range many {
		if !seen[fmt.Sprint(i)] {
			f.Errorf("record %d was not seen", i)
		}
	}
}

func scanNothing(f fixture) {
	f.issue(f.tokens(), request("1").Key, "a", "b")
	if all := f.scan(); len(all) != 0 {
		f.Errorf("an empty store shows %+v", all)
	}
}

func scanEnds(f fixture) {
	f.inEachState()
	enough, visits := errors.New("enough"), 0
	err := f.tokens().Scan(f.Context(), func(idem.Record, string) error { visits++; return enough })
	if !errors.Is(err, enough) || visits != 1 {
		f.Errorf("Scan: %v after %d visits", err, visits)
	}
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if err := f.tokens().Scan(ctx, func(idem.Record, string) error { return nil }); !errors.Is(err, context.Canceled) {
		f.Errorf("Scan with a cancelled context: %v", err)
	}
	if done, err := f.tokens().Drop(ctx, f.lookup(request(string(idem.Failed)))); done || !errors.Is(err, context.Canceled) {
		f.Errorf("Drop with a cancelled context: %v, %v", done, err)
	}
}
