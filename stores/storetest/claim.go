package storetest

import (
	"bytes"
	"math"

	"github.com/idemkit/idem"
)

func claimChecks() []check {
	return []check{
		{"claim/the first one is won with attempt 1", firstClaim},
		{"claim/a duplicate of a running one is busy", duplicateWhileRunning},
		{"claim/other keys are not concerned", otherKeys},
		{"claim/another payload under a running key is a mismatch", otherPayloadWhileRunning},
		{"claim/an empty fingerprint matches any", emptyFingerprint},
		{"claim/the first payload may be empty", firstWithoutFingerprint},
		{"claim/for the longest time there is", longestClaim},
		{"claim/the caller's bytes are copied", fingerprintIsCopied},
		{"lookup/absent", lookupAbsent},
		{"ping/answers", func(f fixture) {
			if err := f.Store.Ping(f.Context()); err != nil {
				f.Fatalf("Ping: %v", err)
			}
		}},
	}
}

func firstClaim(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	if claim.OutboundKey() != q.Key.Digest() {
		f.Errorf("outbound key %q", claim.OutboundKey())
	}
	record := f.stands(q, idem.Processing, 1)
	if record.Key != q.Key || record.Owner != q.Owner || record.Subject != q.Subject || record.RequestID != q.RequestID ||
		!bytes.Equal(record.Fingerprint, q.Fingerprint) {
		f.Errorf("record %+v of request %+v", record, q)
	}
	if !record.Live() || record.LeaseLeft > q.Lease || record.LeaseLeft < q.Lease/2 {
		f.Errorf("lease left %v of %v", record.LeaseLeft, q.Lease)
	}
	if !sameResult(record.Result, idem.Result{}) {
		f.Errorf("a running record has the result %+v", record.Result)
	}
}

func duplicateWhileRunning(f fixture) {
	q := request("1")
	f.won(q, 1)
	answer := f.ask(f.other, again(q))
	if answer.Outcome != idem.Busy {
		f.Fatalf("outcome %v, want busy", answer.Outcome)
	}
	if r := answer.Record; r.State != idem.Processing || r.Attempt != 1 || r.Owner != q.Owner || !r.Live() {
		f.Errorf("record %+v", r)
	}
	f.stands(q, idem.Processing, 1)
}

func otherKeys(f fixture) {
	first := f.won(request("1"), 1)
	second := f.won(request("2"), 1)
	f.complete(first, result())
	f.stands(second.Request, idem.Processing, 1)
	f.release(second, idem.Failed)
	f.stands(first.Request, idem.Succeeded, 1)
}

func otherPayloadWhileRunning(f fixture) {
	q := request("1")
	f.won(q, 1)
	answer := f.outcome(idem.Mismatch, corrected(q))
	if answer.Record.State != idem.Processing || answer.Record.Key != q.Key {
		f.Errorf("record %+v", answer.Record)
	}
	if record := f.lookup(q); !bytes.Equal(record.Fingerprint, q.Fingerprint) {
		f.Errorf("fingerprint %q", record.Fingerprint)
	}
}

// emptyFingerprint walks through running, taken over and done: what was bound once stays bound.
func emptyFingerprint(f fixture) {
	q := request("1")
	f.won(q, 1)
	blank := again(q)
	blank.Fingerprint = nil
	f.outcome(idem.Busy, blank)
	f.Lapse(f.T, q.Key)
	claim := f.won(blank, 2)
	if record := f.lookup(q); !bytes.Equal(record.Fingerprint, q.Fingerprint) {
		f.Fatalf("the takeover left the fingerprint %q", record.Fingerprint)
	}
	f.outcome(idem.Mismatch, corrected(q))
	f.complete(claim, result())
	f.outcome(idem.Mismatch, corrected(q))
	f.replays(again(q), result())
	blank = again(blank)
	blank.Fingerprint = []byte{}
	f.replays(blank, result())
}

func firstWithoutFingerprint(f fixture) {
	blank := request("1")
	blank.Fingerprint = nil
	f.won(blank, 1)
	f.outcome(idem.Busy, again(request("1")))
	f.Lapse(f.T, blank.Key)
	claim := f.won(again(request("1")), 2)
	f.outcome(idem.Mismatch, corrected(request("1")))
	f.complete(claim, result())
	f.outcome(idem.Mismatch, corrected(request("1")))
}

// longestClaim: a time so long that its end cannot be told must not count as over.
func longestClaim(f fixture) {
	q := request("1")
	q.Lease, q.Retention = math.MaxInt64, math.MaxInt64
	claim := f.won(q, 1)
	for range 2 {
		if answer := f.outcome(idem.Busy, again(q)); !answer.Record.Live() {
			f.Errorf("record %+v", answer.Record)
		}
		if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
			f.Fatalf("Extend: lost %v, %v", lost, err)
		}
	}
	kept := result()
	kept.Keep = math.MaxInt64
	f.complete(claim, kept)
	f.replays(again(q), result())
}

func fingerprintIsCopied(f fixture) {
	q := request("1")
	q.Fingerprint = []byte("mutable")
	f.won(q, 1)
	copy(q.Fingerprint, "MUTATED")
	original := again(q)
	original.Fingerprint = []byte("mutable")
	f.outcome(idem.Busy, original)
	seen := f.lookup(q)
	copy(seen.Fingerprint, "MUTATED")
	f.outcome(idem.Busy, original)
}

func lookupAbsent(f fixture) {
	f.absent(request("never"))
	f.won(request("1"), 1)
	f.absent(request("never"))
	bare := idem.Request{Key: request("1").Key, Subject: "alice"}
	f.stands(bare, idem.Processing, 1)
}
