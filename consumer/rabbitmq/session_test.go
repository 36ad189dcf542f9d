package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/rabbitmq"
	"github.com/idemkit/idem/internal/testkit"
)

func TestBrokerAwayAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	link := testkit.Proxy(t, f.Addr)
	link.Refuse(true)
	f.start(f.consumer(func(context.Context, consumer.Message) error { return nil }), func(c *rabbitmq.Config) { c.URL = f.URLVia(link.Addr()) })
	f.until("three failures", func() bool { _, failed := f.observed(); return len(failed) >= 3 })
	link.Refuse(false)
	f.connected(1)
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
	f.until("handled", func() bool { return len(f.judged(consumer.Ack)) == 1 })
}

// A broker that takes bytes and says nothing must hold nobody: neither the handshake, nor a publication, nor the end.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	type silence struct {
		*fixture
		link *testkit.Link
		stop func() error
	}
	for name, run := range map[string]func(s silence){
		"at the end": func(s silence) {
			s.connected(1)
			s.link.Latency(time.Hour)
		},
		"at the handshake": func(s silence) {
			s.connected(1)
			s.link.Latency(time.Hour)
			s.link.Cut()
			s.failedWith(func(err error) bool { return strings.Contains(err.Error(), "timeout") })
		},
		"at a publication": func(s silence) {
			s.connected(1)
			s.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")}) // the handler silences the broker
			s.failedWith(func(err error) bool { return strings.Contains(err.Error(), "does not answer, for 1s") })
			s.link.Latency(0)
			s.link.Cut()
			s.until("handled", func() bool { return len(s.judged(consumer.Ack)) == 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			link := testkit.Proxy(t, f.Addr)
			var handled atomic.Int32
			stop := f.start(f.consumer(func(context.Context, consumer.Message) error {
				if handled.Add(1) == 1 {
					link.Latency(time.Hour)
					return errBroken
				}
				return nil
			}), func(c *rabbitmq.Config) { c.URL, c.ConfirmTimeout = f.URLVia(link.Addr()), time.Second })
			run(silence{f, link, stop})
			begun := time.Now()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("it took %v to end", took)
			}
		})
	}
}

// More are fetched than handled; those that were not handled are given back at once, not when the last handler has finished.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	leave := make(chan struct{})
	var now, most atomic.Int32
	stop := f.start(f.consumer(func(context.Context, consumer.Message) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		<-leave
		return nil
	}), func(c *rabbitmq.Config) { c.Concurrency, c.Prefetch = 2, 5 })
	f.connected(1)
	for i := range 8 {
		f.publish(amqp.Publishing{MessageId: fmt.Sprint("order-", i), Body: []byte("b")})
	}
	f.until("five fetched", func() bool { return f.Depth(t, f.queue) == 3 && now.Load() == 2 })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	f.until("three given back", func() bool { return f.Depth(t, f.queue) == 6 })
	select {
	case <-ended:
		t.Error("it ended before its handlers")
	default:
	}
	close(leave)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.until("the two acknowledged", func() bool { left, err := messages(t, f.RabbitMQVhost, f.queue); return err == nil && left == 6 })
	if most.Load() != 2 {
		t.Errorf("%d at once", most.Load())
	}
}

// Handlers that outlive their connection count: there are never more than were asked for.
func TestConcurrencyOverSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	link := testkit.Proxy(t, f.Addr)
	leave := make(chan struct{})
	var now, most, began atomic.Int32
	f.start(f.consumer(func(context.Context, consumer.Message) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		began.Add(1)
		<-leave
		return nil
	}), func(c *rabbitmq.Config) { c.URL, c.Concurrency = f.URLVia(link.Addr()), 2 })
	f.connected(1)
	for i := range 4 {
		f.publish(amqp.Publishing{MessageId: fmt.Sprint("order-", i), Body: []byte("b")})
	}
	f.until("two begun", func() bool { return began.Load() == 2 })
	link.Cut()
	f.connected(2)
	close(leave)
	f.until("all done", func() bool {
		done := map[int]bool{}
		for i, v := range f.judged(consumer.Ack) {
			done[i] = v.Replayed
		}
		return len(done) >= 4 && began.Load() == 4
	})
	f.empty(f.queue)
	if most.Load() > 2 {
		t.Errorf("%d at once", most.Load())
	}
}

// The count goes on over redelivery by the broker and over rests, and leaves out what was not counted.
func TestDeliveryCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	away := &awayLedger{Ledger: f.ledger}
	f.ledger = away
	link := testkit.Proxy(t, f.Addr)
	var seen [5]int
	var handled atomic.Int32
	f.start(f.consumer(func(_ context.Context, m consumer.Message) error {
		n := handled.Add(1)
		seen[n-1] = m.Delivery
		switch n {
		case 1:
			return errBroken // rests
		case 2:
			link.Cut() // comes again from the broker
			return errBroken
		case 3:
			away.refusals.Store(3) // rests three times, uncounted
			return errBroken
		case 4:
			return errBroken
		}
		return nil
	}), func(c *rabbitmq.Config) { c.URL = f.URLVia(link.Addr()) })
	f.connected(1)
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
	f.until("handled", func() bool { return len(f.judged(consumer.Ack)) == 1 })
	if want := [5]int{1, 2, 3, 4, 5}; seen != want {
		t.Errorf("deliveries %v, want %v", seen, want)
	}
	if away.refusals.Load() > 0 {
		t.Error("the ledger was not away")
	}
}

type awayLedger struct {
	idem.Ledger
	refusals atomic.Int32
}

func (l *awayLedger) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if l.refusals.Load() > 0 {
		l.refusals.Add(-1)
		return idem.Answer{}, errors.New("connection refused")
	}
	return l.Ledger.Claim(ctx, q)
}

// Grace ends handlers that would go on; without it the consumer's limit does.
func TestGrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	entered, cause := make(chan struct{}), make(chan error, 1)
	stop := f.start(f.consumer(func(ctx context.Context, _ consumer.Message) error {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}, consumer.Limit(time.Hour)), func(c *rabbitmq.Config) { c.Grace = 200 * time.Millisecond })
	f.publishWhenDeclared()
	<-entered
	begun := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < 200*time.Millisecond || took > 10*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if err := <-cause; err == nil || !strings.Contains(err.Error(), "grace") {
		t.Errorf("cause %v", err)
	}
	f.until("it rests", func() bool { return len(f.judged(consumer.Retry)) == 1 })
}

func (f *fixture) publishWhenDeclared() {
	f.Helper()
	f.connected(1)
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
}

func TestEndsBeforeItBegins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	adapter, err := rabbitmq.New(configuration(f.URL(), f.queue))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := adapter.Run(ctx, f.consumer(func(context.Context, consumer.Message) error { return nil })); err != nil {
		t.Error(err)
	}
}
