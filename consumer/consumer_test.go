package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/stores/memstore"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ledger := memstore.New(memstore.Options{})
	handler := func(context.Context, consumer.Message) error { return nil }
	resolver := func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil }
	for name, tt := range map[string]struct {
		ledger  idem.Ledger
		name    string
		handler consumer.Handler
		options []consumer.Option
		says    string
	}{
		"no ledger":        {nil, "points", handler, nil, "ledger"},
		"no name":          {ledger, "", handler, nil, "name"},
		"no handler":       {ledger, "points", nil, nil, "handler"},
		"no attempts":      {ledger, "points", handler, []consumer.Option{consumer.Attempts(0)}, "attempts"},
		"no delay":         {ledger, "points", handler, []consumer.Option{consumer.Backoff(0, time.Second)}, "backoff"},
		"shrinking delays": {ledger, "points", handler, []consumer.Option{consumer.Backoff(time.Minute, time.Second)}, "backoff"},
		"no lease":         {ledger, "points", handler, []consumer.Option{consumer.Lease(0)}, "lease"},
		"no limit":         {ledger, "points", handler, []consumer.Option{consumer.Limit(0)}, "limit"},
		"short retention":  {ledger, "points", handler, []consumer.Option{consumer.Retention(time.Second)}, "retention"},
		"nil KeyFunc":      {ledger, "points", handler, []consumer.Option{consumer.KeyFunc(nil)}, "KeyFunc"},
		"nil observer":     {ledger, "points", handler, []consumer.Option{consumer.Observe(nil)}, "Observe"},
		"nil logger":       {ledger, "points", handler, []consumer.Option{consumer.Logger(nil)}, "Logger"},
		"SameTx, resolver": {ledger, "points", handler, []consumer.Option{consumer.SameTx(), consumer.Resolver(resolver)}, "resolve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := consumer.New(tt.ledger, tt.name, tt.handler, tt.options...)
			if c != nil || !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want ErrInvalid with %q", err, tt.says)
			}
		})
	}
}

func TestNameTypeLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, consumer.Limit(time.Minute))
	if b.c.Name() != "points" || b.c.Type() != "consume.points" || b.c.Limit() != time.Minute {
		t.Errorf("name %q, type %q, limit %v", b.c.Name(), b.c.Type(), b.c.Limit())
	}
}

// Each delay is in the upper half of what doubles up to the cap.
func TestDelaysGrow(t *testing.T) {
	t.Parallel()
	for attempt, most := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 8 * time.Second, 60: 8 * time.Second, 5000: 8 * time.Second,
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			b := newBench(t, consumer.Attempts(10_000))
			b.fails(errBroken)
			m := order("1")
			b.spend(m.ID, attempt-1)
			v := b.deliver(m)
			if v.Delay < most/2 || v.Delay > most {
				t.Fatalf("delay %v after attempt %d, want from %v to %v", v.Delay, attempt, most/2, most)
			}
			seen[v.Delay] = true
			if attempt > 100 && len(seen) > 1 {
				break
			}
		}
		if len(seen) < 2 {
			t.Errorf("the delay after attempt %d is not random", attempt)
		}
	}
}

// spend uses up attempts in the ledger.
func (b *bench) spend(id string, n int) {
	b.Helper()
	for range n {
		b.release(b.claim(id), idem.Failed)
	}
}

// What comes while another process has the message waits for that one's lease, and not longer than a lease.
func TestDelayWhileInHandElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, consumer.Backoff(time.Millisecond, time.Millisecond), consumer.Lease(2*time.Second))
	b.claim("1") // its lease is 3 s
	if v := b.deliver(order("1")); v.Delay != 2*time.Second {
		t.Errorf("delay %v, want the lease of 2s", v.Delay)
	}
	b = newBench(t, consumer.Backoff(time.Millisecond, time.Millisecond), consumer.Lease(time.Minute))
	b.claim("1")
	if v := b.deliver(order("1")); v.Delay > 3*time.Second || v.Delay < 2*time.Second {
		t.Errorf("delay %v, want what is left of 3s", v.Delay)
	}
}

func TestActionNames(t *testing.T) {
	t.Parallel()
	for action, want := range map[consumer.Action]string{
		consumer.Ack: "ack", consumer.Retry: "retry", consumer.DeadLetter: "dead letter", 0: "action(0)",
	} {
		if action.String() != want {
			t.Errorf("%d is %q, want %q", int(action), action, want)
		}
	}
}
