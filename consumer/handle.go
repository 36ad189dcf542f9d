package consumer

import (
	"cmp"
	"context"
	"crypto/sha256"
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
	request, err := c.request(ctx, m)
	if err != nil {
		return Verdict{Action: DeadLetter, Err: errors.Join(ErrNoKey, err)}
	}
	a := &attempt{Consumer: c, message: m, request: request}
	call := idem.Call{Request: a.request, Limit: c.settings.limit, SameTx: c.settings.sameTx}
	if c.settings.resolve != nil {
		call.Resolve = a.resolve
	}
	reply, err := c.engine.Do(ctx, call, func(work context.Context) idem.Ending { return a.work(work, ctx) })
	return a.verdict(ctx, reply, err)
}

// request names the message's operation. An id is the message's only as long as the body is the same; a KeyFunc's key is what it says.
func (c *Consumer) request(ctx context.Context, m Message) (q idem.Request, err error) {
	defer c.catch(ctx, m, "KeyFunc", &err)
	if c.settings.key != nil {
		key, err := c.settings.key(m)
		if key == "" {
			err = errors.Join(errors.New("the KeyFunc gave none"), err)
		}
		return c.settings.request(c.Type(), key), err
	}
	q = c.settings.request(c.Type(), m.ID)
	if m.ID == "" {
		return q, errors.New("it has no id")
	}
	sum := sha256.Sum256(m.Body)
	q.Fingerprint = append([]byte{fingerprintFormat}, sum[:]...)
	return q, nil
}

// fingerprintFormat is what the digest is over: 1, the body.
const fingerprintFormat = 1

// catch is deferred: it makes an error of a panic. The process has other messages in its hands, and the next one would end just so.
func (c *Consumer) catch(ctx context.Context, m Message, what string, err *error) {
	if value := recover(); value != nil {
		c.settings.logger.ErrorContext(ctx, what+" panicked",
			"consumer", c.name, "message", m.ID, "panic", value, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w: %v", ErrPanicked, value)
	}
}

// attempt is one delivery on its way through the engine.
type attempt struct {
	*Consumer
	message    Message
	request    idem.Request
	number     int    // of the claim; 0: none was won
	used       int    // attempts used up with this one, since the message was last put back
	failure    error  // of the handler
	unresolved bool   // the resolver could not say, and the handler did not run
	last       string // why the attempt before failed, where none is left
}

// count notes the claim, and how many attempts are used up with it.
func (a *attempt) count(claim idem.Claim) {
	a.number = claim.Attempt
	a.used = a.number - a.message.spent(a.name, a.number-1)
	if a.settings.sameTx {
		a.used = max(a.used, a.message.Delivery)
	}
}

// resolve asks the consumer's resolver.
func (a *attempt) resolve(ctx context.Context, claim idem.Claim) (ending idem.Ending, err error) {
	a.count(claim)
	a.unresolved = true
	defer a.catch(ctx, a.message, "resolver", &err)
	ending, err = a.settings.resolve(ctx, claim)
	a.unresolved = err != nil || ending.State == idem.Processing || !idem.Processing.Next(ending.State)
	return ending, err
}

// work runs in the engine, under a claim. caller is the context given to Handle, which the engine's outlives.
func (a *attempt) work(ctx, caller context.Context) idem.Ending {
	a.count(idem.FromContext(ctx))
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
func (a *attempt) reason() string { return oneLine(cmp.Or(a.last, a.failure.Error())) }

// handle calls the handler.
func (a *attempt) handle(ctx, caller context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(caller, func() { cancel(context.Cause(caller)) })()
	defer a.catch(ctx, a.message, "handler", &err)
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
	case a.unresolved:
		return a.spend(v)
	case a.settings.sameTx && errors.Is(err, idem.ErrOutcomeUnknown):
		return a.uncommitted(ctx, v, reply)
	case errors.Is(err, idem.ErrAlreadyDone):
		return Verdict{Action: Ack, Replayed: true}
	}
	return a.refused(v, reply)
}

// failed: the handler ran and did not succeed, or there was no attempt left to run it.
func (a *attempt) failed(ctx context.Context, v Verdict) Verdict {
	v.Err = a.failure
	if a.settings.sameTx {
		_, err := a.record(ctx)
		v.Err = errors.Join(v.Err, err)
	}
	return a.spend(v)
}

// uncommitted: the handler succeeded, and its transaction is not known to have. Where a claim is won by now, it has not, and never will.
func (a *attempt) uncommitted(ctx context.Context, v Verdict, reply idem.Reply) Verdict {
	a.failure = v.Err
	outcome, err := a.record(ctx)
	v.Err = errors.Join(v.Err, err)
	switch outcome {
	case idem.Won:
		return a.spend(v)
	case idem.Done:
		v.Action, v.Err = Ack, nil
		return v
	default:
		return a.refused(v, reply)
	}
}

// spend is the verdict on an attempt that was used up.
func (a *attempt) spend(v Verdict) Verdict {
	if a.used >= a.settings.attempts || errors.Is(v.Err, ErrPermanent) {
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
func (a *attempt) record(ctx context.Context) (idem.Outcome, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	q := a.request
	q.Owner = idem.NewOwner()
	answer, err := a.ledger.Claim(bounded, q)
	if err == nil && answer.Outcome == idem.Won {
		err = a.ledger.Release(bounded, answer.Claim, idem.Failed, a.reason())
	}
	if err != nil {
		return answer.Outcome, fmt.Errorf("consumer: the failed attempt could not be recorded: %w", err)
	}
	return answer.Outcome, nil
}
