package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

func TestSuccessIsRecordedOnceAndReplayed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sees(b.deliver(order("1")), consumer.Ack, 1, true, nil)
	b.stands("1", idem.Succeeded, 1)
	again := b.deliver(order("1"))
	b.sees(again, consumer.Ack, 0, false, nil)
	if !again.Replayed {
		t.Error("the second delivery does not say that it is a replay")
	}
	b.ran(1)
	b.sees(b.deliver(order("2")), consumer.Ack, 1, true, nil)
	b.ran(2)
}

// Marked only afterwards (hermes-agent#62860), and released with the failure (asynq#275, #629).
func TestNothingIsMarkedBeforeTheHandlerSucceeded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answer = func(context.Context, consumer.Message) error {
		b.stands("1", idem.Processing, 1)
		return errBroken
	}
	b.sees(b.deliver(order("1")), consumer.Retry, 1, true, errBroken)
	b.stands("1", idem.Failed, 1)
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	bodiless := order("1")
	bodiless.Body = nil
	nameless := order("")
	for name, tt := range map[string]struct {
		options []consumer.Option
		before  func(*bench)
		message consumer.Message
		fails   consumer.Handler

		action  consumer.Action
		attempt int
		counted bool
		cause   error
		runs    int
	}{
		"failure": {
			message: order("1"), fails: fail(errBroken), action: consumer.Retry, attempt: 1, counted: true, cause: errBroken, runs: 1,
		},
		"panic": {
			message: order("1"), fails: func(context.Context, consumer.Message) error { panic("no points left") },
			action: consumer.Retry, attempt: 1, counted: true, cause: consumer.ErrPanicked, runs: 1,
		},
		"permanent failure": {
			message: order("1"), fails: fail(fmt.Errorf("no such customer: %w", consumer.ErrPermanent)),
			action: consumer.DeadLetter, attempt: 1, counted: true, cause: consumer.ErrPermanent, runs: 1,
		},
		"one attempt": {
			options: []consumer.Option{consumer.Attempts(1)}, message: order("1"), fails: fail(errBroken),
			action: consumer.DeadLetter, attempt: 1, counted: true, cause: errBroken, runs: 1,
		},
		"outcome unknown": {
			message: order("1"), fails: fail(idem.ErrOutcomeUnknown), action: consumer.Retry, attempt: 1, counted: true, cause: idem.ErrOutcomeUnknown, runs: 1,
		},
		"no body":      {message: bodiless, action: consumer.DeadLetter, cause: consumer.ErrNoBody},
		"no id":        {message: nameless, action: consumer.DeadLetter, cause: consumer.ErrNoKey},
		"no key":       {options: keyed("", nil), message: order("1"), action: consumer.DeadLetter, cause: consumer.ErrNoKey},
		"unknown key":  {options: keyed("", errBroken), message: order("1"), action: consumer.DeadLetter, cause: errBroken},
		"other key":    {options: keyed("other", nil), message: nameless, action: consumer.Ack, attempt: 1, counted: true, runs: 1},
		"key and none": {options: keyed("other", errBroken), message: order("1"), action: consumer.DeadLetter, cause: consumer.ErrNoKey},
		"in hand elsewhere": {
			before: func(b *bench) { b.claim("1") }, message: order("1"), action: consumer.Retry, cause: idem.ErrInProgress,
		},
		"cancelled by a person": {
			before: func(b *bench) { b.release(b.claim("1"), idem.Cancelled) }, message: order("1"), action: consumer.Ack, cause: idem.ErrCancelled,
		},
		"failed before": {
			before: func(b *bench) { b.release(b.claim("1"), idem.Failed) }, message: order("1"), action: consumer.Ack, attempt: 2, counted: true, runs: 1,
		},
		"killed before": {
			before: func(b *bench) { b.claim("1"); b.ledger.Lapse(key("1")) }, message: order("1"),
			action: consumer.Ack, attempt: 2, counted: true, runs: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.options...)
			if tt.before != nil {
				tt.before(b)
			}
			b.answer = tt.fails
			v := b.deliver(tt.message)
			b.sees(v, tt.action, tt.attempt, tt.counted, tt.cause)
			b.ran(tt.runs)
			if len(b.events) != 1 || b.events[0].Verdict != v {
				t.Errorf("the observer saw %+v, want one event of %+v", b.events, v)
			}
		})
	}
}

func fail(err error) consumer.Handler {
	return func(context.Context, consumer.Message) error { return err }
}

func keyed(key string, err error) []consumer.Option {
	return []consumer.Option{consumer.KeyFunc(func(consumer.Message) (string, error) { return key, err })}
}

func (b *bench) release(c idem.Claim, as idem.State) {
	b.Helper()
	if err := b.ledger.Release(context.Background(), c, as, ""); err != nil {
		b.Fatal(err)
	}
}

func TestAttemptsEndInADeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := 1; n < consumer.DefaultAttempts; n++ {
		b.fails(fmt.Errorf("failure %d: %w", n, errBroken))
		b.sees(b.deliver(order("1")), consumer.Retry, n, true, errBroken)
	}
	b.fails(errors.New("the last one"))
	last := b.deliver(order("1"))
	b.sees(last, consumer.DeadLetter, consumer.DefaultAttempts, true, last.Err)
	if last.Err == nil || last.Err.Error() != "the last one" {
		t.Errorf("error %v, want the last one", last.Err)
	}
	b.ran(consumer.DefaultAttempts)

	t.Log("its dead letter was not written: it comes again")
	for n := 1; n <= 2; n++ {
		v := b.deliver(order("1"))
		b.sees(v, consumer.DeadLetter, consumer.DefaultAttempts+n, true, consumer.ErrExhausted)
		if text := v.Err.Error(); strings.Count(text, consumer.ErrExhausted.Error()) != 1 || !strings.HasSuffix(text, ": the last one") {
			t.Errorf("error %q", text)
		}
	}
	b.ran(consumer.DefaultAttempts)
	b.stands("1", idem.Failed, consumer.DefaultAttempts+2)
}

// A message that kills its process says nothing; the claims that it left do.
func TestKilledAttemptsCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, consumer.Attempts(4))
	b.fails(errBroken)
	b.sees(b.deliver(order("1")), consumer.Retry, 1, true, errBroken)
	for range 3 {
		b.claim("1")
		b.ledger.Lapse(key("1"))
	}
	v := b.deliver(order("1"))
	b.sees(v, consumer.DeadLetter, 5, true, consumer.ErrExhausted)
	if !strings.Contains(v.Err.Error(), errBroken.Error()) {
		t.Errorf("error %q has forgotten what the one attempt that lived said", v.Err)
	}
	b.ran(1)
}

func TestDeadLetterPutBackHasAllItsAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, consumer.Attempts(2))
	b.fails(errBroken)
	m := order("1")
	for round := range 3 {
		b.sees(b.deliver(m), consumer.Retry, 2*round+1, true, errBroken)
		v := b.deliver(m)
		b.sees(v, consumer.DeadLetter, 2*round+2, true, errBroken)
		m = m.Dead(v)
	}
	b.answer = nil
	b.sees(b.deliver(m), consumer.Ack, 7, true, nil)
}

func TestLedgerAwayRunsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.c = b.open(away{b.ledger})
	for range 2 * consumer.DefaultAttempts {
		b.sees(b.deliver(order("1")), consumer.Retry, 0, false, idem.ErrUnavailable)
	}
	b.ran(0)
}

type away struct{ idem.Ledger }

func (away) Claim(context.Context, idem.Request) (idem.Answer, error) {
	return idem.Answer{}, errors.New("connection refused")
}

// A claim that somebody took over while the handler ran: the winner's result counts.
func TestClaimLostToAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answer = func(context.Context, consumer.Message) error {
		b.ledger.Lapse(key("1"))
		if err := b.ledger.Complete(context.Background(), b.claim("1"), idem.Result{Kept: true}); err != nil {
			b.Error(err)
		}
		return nil
	}
	v := b.deliver(order("1"))
	if v.Action != consumer.Ack || !v.Replayed {
		t.Errorf("verdict %+v, want the winner's success", v)
	}
	b.stands("1", idem.Succeeded, 2)
}

func TestClaimLostAndStillInHand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.answer = func(context.Context, consumer.Message) error {
		b.ledger.Lapse(key("1"))
		b.claim("1")
		return nil
	}
	b.sees(b.deliver(order("1")), consumer.Retry, 1, true, idem.ErrInProgress)
	b.stands("1", idem.Processing, 2)
}
