package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

func TestContexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("the process ends")
	for name, tt := range map[string]struct {
		options []consumer.Option
		cancel  bool
		want    error
	}{
		"the caller's end":   {cancel: true, want: cause},
		"the handler's time": {options: []consumer.Option{consumer.Limit(20 * time.Millisecond)}, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.options...)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			b.answer = func(ctx context.Context, _ consumer.Message) error {
				if tt.cancel {
					cancel(cause)
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			b.sees(b.c.Handle(ctx, order("1")), consumer.Retry, 1, true, tt.want)
			b.stands("1", idem.Failed, 1)
		})
	}
}

func TestEndedContextClaimsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.sees(b.c.Handle(ctx, order("1")), consumer.Retry, 0, false, context.Canceled)
	b.ran(0)
	b.stands("1", "", 0)
}

func TestHandlerHasTheClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fails(errBroken)
	b.deliver(order("1"))
	b.answer = nil
	b.deliver(order("1"))
	b.ran(2)
	for i, claim := range b.runs {
		if claim.Attempt != i+1 || claim.Key != key("1") || claim.OutboundKey() != b.runs[0].OutboundKey() {
			t.Errorf("run %d under attempt %d of %v, outbound key %s", i+1, claim.Attempt, claim.Key, claim.OutboundKey())
		}
	}
}

func TestResolverIsAskedBeforeAnotherAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ending  idem.Ending
		err     error
		action  consumer.Action
		runs    int
		stands  idem.State
		attempt int
	}{
		"it was done":     {ending: idem.Ending{State: idem.Succeeded, Result: idem.Result{Kept: true}}, action: consumer.Ack, stands: idem.Succeeded},
		"it was not done": {ending: idem.Ending{State: idem.Failed}, action: consumer.Ack, runs: 1, stands: idem.Succeeded},
		"never do it":     {ending: idem.Ending{State: idem.Cancelled}, action: consumer.Ack, stands: idem.Cancelled},
		"nobody knows":    {err: errBroken, action: consumer.Retry, stands: idem.Processing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, consumer.Resolver(func(context.Context, idem.Claim) (idem.Ending, error) { return tt.ending, tt.err }))
			b.claim("1")
			b.ledger.Lapse(key("1"))
			if v := b.deliver(order("1")); v.Action != tt.action {
				t.Errorf("verdict %+v, want %v", v, tt.action)
			}
			b.ran(tt.runs)
			b.stands("1", tt.stands, 2)
		})
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBench(t, consumer.Attempts(1), consumer.Logger(slog.New(slog.NewTextHandler(&out, nil))))
	b.answer = func(context.Context, consumer.Message) error { panic("no points left") }
	b.deliver(order("1"))
	for _, want := range []string{"handler panicked", "no points left", "handler_test.go", "message given up", "consumer=points"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, out.String())
		}
	}
	for _, secret := range []string{`"order\":1`, "t-1"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log has %q of body or headers:\n%s", secret, out.String())
		}
	}
}
