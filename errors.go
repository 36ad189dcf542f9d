package idem

import "errors"

// PartError is what Extend returns where it could ask about some claims only, as where a node of a cluster is away: of those at Unasked, in ascending order, it
// knows nothing; the others are renewed, unless they are lost.
type PartError struct {
	Unasked []int
	Err     error
}

// Error is the text of the cause.
func (e *PartError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *PartError) Unwrap() error { return e.Err }

// What stores and the engine return, to be compared with errors.Is: they come joined with their cause.
var (
	// ErrInvalid says that a request can never be answered; the text names the field.
	ErrInvalid = errors.New("idem: invalid request")
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("idem: no such record")
	// ErrFormat says that a newer version wrote the record.
	ErrFormat = errors.New("idem: the record has a format that this version does not know")
	// ErrClaimLost says that the claim was taken over, finished or released by somebody: the fence refused the write.
	ErrClaimLost = errors.New("idem: the claim is lost")
	// ErrLeaseExpired is the cause of a cancelled context of work whose claim could not be renewed in time.
	ErrLeaseExpired = errors.New("idem: the lease could not be renewed in time")
	// ErrHeldTooLong is the cause of the cancelled context of a lock that was held for its longest time.
	ErrHeldTooLong = errors.New("idem: the lock was held for too long")
	// ErrDuplicate says that the window of the key is not over.
	ErrDuplicate = errors.New("idem: a duplicate within the window")
	// ErrUnavailable says that no store could decide; nothing was executed.
	ErrUnavailable = errors.New("idem: the stores cannot decide")
	// ErrOutcomeUnknown says that the work ran and it is not known whether its result stands. Work that returns it
	// leaves its claim processing, with the payload bound and the lease ended.
	ErrOutcomeUnknown = errors.New("idem: the outcome is unknown")
	// ErrInProgress says that somebody else still holds the claim after the waiting time.
	ErrInProgress = errors.New("idem: still in progress")
	// ErrPayloadMismatch says that the key was used with another payload.
	ErrPayloadMismatch = errors.New("idem: another payload under the same key")
	// ErrKeyTaken says that the key belongs to another subject.
	ErrKeyTaken = errors.New("idem: the key belongs to another subject")
	// ErrCancelled says that the operation was cancelled.
	ErrCancelled = errors.New("idem: the operation was cancelled")
	// ErrAlreadyDone says that the operation is done and its result is not kept.
	ErrAlreadyDone = errors.New("idem: already done; its result is not kept")
	// ErrTokenUsed says that, without a ledger, the store does not know the token.
	ErrTokenUsed = errors.New("idem: the token was used before")
	// ErrTokenExpired says that the token is past its time and nothing stands under it.
	ErrTokenExpired = errors.New("idem: the token is expired")
)
