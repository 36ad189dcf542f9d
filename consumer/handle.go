package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/idemkit/idem"
)

// Handle claims the message, runs the handler where this delivery is the one that may, records what came of it and says what is to become of the message. It
// does not return before the handler has. The end of ctx ends the handler's context; the attempt counts then as any other.
func (c *Consumer) Handle(ctx context.Context, m Message) Verdict {
	begun := time.Now()
	verdict := c.judge(ctx, m)
	verdict.Consumer = c.name
	c.settings.observe(ctx, Event{Verdict: verdict, Took: time.Since(begun)})
	if verdict.Action == DeadLetter {
		c.settings.logger.ErrorContext(ctx, "message given up",
			"consumer", c.name, "source", m.Source, "message", m.ID, "attempt", verdict.Attempt, "error", verdict.Err)
	}
	return verdict
}

func (c *Consumer) judge(ctx context.Context, m Message) Verdict {
	if len(m.Body) == 0 {
		return Verdict{Action: DeadLetter, Err: ErrNoBody}
	}
	key, err := c.settings.key(m)
	if err != nil || key == "" {
		return Verdict{Action: DeadLetter, Err: errors.Join(ErrNoKey, err)}
	}
	a := &attempt{Consumer: c, message: m, request: c.settings.request(c.Type(), key)}
	reply, err := c.engine.Do(ctx, idem.Call{
		Request: a.request, Limit: c.settings.limit, SameTx: c.settings.sameTx, Resolve: c.settings.resolve,
	}, func(work context.Context) idem.Ending { return a.work(work, ctx) })
	return a.verdict(ctx, reply, err)
}

// attempt is one delivery on its way through the engine.
type attempt struct {
	*Consumer
	message Message
	request idem.Request
	number  int    // of the claim; 0: none was won
	used    int    // attempts used up with this one, since the message was last put back
	failure error  // of the handler
	last    string // why the attempt before failed, where none is left
}

// work runs in the engine, under a claim. caller is the context given to Handle, which the engine's outlives.
func (a *attempt) work(ctx, caller context.Context) idem.Ending {
	a.number = idem.FromContext(ctx).Attempt
	a.used = a.number - min(a.message.spent(a.name), a.number-1)
	if a.settings.sameTx {
		a.used = max(a.used, a.message.Delivery)
	}
	if a.used > a.settings.attempts {
		a.failure = a.exhausted(ctx)
	} else {
		a.failure = a.handle(ctx, caller)
	}
	switch {
	case a.failure == nil:
		return idem.Ending{State: idem.Succeeded, Result: idem.Result{Kept: true}}
	case errors.Is(a.failure, idem.ErrOutcomeUnknown):
		return idem.Ending{State: idem.Processing, Reason: a.reason()}
	}
	return idem.Ending{State: idem.Failed, Reason: a.reason()}
}

// exhausted says of the last attempt what the ledger knows. One that was killed said nothing; one before it may have.
func (a *attempt) exhausted(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	record, err := a.ledger.Lookup(bounded, a.request)
	if err != nil || record.Reason == "" {
		return fmt.Errorf("%w: %d", ErrExhausted, a.settings.attempts)
	}
	a.last = record.Reason
	return fmt.Errorf("%w: %d; the last error known: %s", ErrExhausted, a.settings.attempts, a.last)
}

// reason is for the ledger, which keeps the one there is where the handler did not run.
func (a *attempt) reason() string { return clip(cmp.Or(a.last, a.failure.Error()), maxError) }

// handle calls the handler. A panic is a failure like any other: the process has other messages in its hands.
func (a *attempt) handle(ctx, caller context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(caller, func() { cancel(context.Cause(caller)) })()
	defer func() {
		if value := recover(); value != nil {
			a.settings.logger.ErrorContext(ctx, "handler panicked",
				"consumer", a.name, "message", a.message.ID, "panic", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrPanicked, value)
		}
	}()
	return a.handler(ctx, a.message)
}

func (a *attempt) verdict(ctx context.Context, reply idem.Reply, err error) Verdict {
	v := Verdict{Attempt: max(a.number, reply.Attempt), Counted: a.number > 0, Replayed: reply.Replayed, Err: err}
	switch {
	case err == nil && reply.State == idem.Succeeded:
		v.Action = Ack
		return v
	case a.failure != nil && err == nil:
		return a.failed(ctx, v)
	case errors.Is(err, idem.ErrAlreadyDone):
		return Verdict{Action: Ack, Replayed: true}
	}
	return a.refused(v, reply)
}

// failed: the handler ran and did not succeed, or there was no attempt left to run it.
func (a *attempt) failed(ctx context.Context, v Verdict) Verdict {
	v.Err = a.failure
	if a.settings.sameTx {
		v.Err = errors.Join(v.Err, a.record(ctx))
	}
	if a.used >= a.settings.attempts || errors.Is(a.failure, ErrPermanent) {
		v.Action = DeadLetter
		return v
	}
	v.Action, v.Delay = Retry, a.settings.backoff(a.used)
	return v
}

// refused: the engine ran nothing, or what it ran has no recorded outcome.
func (a *attempt) refused(v Verdict, reply idem.Reply) Verdict {
	switch {
	case errors.Is(v.Err, idem.ErrOutcomeUnknown):
		v.Action, v.Delay = Retry, a.settings.backoff(max(a.used, 1))
	case errors.Is(v.Err, idem.ErrCancelled):
		v.Action = Ack // a person decided that it is never to be done
	case errors.Is(v.Err, idem.ErrInvalid), errors.Is(v.Err, idem.ErrPayloadMismatch), errors.Is(v.Err, idem.ErrKeyTaken):
		v.Action = DeadLetter // no repetition changes that
	case errors.Is(v.Err, idem.ErrInProgress):
		v.Action, v.Delay = Retry, min(max(reply.Record.LeaseLeft, a.settings.backoff(1)), a.settings.lease)
	default:
		v.Action, v.Delay = Retry, a.settings.backoff(max(a.used, 1))
	}
	return v
}

// recordLimit bounds the note of a failure after a rollback, and the look for one.
const recordLimit = 5 * time.Second

// record notes the failure of a same-transaction attempt, whose own record was rolled back: a claim that fails at once.
func (a *attempt) record(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	q := a.request
	q.Owner = idem.NewOwner()
	answer, err := a.ledger.Claim(bounded, q)
	if err == nil && answer.Outcome == idem.Won {
		err = a.ledger.Release(bounded, answer.Claim, idem.Failed, a.reason())
	}
	if err != nil {
		return fmt.Errorf("consumer: the failed attempt could not be recorded: %w", err)
	}
	return nil
}
