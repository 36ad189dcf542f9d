package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// finishLimit bounds the writes after the work: they must not hang on a store that is away, and the work's own
// time may be over.
const finishLimit = 10 * time.Second

// rollbackLimit is shorter: a store undoes what it cannot roll back by closing the connection.
const rollbackLimit = 5 * time.Second

// run executes the work under a claim that this call won. From here on the caller's context cancels nothing.
func (v *visit) run(ctx context.Context, claim Claim, work Work) (Reply, error) {
	detached := context.WithoutCancel(ctx)
	leased, holds, end := v.lease(detached, claim)
	defer end()
	if reply, settled, err := v.resolve(leased, claim, holds); settled {
		return reply, err
	}
	workctx, tx := v.open(leased, claim)
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit: it goes on after the release
			v.undo(detached, claim, tx, Ending{State: Failed, Reason: "the work panicked"})
		}
	}()
	ending := work(withClaim(workctx, claim))
	returned = true
	holds.stop()

	if ending.State != Succeeded {
		if v.undo(detached, claim, tx, ending) {
			if r, err := v.lost(ctx, claim); !errors.Is(err, ErrClaimLost) {
				return r, err
			}
		}
		return Reply{Ending: ending, Attempt: claim.Attempt, Claim: &claim}, nil
	}
	err := v.complete(detached, claim, tx, ending.Result)
	switch {
	case err == nil:
		return Reply{Ending: ending, Attempt: claim.Attempt, Claim: &claim}, nil
	case errors.Is(err, ErrClaimLost):
		return v.lost(ctx, claim)
	}
	v.undoUnknown(detached, claim, err)
	return Reply{Attempt: claim.Attempt, Claim: &claim}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// lease keeps the claim until end, or until holds are stopped. The context ends with the time limit and, with a cause, when the claim is lost; the caller cancels nothing.
func (v *visit) lease(ctx context.Context, claim Claim) (leased context.Context, holds holds, end func()) {
	detached := context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(detached, v.call.Limit)
	leased, lose := context.WithCancelCause(limited)
	holds = v.hold(detached, claim, lose)
	return leased, holds, func() {
		holds.stop()
		lose(context.Canceled)
		cancel()
	}
}

// open prepares the transaction that the work may write in; nil without a ledger.
func (v *visit) open(ctx context.Context, claim Claim) (context.Context, Tx) {
	switch {
	case v.tx != nil:
		return joinContext{Context: ctx, values: v.txctx}, v.tx
	case v.ledger != nil:
		return v.ledger.Open(ctx, claim, v.call.Limit)
	}
	return ctx, nil
}

// joinContext ends with the work's context and also has the values of the transaction's.
type joinContext struct {
	context.Context
	values context.Context
}

func (c joinContext) Value(key any) any {
	if value := c.values.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// complete records the success where it is decided. The entrance behind a ledger learns of it after the answer.
func (v *visit) complete(ctx context.Context, claim Claim, tx Tx, result Result) error {
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	if tx == nil {
		err := v.store.Complete(bounded, claim, result)
		v.flights.wake(v.call.Key)
		return err
	}
	if err := tx.Complete(bounded, result); err != nil {
		return err
	}
	v.repair(ctx, claim.Attempt, result)
	return nil
}

// undo ends a claim without success, the entrance too, before the answer: the corrected payload may follow at once.
// lost: somebody else had the claim by then.
func (v *visit) undo(ctx context.Context, claim Claim, tx Tx, ending Ending) (lost bool) {
	var err error
	if tx != nil {
		err = rollback(ctx, tx)
	}
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	switch {
	case v.tx != nil: // the rollback took the claim with it
	case v.ledger != nil:
		err = errors.Join(err, v.ledger.Release(bounded, claim, ending.State, ending.Reason))
	default:
		err = errors.Join(err, v.store.Release(bounded, claim, ending.State, ending.Reason))
	}
	if err != nil {
		v.observe(ctx, Event{Kind: ReleaseFailed, Type: claim.Key.Type, Attempt: claim.Attempt, Err: err})
	}
	v.freeEntrance(ctx)
	v.flights.wake(v.call.Key)
	return errors.Is(err, ErrClaimLost)
}

// rollback has a time of its own: one that hangs must leave some to the release.
func rollback(ctx context.Context, tx Tx) error {
	bounded, cancel := context.WithTimeout(ctx, rollbackLimit)
	defer cancel()
	return tx.Rollback(bounded)
}

// undoUnknown: the work succeeded and its record did not. The payload stays bound, whoever comes next finds out.
func (v *visit) undoUnknown(ctx context.Context, claim Claim, cause error) {
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	v.observe(ctx, Event{Kind: OutcomeLost, Type: claim.Key.Type, Attempt: claim.Attempt, Err: cause})
	reason := "its result could not be recorded: " + cause.Error()
	switch {
	case v.tx != nil: // it left nothing, or is committed
	case v.ledger != nil:
		_ = v.ledger.Release(bounded, claim, Processing, reason)
	default:
		_ = v.store.Release(bounded, claim, Processing, reason)
	}
	v.freeEntrance(ctx)
	v.flights.wake(v.call.Key)
}

// lost: somebody took the claim over while the work ran. Its writes are rolled back; the answer is the winner's.
func (v *visit) lost(ctx context.Context, claim Claim) (Reply, error) {
	v.observe(ctx, Event{Kind: ClaimLost, Type: claim.Key.Type, Attempt: claim.Attempt, Err: ErrClaimLost})
	v.freeEntrance(context.WithoutCancel(ctx))
	v.lookOnly = true
	answer, err := v.admit(ctx)
	if err != nil {
		return Reply{Claim: &claim}, err
	}
	r, err := reply(answer)
	r.Claim = &claim
	return r, err
}

// resolve asks what became of an earlier attempt, before there is another.
func (v *visit) resolve(ctx context.Context, claim Claim, holds holds) (Reply, bool, error) {
	if v.call.Resolve == nil || claim.Attempt == 1 {
		return Reply{}, false, nil
	}
	detached := context.WithoutCancel(ctx)
	returned := false
	defer func() {
		if !returned { // a panic
			v.undo(detached, claim, nil, Ending{State: Processing, Reason: "the resolver panicked"})
		}
	}()
	ending, err := v.call.Resolve(withClaim(ctx, claim), claim)
	returned = true
	if err == nil && ending.State == Failed {
		return Reply{}, false, nil
	}
	holds.stop()
	switch {
	case err == nil && ending.State == Succeeded:
		_, tx := v.open(detached, claim)
		if err = v.complete(detached, claim, tx, ending.Result); err == nil {
			r, err := reply(Answer{Outcome: Done, Record: Record{State: Succeeded, Attempt: claim.Attempt, Result: ending.Result}})
			r.Attempt = claim.Attempt
			return r, true, err
		}
	case err == nil && ending.State == Cancelled:
		v.undo(detached, claim, nil, ending)
		return Reply{Ending: ending, Attempt: claim.Attempt}, true, ErrCancelled
	case err == nil:
		err = fmt.Errorf("it returned the state %q; return succeeded, failed or cancelled", ending.State)
	}
	v.undo(detached, claim, nil, Ending{State: Processing, Reason: "the resolver could not say"})
	return Reply{}, true, fmt.Errorf("%w: the resolver could not say what became of attempt %d: %w", ErrUnavailable, claim.Attempt-1, err)
}
