package idem

import (
	"context"
	"fmt"
	"time"
)

// Answer is what a store says to a request for a claim.
type Answer struct {
	Outcome Outcome
	Claim   Claim  // when Won
	Record  Record // when Busy, Done, Mismatch or Withdrawn; empty when Foreign, which must tell nothing
}

// Store keeps records. Its contract is the suite stores/storetest, which every store passes.
//
// All methods are safe for concurrent use, by any number of processes that share the back end, and return the
// context's error when it ends. An error that is none of the documented ones means that the back end could not be
// asked or its answer did not arrive; a caller that repeats the same call gets the answer that was lost, for every
// method recognises its own repeated command by the request's owner.
type Store interface {
	// Claim decides by Judge, atomically, and when Won writes the claim: processing, attempt one higher than
	// the record's, the request's owner, subject, request id and fingerprint (an empty fingerprint leaves the one of a record that was
	// processing), the lease from the store's own clock. ErrInvalid for a request that does not validate; ErrFormat.
	Claim(ctx context.Context, q Request) (Answer, error)

	// Extend renews leases to the full length of each from now, in one round trip where the back end can, and
	// returns the indexes of the claims that are lost: not processing, or owned or attempted by somebody else. A lease that ran
	// out and that nobody took is renewed. A store that may forget (Redis) writes a vanished record again. *PartError where only some could be asked about.
	Extend(ctx context.Context, claims []Claim) (lost []int, err error)

	// Complete makes the claim's record succeeded with this result. It returns ErrClaimLost unless the record is processing by this owner and
	// attempt, or succeeded by them, which is the repetition of a call whose reply was lost and changes nothing. A store that may
	// forget writes a vanished record again.
	Complete(ctx context.Context, c Claim, r Result) error

	// Release ends the claim without success. as is Failed: it may be claimed again, with any payload; fingerprint and owner are dropped, the
	// attempt is kept. Cancelled: it will not be. Processing: the outcome is unknown; the payload stays bound, the owner is dropped so that no late
	// write of this claim can land, and the lease ends now. reason is for people: a ledger keeps it, as Reason cuts it, until the next release or the success. ErrClaimLost when the claim is not held.
	// A repetition by the same attempt that finds the record just as this call left it returns nil.
	Release(ctx context.Context, c Claim, as State, reason string) error

	// Lookup returns the record under the request's key or, where there is none and the store is a ledger, the one that bears its request id.
	// Only Key, Subject and RequestID of the request are read. ErrNotFound, ErrFormat. A ledger that sees another transaction of ClaimTx work on the key
	// may say so: processing and live, without owner and fingerprint; whoever waits then need not ask for a claim to find out.
	Lookup(ctx context.Context, q Request) (Record, error)

	// Ping reports whether the back end answers.
	Ping(ctx context.Context) error
}

// TokenStore is an entrance store: it also keeps one-time tokens. It may forget anything at any moment.
type TokenStore interface {
	Store

	// Issue stores tokens, all in one round trip, and prolongs the records of those that renew a request id.
	Issue(ctx context.Context, tokens []Token) error

	// Spend is Claim with permission: atomically compares and deletes the token and claims q.Key. Where there is no record, an unknown token is
	// Unknown unless q.Ledger is set. A record that exists answers by Judge, with or without the token: a spent token's holder may ask again.
	Spend(ctx context.Context, tokenID string, q Request) (Answer, error)

	// Restore writes a success that the ledger vouches for, over whatever the record says. The record keeps the attempt given.
	Restore(ctx context.Context, c Claim, r Result) error

	// Scan calls visit for every record that is there from beginning to end of the scan at least once, in no order, with the name of the ledger that
	// decides about it, empty where there is none. Of a result it shows the status alone, with Kept false. It stops at visit's first error and returns it. No lock is held meanwhile.
	Scan(ctx context.Context, visit func(r Record, ledger string) error) error

	// Drop removes the record if it still has this state, owner and attempt, and reports whether it did.
	Drop(ctx context.Context, r Record) (bool, error)
}

// Query says which records Find returns.
type Query struct {
	State State         // Processing: only those whose lease ran out
	Types []string      // business types; none: no records. Types that nobody knows here are never touched
	Quiet time.Duration // unchanged for at least this long
	Limit int           // at most so many; at least 1
}

// Validate reports, as ErrInvalid, what finds no records only because it was written wrongly. Every ledger calls it.
func (q Query) Validate() error {
	switch q.State {
	case Processing, Succeeded, Failed, Cancelled:
	default:
		return fmt.Errorf("%w: no record has the state %q", ErrInvalid, q.State)
	}
	if q.Limit < 1 {
		return fmt.Errorf("%w: a limit of %d records; it must be at least 1", ErrInvalid, q.Limit)
	}
	return nil
}

// Ledger is a durable store that decides. Where records live in the application's database, work may write there in a transaction that
// commits together with the record.
//
// A ledger also finds records by request id: the same request id under another key is a Mismatch unless that record is failed, which then gives
// the request id up.
type Ledger interface {
	Store

	// Name identifies the database and table, so that entrance records can say which ledger decides about them.
	Name() string

	// Open returns the context for the work of a claim that is committed already, and the transaction behind it, which begins when the work
	// first asks the store's package for it. limit bounds how long that transaction may stand idle. The end of ctx does not end the
	// transaction: only Complete and Rollback do.
	Open(ctx context.Context, c Claim, limit time.Duration) (context.Context, Tx)

	// ClaimTx is Claim inside a new transaction: claim, work and completion commit together or not at all. Another transaction
	// that holds the same key makes it Busy at once or, where the back end has one writer, after waiting for as long as ctx allows. ctx bounds the
	// claim only: the transaction outlives it. The context, with ctx's values, and the Tx are nil unless Won.
	ClaimTx(ctx context.Context, q Request, limit time.Duration) (Answer, context.Context, Tx, error)

	// Purge deletes up to limit records whose retention is over, oldest first, in one short transaction that waits for no lock: finished ones and,
	// of the business types in abandoned, those that are processing with their lease run out.
	Purge(ctx context.Context, abandoned []string, limit int) (int, error)

	// Find returns records for the jobs that look after them, those unchanged for longest first.
	Find(ctx context.Context, q Query) ([]Record, error)

	// Fence returns the next number of one sequence for all locks of the ledger. It never goes back, survives whatever the entrance forgets, and no
	// purge touches it; numbers may be left out.
	Fence(ctx context.Context) (int64, error)
}

// Tx is a claim's transaction in the ledger's database. It is used by one goroutine, and ended exactly once by Complete or Rollback.
type Tx interface {
	// Complete records the result and commits, the work's writes included. Everything is rolled back when it returns ErrClaimLost, or any error but
	// ErrOutcomeUnknown: then the link was cut at the commit and the ledger could not be asked on a new one.
	// A claim that it found neither committed nor lost is left processing, its owner dropped, its lease ended.
	Complete(ctx context.Context, r Result) error
	// Rollback undoes the work's writes, bounded by ctx. The record of a claim opened with Open stays as it is.
	Rollback(ctx context.Context) error
}
