package web

import (
	"context"
	"fmt"

	"github.com/idemkit/idem"
)

// resolve asks what became of the attempt before the ticket's, where a route of this guard has a resolver for its business type, as the route itself would. The zero
// reply says that nothing happened: the service may go on. Nobody renews the ticket meanwhile, so that the resolver has the length of a lease.
func (c *serviceCall) resolve(t idem.Ticket) (reply idem.Reply, err error) {
	ask := c.upkeep.resolver(t.Claim.Key.Type)
	if ask == nil {
		return idem.Reply{}, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), t.Claim.Lease)
	defer cancel()
	ending := idem.Ending{State: idem.Processing, Reason: "the resolver could not say"}
	defer func() {
		if ending.State != idem.Failed {
			if unfinished := c.engine.Finish(ctx, t, ending); err == nil {
				err = unfinished
			}
		}
	}()
	said, err := ask(ctx, t.Claim)
	if err == nil {
		switch said.State {
		case idem.Failed:
			ending = said
			return idem.Reply{}, nil
		case idem.Cancelled:
			ending = said
			return idem.Reply{}, idem.ErrCancelled
		case idem.Succeeded:
			ending, reply = said, idem.Reply{Ending: said, Replayed: true, Record: idem.Record{State: said.State, Result: said.Result}}
			if !said.Result.Kept {
				err = idem.ErrAlreadyDone
			}
			return reply, err
		case idem.Processing:
		}
		err = fmt.Errorf("it returned the state %q", said.State)
	}
	return idem.Reply{}, fmt.Errorf("%w: the resolver could not say what became of attempt %d: %w", idem.ErrUnavailable, t.Claim.Attempt-1, err)
}
