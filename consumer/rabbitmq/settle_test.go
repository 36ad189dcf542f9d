package rabbitmq_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/rabbitmq"
	"github.com/idemkit/idem/internal/testkit"
)

// What comes back is what was published, whatever the publication looked like.
func TestCopiesArrive(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]amqp.Publishing{
		"typed headers":         {Headers: amqp.Table{"n": int32(7), "table": amqp.Table{"a": int64(1)}, "array": []any{"x", true}, "none": nil}},
		"copied to other queue": {Headers: amqp.Table{"CC": []any{"elsewhere"}}},
		"short-lived":           {Expiration: "60000"},
		"of a user":             {UserId: "guest"},
		"reply wanted":          {ReplyTo: "answers", CorrelationId: "c-1"},
		"empty":                 {},
		"many headers":          {Headers: amqp.Table{"long": strings.Repeat("x", 50_000)}},
		"large":                 {Body: []byte(strings.Repeat("body", 100_000))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if _, err := f.Channel(t).QueueDeclare("elsewhere", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			p.MessageId = "order-1"
			f.start(f.consumer(func(context.Context, consumer.Message) error { return errBroken }, consumer.Attempts(2)))
			f.connected(1)
			f.publish(p)
			d := f.take("points.dead")
			f.empty(f.queue)
			if string(d.Body) != string(p.Body) || d.ReplyTo != p.ReplyTo || d.CorrelationId != p.CorrelationId || d.Expiration != "" {
				t.Errorf("dead letter %+v", d)
			}
			for header, value := range p.Headers {
				if header != "CC" && fmt.Sprint(d.Headers[header]) != fmt.Sprint(value) {
					t.Errorf("header %s is %.100v", header, d.Headers[header])
				}
			}
			copies := 0
			if p.Headers["CC"] != nil {
				copies = 1
			}
			if depth := f.Depth(t, "elsewhere"); depth != copies {
				t.Errorf("%d copies elsewhere, want the producer's %d", depth, copies)
			}
			if _, failed := f.observed(); len(failed) > 0 {
				t.Errorf("sessions ended: %v", failed)
			}
		})
	}
}

// A person who looks into a resting queue sees why the message is there.
func TestRestingMessageSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(f.consumer(func(context.Context, consumer.Message) error { return errBroken }, consumer.Backoff(time.Hour, time.Hour)))
	f.connected(1)
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
	d := f.take("points.retry.1h")
	if d.Headers[rabbitmq.HeaderError] != errBroken.Error() || d.Headers[rabbitmq.HeaderAttempt] != int64(1) || d.Headers[rabbitmq.HeaderDelivery] != int64(1) {
		t.Errorf("headers %v", d.Headers)
	}
	if d.Expiration == "" || d.DeliveryMode != amqp.Persistent {
		t.Errorf("expiration %q, mode %d", d.Expiration, d.DeliveryMode)
	}
}

// The original is not acknowledged before its copy is confirmed: the copy is there, its confirmation is lost, and both come.
func TestLostConfirmation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts int
		dead     int
	}{"of a retry": {attempts: 5}, "of a dead letter": {attempts: 1, dead: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			link := testkit.Proxy(t, f.Addr)
			var handled atomic.Int32
			f.start(f.consumer(func(context.Context, consumer.Message) error {
				if handled.Add(1) == 1 {
					link.DropReplies(1)
					return errBroken
				}
				return nil
			}, consumer.Attempts(c.attempts)), func(config *rabbitmq.Config) { config.URL = f.URLVia(link.Addr()) })
			f.connected(1)
			f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
			f.connected(2)
			for range c.dead {
				f.take("points.dead")
			}
			if c.dead == 0 {
				f.until("done once, replayed once", func() bool {
					done := f.judged(consumer.Ack)
					return len(done) == 2 && done[0].Replayed != done[1].Replayed
				})
			}
			f.empty(f.queue)
			f.empty("points.retry.100ms")
			if want := int32(2 - c.dead/2); handled.Load() != want {
				t.Errorf("handled %d times, want %d", handled.Load(), want)
			}
		})
	}
}

// A publication that no queue takes is not confirmed as far as we are concerned, and the queue that was deleted is made again.
func TestDeletedTarget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue    string
		attempts int
	}{"resting queue": {"points.retry.100ms", 5}, "dead letters": {"points.dead", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			channel := f.Channel(t)
			var handled atomic.Int32
			f.start(f.consumer(func(context.Context, consumer.Message) error {
				if handled.Add(1) == 1 {
					if _, err := channel.QueueDelete(c.queue, false, false, false); err != nil {
						t.Error(err)
					}
				}
				return errBroken
			}, consumer.Attempts(c.attempts)))
			f.connected(1)
			f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
			f.failedWith(func(err error) bool { return strings.Contains(err.Error(), "no queue took") })
			f.connected(2)
			if d := f.take("points.dead"); d.MessageId != "order-1" {
				t.Errorf("dead letter %s", d.MessageId)
			}
			f.empty(f.queue)
		})
	}
}

func TestMessageWithoutID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := make(chan string, 1)
	f.start(f.consumer(func(_ context.Context, m consumer.Message) error {
		keys <- m.ID
		return nil
	}, consumer.KeyFunc(func(m consumer.Message) (string, error) { return string(m.Body), nil })))
	f.connected(1)
	f.publish(amqp.Publishing{Body: []byte("order-1")})
	if id := <-keys; id != "" {
		t.Errorf("id %q", id)
	}
	f.publish(amqp.Publishing{Body: []byte("order-1")})
	f.until("the second is known by its key", func() bool { done := f.judged(consumer.Ack); return len(done) == 2 && done[1].Replayed })
	f.empty(f.queue)
}
