package idem

import "time"

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	Answered       EventKind = "answered"        // a call was answered: executed, replayed or refused
	EntranceFailed EventKind = "entrance_failed" // the entrance store did not answer, and the ledger decides alone
	ClaimLost      EventKind = "claim_lost"      // work goes on without its claim; its context is cancelled
	ReleaseFailed  EventKind = "release_failed"  // a claim could not be released; its lease will end it
	OutcomeLost    EventKind = "outcome_lost"    // the work succeeded and its result could not be recorded
)

// Event is what an observer sees. It holds no key, payload or token.
type Event struct {
	Kind     EventKind
	Type     string        // the business type
	State    State         // of the work, when answered
	Attempt  int           // of the claim; 0: none
	Replayed bool          // answered with the first result
	Err      error         // what was refused, or failed; may name addresses of stores: for logs, not for callers
	Took     time.Duration // when answered
}
