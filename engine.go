package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// EngineConfig says which stores decide. At least one is needed.
type EngineConfig struct {
	Store   TokenStore                   // guards the entrance; may forget, may be away if there is a ledger
	Ledger  Ledger                       // decides; nothing runs unrecorded while it is away
	Observe func(context.Context, Event) // called on the caller's goroutine and by renewals; must be quick. Nil: nobody looks
}

// Engine turns calls into claims: it asks the stores, lets duplicates wait, runs the work of the one that won, keeps its lease and
// records what came of it. It is safe for concurrent use.
type Engine struct {
	store      TokenStore
	ledger     Ledger
	observe    func(context.Context, Event)
	entrances  *renewals
	claims     *renewals
	flights    *flights
	background sync.WaitGroup
	pending    chan struct{} // has one for each of what runs in the background
}

// NewEngine returns ErrInvalid where there is neither a store nor a ledger.
func NewEngine(c EngineConfig) (*Engine, error) {
	if c.Store == nil && c.Ledger == nil {
		return nil, fmt.Errorf("%w: an engine needs a store, a ledger, or both", ErrInvalid)
	}
	e := &Engine{store: c.Store, ledger: c.Ledger, observe: c.Observe, flights: newFlights(), pending: make(chan struct{}, maxPending)}
	if e.observe == nil {
		e.observe = func(context.Context, Event) {}
	}
	if c.Store != nil {
		e.entrances = newRenewals(c.Store.Extend)
	}
	if c.Ledger != nil {
		e.claims = newRenewals(c.Ledger.Extend)
	}
	return e, nil
}

// Call is one arrival of an operation.
type Call struct {
	Request                   // Key is the business key; Owner and Ledger are the engine's to set
	TokenID     string        // the token that permits it; empty: guarded by key alone
	Entrance    Key           // with a token: the record in the entrance store. Without a ledger it must equal Key
	EntranceFor time.Duration // with a token: how long the entrance keeps the record; 0: Retention
	LookOnly    bool          // the token is expired: answer from what stands, claim nothing
	Wait        time.Duration // how long a duplicate waits for the first; 0: not at all
	Limit       time.Duration // how long the work may take; at least MinLease
	SameTx      bool          // claim, work and completion in one transaction of the ledger
	Resolve     Resolver      // asked before any further attempt what became of the last one. Nil: nobody knows
}

// Work is what a claim permits. Its context is not cancelled with the caller's, but ends at the call's limit, and
// with ErrClaimLost or ErrLeaseExpired as the cause when the claim is lost. A panic counts as Failed and is not recovered.
type Work func(ctx context.Context) Ending

// Ending is what became of the work.
type Ending struct {
	State  State  // Succeeded, Failed, or Processing: it is not known whether it happened
	Result Result // when Succeeded
	Reason string // otherwise, for the people who read the ledger
}

// Resolver says what became of an earlier attempt whose claimer died or did not know: Succeeded with the result, Failed (nothing
// happened: go on), or Cancelled. An error means that it cannot be said now; nothing is run then, and the caller gets ErrUnavailable. So
// does one whose resolver returns another state, the zero Ending included.
//
// c is the claim that asks. The attempt in question is c.Attempt-1, and c.OutboundKey() is what it sent to others. A Succeeded Ending is
// replayed where its Result has Kept true; otherwise callers get ErrAlreadyDone (already_done over HTTP). Under Once the Result's Body is the value as JSON.
type Resolver func(ctx context.Context, c Claim) (Ending, error)

// Reply is the engine's answer to a call.
type Reply struct {
	Ending          // of the work that this call ran, or of the first one
	Replayed bool   // the result is the first one's
	Attempt  int    // of the claim that this call held; 0: none
	Record   Record // what stands in the way, with ErrInProgress, ErrPayloadMismatch, ErrAlreadyDone
	Claim    *Claim // of the work that this call ran
}

// Do runs the work if this call is the first, and otherwise returns what the first one gave. It returns ErrUnavailable, ErrFormat, ErrInvalid,
// ErrInProgress, ErrPayloadMismatch, ErrKeyTaken, ErrCancelled, ErrAlreadyDone, ErrTokenUsed, ErrTokenExpired (LookOnly), the context's error where the
// caller left while waiting - in all these cases the work was not run by this call - or, after running it, ErrClaimLost or ErrOutcomeUnknown.
func (e *Engine) Do(ctx context.Context, call Call, work Work) (Reply, error) {
	begun := time.Now()
	v, err := e.visit(call)
	if err != nil {
		return Reply{}, err
	}
	reply, err := v.do(ctx, work)
	e.observe(ctx, Event{
		Kind: Answered, Type: call.Key.Type, Attempt: reply.Attempt, Replayed: reply.Replayed,
		State: reply.State, Err: err, Took: time.Since(begun),
	})
	return reply, err
}

// Drain waits until what finishes behind the answers - the entrance's records of successful calls - is written, or the context ends.
// Call it after the last Do has returned.
func (e *Engine) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { e.background.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// visit is one call on its way through the stores.
type visit struct {
	*Engine
	call     Call
	lookOnly bool
	known    bool      // the entrance knows of the success, and does not have its result
	entrance *Claim    // held in the entrance store, beside a ledger
	asked    time.Time // when the claim in force was asked for: its lease cannot have begun earlier
	tx       Tx        // of a same-transaction claim
	txctx    context.Context
}

func (e *Engine) visit(call Call) (*visit, error) {
	call.Owner = NewOwner()
	if e.ledger != nil {
		call.Ledger = e.ledger.Name()
	}
	if call.EntranceFor == 0 {
		call.EntranceFor = call.Retention
	}
	switch {
	case call.Limit < MinLease:
		return nil, fmt.Errorf("%w: time limit %v; it must be at least %v", ErrInvalid, call.Limit, MinLease)
	case e.ledger == nil && call.SameTx:
		return nil, fmt.Errorf("%w: a same-transaction call needs a ledger", ErrInvalid)
	case e.ledger == nil && call.TokenID != "" && call.Entrance != call.Key:
		return nil, fmt.Errorf("%w: a business key beside a token needs a ledger", ErrInvalid)
	case call.SameTx && call.Resolve != nil:
		return nil, fmt.Errorf("%w: a same-transaction call leaves nothing to resolve", ErrInvalid)
	}
	return &visit{Engine: e, call: call, lookOnly: call.LookOnly}, call.Validate()
}

func (v *visit) do(ctx context.Context, work Work) (Reply, error) {
	answer, err := v.admit(ctx)
	if err == nil && answer.Outcome == Won {
		return v.run(ctx, answer.Claim, work)
	}
	v.releaseEntrance(ctx, answer, err)
	if err != nil {
		return Reply{}, err
	}
	return reply(answer)
}

// reply turns every outcome but Won into the caller's answer.
func reply(a Answer) (Reply, error) {
	r := Reply{Record: a.Record}
	switch a.Outcome {
	case Done:
		r.Replayed, r.Ending = true, Ending{State: Succeeded, Result: a.Record.Result}
		if !a.Record.Result.Kept {
			return r, ErrAlreadyDone
		}
		return r, nil
	case Busy:
		return r, ErrInProgress
	case Mismatch:
		return r, ErrPayloadMismatch
	case Foreign:
		return Reply{}, ErrKeyTaken
	case Withdrawn:
		return r, ErrCancelled
	case Unknown:
		return r, ErrTokenUsed
	case Won:
	}
	return r, fmt.Errorf("%w: outcome %v", ErrUnavailable, a.Outcome)
}

// unavailable joins a store's error with ErrUnavailable, save the errors that mean something else.
func unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrFormat), errors.Is(err, ErrUnavailable), errors.Is(err, ErrClaimLost):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
