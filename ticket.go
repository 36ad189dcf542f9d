package idem

import (
	"context"
	"fmt"
)

// Ticket is a claim in somebody else's hands: whoever holds it works outside of this process, and extends and finishes it by itself.
// It survives being written as JSON. Its owner is unguessable, and who knows it can end the claim.
type Ticket struct {
	Claim    Claim
	Entrance *Claim `json:",omitempty"` // beside a ledger: the claim in the entrance store
}

// Enter is the first half of Do: it claims, asks the resolver before a further attempt, and leaves the work and its end to the holder of the ticket. Nothing renews its
// lease from then on but Extend. The reply and the errors are those of Do for a call that does not run; on success the reply is empty. Same-transaction calls
// are ErrInvalid.
func (e *Engine) Enter(ctx context.Context, call Call) (Ticket, Reply, error) {
	if call.SameTx {
		return Ticket{}, Reply{}, fmt.Errorf("%w: a claim that is handed out has no transaction", ErrInvalid)
	}
	call.Limit = max(call.Limit, MinLease)
	v, err := e.visit(call)
	if err != nil {
		return Ticket{}, Reply{}, err
	}
	answer, err := v.admit(ctx)
	if err == nil && answer.Outcome == Won {
		return v.handOut(ctx, answer.Claim)
	}
	v.releaseEntrance(ctx, answer, err)
	if err != nil {
		return Ticket{}, Reply{}, err
	}
	r, err := reply(answer)
	return Ticket{}, r, err
}

func (v *visit) handOut(ctx context.Context, claim Claim) (Ticket, Reply, error) {
	leased, holds, end := v.lease(ctx, claim)
	defer end()
	if reply, settled, err := v.resolve(leased, claim, holds); settled {
		return Ticket{}, reply, err
	}
	holds.stop()
	ticket := Ticket{Claim: claim, Entrance: v.entrance}
	if ctx.Err() != nil { // nobody is there to take it
		_ = v.Finish(ctx, ticket, Ending{State: Failed, Reason: "the caller left"}) // its lease ends it otherwise
		return Ticket{}, Reply{}, ctx.Err()
	}
	return ticket, Reply{}, nil
}

// Extend renews the ticket's lease to its full length from now. ErrClaimLost: it was taken over or ended.
func (e *Engine) Extend(ctx context.Context, t Ticket) error {
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	lost, err := e.decider().Extend(bounded, []Claim{t.Claim})
	switch {
	case err != nil:
		return unavailable(ctx, err)
	case len(lost) > 0:
		return ErrClaimLost
	}
	if t.Entrance != nil {
		short, stop := context.WithTimeout(bounded, entranceLimit)
		defer stop()
		_, _ = e.store.Extend(short, []Claim{*t.Entrance}) // it may forget; the ledger's lease decides
	}
	return nil
}

// Finish ends the ticket's claim as the ending says, like the end of Do. It may be repeated with the same ending. ErrClaimLost: it was taken over, or ended otherwise.
func (e *Engine) Finish(ctx context.Context, t Ticket, ending Ending) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	v := &visit{Engine: e, call: Call{Request: t.Claim.Request}, entrance: t.Entrance}
	if t.Entrance != nil { // the token is spent; that there was one is what counts
		v.call.TokenID, v.call.Entrance, v.call.EntranceFor = t.Entrance.Owner, t.Entrance.Key, t.Entrance.Retention
	}
	if ending.State != Succeeded {
		err := e.decider().Release(bounded, t.Claim, ending.State, ending.Reason)
		v.freeEntrance(bounded)
		v.flights.wake(t.Claim.Key)
		return unavailable(ctx, err)
	}
	if err := e.decider().Complete(bounded, t.Claim, ending.Result); err != nil {
		return unavailable(ctx, err)
	}
	if t.Entrance == nil {
		v.flights.wake(t.Claim.Key)
		return nil
	}
	record, err := lookup(bounded, e.decider(), t.Claim.Request, finishLimit)
	if err != nil || record.State != Succeeded {
		v.flights.wake(t.Claim.Key)
		return nil // the next duplicate tells the entrance
	}
	v.repair(ctx, record.Attempt, record.Result) // a repetition may name another result: the first one stands
	return nil
}

// decider is the store whose word counts.
func (e *Engine) decider() Store {
	if e.ledger != nil {
		return e.ledger
	}
	return e.store
}
