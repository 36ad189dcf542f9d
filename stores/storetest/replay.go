package storetest

import (
	"bytes"
	"time"

	"github.com/idemkit/idem"
)

func replayChecks() []check {
	checks := []check{
		{"replay/another payload after success is a mismatch", otherPayloadWhenDone},
		{"replay/the claim's payload is kept by a success", successKeepsFingerprint},
		{"replay/header and body go after their time, the status stays", keepRunsOut},
		{"replay/the result is copied in and out", resultIsCopied},
	}
	for _, c := range results() {
		checks = append(checks, check{"replay/" + c.name, func(f fixture) { f.replaysAs(c.result, c.seen) }})
	}
	return checks
}

type resultCase struct {
	name         string
	result, seen idem.Result
}

func results() []resultCase {
	binary := make([]byte, 256<<10)
	for i := range binary {
		binary[i] = byte(i * 31 >> 3)
	}
	same := func(name string, r idem.Result) resultCase { return resultCase{name, r, r} }
	return []resultCase{
		same("header lines in order, duplicates, a binary body", result()),
		same("256 KiB of every byte", idem.Result{Status: 200, Body: binary, Kept: true}),
		same("no header, nil body", idem.Result{Status: 204, Kept: true}),
		same("no header, empty body", idem.Result{Status: 200, Header: [][2]string{}, Body: []byte{}, Kept: true}),
		same("one NUL", idem.Result{Status: 200, Body: []byte{0}, Kept: true}),
		same("broken UTF-8 in a header", idem.Result{Status: 302, Header: [][2]string{{"Location", "/\xff\x00\"\\"}, {"", ""}}, Kept: true}),
		same("text that looks like numbers and JSON", idem.Result{Status: 200, Header: [][2]string{{"1", "2"}}, Body: []byte(`1e3`), Kept: true}),
		same("no status", idem.Result{Body: []byte("outside HTTP"), Kept: true}),
		{
			"not kept: neither header nor body", idem.Result{Status: 200, Header: result().Header, Body: result().Body},
			idem.Result{Status: 200},
		},
		{"nothing kept at all", idem.Result{}, idem.Result{}},
	}
}

// replaysAs checks the result on every path by which a duplicate may meet it.
func (f fixture) replaysAs(r, seen idem.Result) {
	q := request("1")
	f.complete(f.won(q, 1), r)
	f.replays(again(q), seen)
	f.replays(q, seen)
	record := f.stands(q, idem.Succeeded, 1)
	if !sameResult(record.Result, seen) {
		f.Errorf("Lookup: result %+v, want %+v", record.Result, seen)
	}
	if record.Live() || record.LeaseLeft > 0 {
		f.Errorf("a finished record has a lease of %v", record.LeaseLeft)
	}
	answer := f.ask(f.other, again(q))
	if answer.Outcome != idem.Done || !sameResult(answer.Record.Result, seen) {
		f.Errorf("the other handle answers %v, %+v", answer.Outcome, answer.Record.Result)
	}
}

func otherPayloadWhenDone(f fixture) {
	q := request("1")
	f.complete(f.won(q, 1), result())
	answer := f.outcome(idem.Mismatch, corrected(q))
	if r := answer.Record; r.State != idem.Succeeded || r.Attempt != 1 || !sameResult(r.Result, result()) {
		f.Errorf("record %+v", r)
	}
	f.replays(again(q), result())
}

func successKeepsFingerprint(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	claim.Fingerprint = nil
	f.complete(claim, result())
	record := f.stands(q, idem.Succeeded, 1)
	if !bytes.Equal(record.Fingerprint, q.Fingerprint) || record.Owner != q.Owner || record.Subject != q.Subject || record.RequestID != q.RequestID {
		f.Errorf("record %+v of request %+v", record, q)
	}
}

func keepRunsOut(f fixture) {
	q, r := request("1"), result()
	r.Keep = 20 * time.Millisecond
	f.complete(f.won(q, 1), r)
	f.eventually("header and body are gone", func() bool {
		answer := f.outcome(idem.Done, again(q))
		return sameResult(answer.Record.Result, idem.Result{Status: r.Status})
	})
	f.outcome(idem.Mismatch, corrected(q))
	long := request("2")
	r.Keep = longRetention
	f.complete(f.won(long, 1), r)
	f.replays(again(long), r)
}

func resultIsCopied(f fixture) {
	q, r := request("1"), result()
	f.complete(f.won(q, 1), r)
	r.Body[0], r.Header[0] = 'X', [2]string{"X", "X"}
	f.replays(again(q), result())
	seen := f.lookup(q)
	seen.Result.Body[0], seen.Result.Header[0] = 'X', [2]string{"X", "X"}
	seen = f.outcome(idem.Done, again(q)).Record
	seen.Result.Body[0], seen.Result.Header[0] = 'X', [2]string{"X", "X"}
	f.replays(again(q), result())
}
