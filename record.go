package idem

import (
	"bytes"
	"fmt"
	"time"
)

// State is where a record stands.
//
//	absent -> processing -> succeeded
//	             |  ^
//	             v  |
//	           failed -> cancelled
//	processing -> cancelled
//
// A processing record whose lease ran out may be claimed again, with the attempt one higher.
type State string

// The states of a record.
const (
	Processing State = "processing" // claimed; the work runs, or its claimer died
	Succeeded  State = "succeeded"  // done, for good
	Failed     State = "failed"     // ended without effect; may be claimed again
	Cancelled  State = "cancelled"  // never to be executed
)

// Next reports whether a record may go from s to t. Processing to Processing is a takeover, or the
// end of a lease whose work has an unknown outcome.
func (s State) Next(t State) bool {
	switch s {
	case "":
		return t == Processing
	case Processing:
		return t == Processing || t == Succeeded || t == Failed || t == Cancelled
	case Failed:
		return t == Processing || t == Cancelled
	case Succeeded, Cancelled:
		return false
	}
	return false
}

// Outcome is a store's answer to a request for a claim.
type Outcome int

// The outcomes of Claim and Spend.
const (
	Won       Outcome = iota + 1 // the caller holds the claim
	Busy                         // somebody else holds it, and its lease still stands
	Done                         // succeeded before; the record has the result
	Mismatch                     // running or done with another payload, or the request id belongs to another key
	Foreign                      // the key belongs to another subject
	Withdrawn                    // cancelled
	Unknown                      // entrance stores without a ledger: the token is not known
)

// String is the outcome's name in lower case.
func (o Outcome) String() string {
	switch o {
	case Won:
		return "won"
	case Busy:
		return "busy"
	case Done:
		return "done"
	case Mismatch:
		return "mismatch"
	case Foreign:
		return "foreign"
	case Withdrawn:
		return "withdrawn"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("outcome(%d)", int(o))
}

// Result is the first answer of an operation, replayed to every duplicate.
type Result struct {
	Status int         // HTTP status; 0 outside HTTP
	Header [][2]string // header lines in the order in which they were written
	Body   []byte      // exactly the bytes that were sent
	Kept   bool        // false: it is known to be done, but header and body are not to be had
	// Keep is how long header and body are kept. On Complete and Restore it counts from then, up to the record's retention; 0: as long as the record. Where a
	// ledger's record is read it is what is left of that time, so that an entrance which is told of the success keeps it no longer than the ledger.
	Keep time.Duration
}

// Format is the version of what a record means, of its fingerprint and its result. A record with
// a higher one is answered ErrFormat: never replayed, never overwritten.
const Format = 1

// Record is what a store knows of one key.
type Record struct {
	Key         Key
	State       State
	Attempt     int
	Owner       string        // whose claim it is or was; empty after a release and where the outcome is unknown
	Subject     string        // who claimed it last
	RequestID   string        // the intention of the last claim; empty where there was none, or it was given up
	Fingerprint []byte        // of the running or successful payload; empty after failure
	Result      Result        // when succeeded
	Reason      string        // of the last release, for people, whatever was claimed since; empty after a success, and in stores that are no ledgers
	LeaseLeft   time.Duration // when processing, by the store's own clock; 0 or less: the lease ran out
}

// Live reports whether somebody holds the record's claim.
func (r Record) Live() bool { return r.State == Processing && r.LeaseLeft > 0 }

// Judge is the whole decision about a request for a claim, the same for every store. byKey is the
// record under the request's key, byRequestID the record under another key that bears the same
// tenant, type, subject and request id; nil where there is none. Won means that the request may claim: the
// record is absent, failed, or processing with its lease run out - or is this owner's claim already, which a
// store repeats as it stands (a command whose reply was lost).
//
// Another subject's key is judged before state and payload, so that its answer tells nothing of them.
func Judge(q Request, byKey, byRequestID *Record) Outcome {
	switch {
	case byKey != nil && byKey.State == Processing && byKey.Owner == q.Owner:
		return Won
	case byKey != nil && byKey.Subject != q.Subject && !q.Shared:
		return Foreign
	case byRequestID != nil && byRequestID.State != Failed:
		return Mismatch
	case byKey == nil || byKey.State == Failed:
		return Won
	case byKey.State == Cancelled:
		return Withdrawn
	case differ(byKey.Fingerprint, q.Fingerprint):
		return Mismatch
	case byKey.State == Succeeded:
		return Done
	case byKey.Live():
		return Busy
	}
	return Won
}

func differ(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && !bytes.Equal(a, b) }
