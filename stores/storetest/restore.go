package storetest

import (
	"bytes"

	"github.com/idemkit/idem"
)

// restoreChecks: the ledger vouches for a success, and the entrance store takes its word over whatever it has.
func restoreChecks() []check {
	before := map[string]func(fixture, idem.Request){
		"nothing":               func(fixture, idem.Request) {},
		"a running claim":       func(f fixture, q idem.Request) { f.won(q, 1) },
		"a lapsed claim":        func(f fixture, q idem.Request) { f.lapsed(q) },
		"an unknown outcome":    func(f fixture, q idem.Request) { f.release(f.won(q, 1), idem.Processing) },
		"a failure":             func(f fixture, q idem.Request) { f.release(f.won(q, 1), idem.Failed) },
		"a cancellation":        func(f fixture, q idem.Request) { f.release(f.won(q, 1), idem.Cancelled) },
		"another's result":      func(f fixture, q idem.Request) { f.complete(f.won(q, 1), idem.Result{Status: 200}) },
		"another payload":       func(f fixture, q idem.Request) { f.won(corrected(q), 1) },
		"another subject":       func(f fixture, q idem.Request) { f.won(stranger(q), 1) },
		"a much higher attempt": func(f fixture, q idem.Request) { f.outrun(q, 9) },
	}
	checks := []check{
		{"restore/repeated", restoreTwice},
		{"restore/of a result that is not kept", restoreUnkept},
		{"restore/refuses the claim that it overwrote", restoreFences},
	}
	for name, reach := range before {
		checks = append(checks, check{"restore/over " + name, func(f fixture) {
			q := request("1")
			reach(f, again(q))
			f.restored(q, 5)
		}})
	}
	return checks
}

func (f fixture) outrun(q idem.Request, attempts int) {
	for attempt := 1; attempt <= attempts; attempt++ {
		f.release(f.won(again(q), attempt), idem.Failed)
	}
}

// restored writes a success and checks what a duplicate and a reader get.
func (f fixture) restored(q idem.Request, attempt int) {
	f.Helper()
	if err := f.tokens().Restore(f.Context(), idem.Claim{Request: q, Attempt: attempt}, result()); err != nil {
		f.Fatalf("Restore: %v", err)
	}
	record := f.stands(q, idem.Succeeded, attempt)
	if record.Owner != q.Owner || record.Subject != q.Subject || record.RequestID != q.RequestID || !bytes.Equal(record.Fingerprint, q.Fingerprint) {
		f.Errorf("record %+v of request %+v", record, q)
	}
	answer := f.spends(f.tokens(), idem.Done, "spent long ago", again(q))
	if !sameResult(answer.Record.Result, result()) || answer.Record.Attempt != attempt {
		f.Errorf("record %+v", answer.Record)
	}
	f.spends(f.tokens(), idem.Mismatch, "spent long ago", corrected(q))
	f.replays(again(q), result())
	f.outcome(idem.Foreign, stranger(q))
}

func restoreTwice(f fixture) {
	q := request("1")
	for range 3 {
		f.restored(q, 2)
	}
	f.complete(idem.Claim{Request: q, Attempt: 2}, idem.Result{Status: 500})
	f.restored(q, 2)
}

func restoreUnkept(f fixture) {
	q := request("1")
	f.won(q, 1)
	r := result()
	r.Kept = false
	if err := f.tokens().Restore(f.Context(), idem.Claim{Request: q, Attempt: 1}, r); err != nil {
		f.Fatalf("Restore: %v", err)
	}
	f.replays(again(q), idem.Result{Status: r.Status})
}

func restoreFences(f fixture) {
	q := request("1")
	running := f.won(again(q), 1)
	f.restored(q, 2)
	f.lost(running)
	f.replays(again(q), result())
}
