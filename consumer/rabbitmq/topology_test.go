package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/rabbitmq"
	"github.com/idemkit/idem/internal/testkit"
)

func declared(t *testing.T, config rabbitmq.Config) error {
	t.Helper()
	adapter, err := rabbitmq.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return adapter.Declare(t.Context())
}

func TestTopology(t *testing.T) {
	t.Parallel()
	vhost := testkit.RabbitMQ(t)
	for range 2 { // the second finds all of it
		if err := declared(t, rabbitmq.Config{URL: vhost.URL(), Queue: "points"}); err != nil {
			t.Fatal(err)
		}
	}
	lettering := func(to string, ttl any) map[string]any {
		args := map[string]any{
			"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to,
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
		}
		if ttl != nil {
			args["x-message-ttl"] = ttl
		}
		return args
	}
	want := map[string]map[string]any{
		"points":           lettering("points.dead", nil),
		"points.retry.1s":  lettering("points", 1_000.0),
		"points.retry.4s":  lettering("points", 4_000.0),
		"points.retry.16s": lettering("points", 16_000.0),
		"points.retry.1m":  lettering("points", 60_000.0),
		"points.retry.5m":  lettering("points", 300_000.0),
		"points.dead":      {"x-queue-type": "quorum"},
	}
	queues, err := vhost.Queues()
	if err != nil || len(queues) != len(want) {
		t.Errorf("queues %+v, %v", queues, err)
	}
	for _, queue := range queues {
		if !maps.Equal(queue.Arguments, want[queue.Name]) || !queue.Durable {
			t.Errorf("queue %+v, want arguments %v", queue, want[queue.Name])
		}
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.Channel(t).ExchangeDeclare("there", amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	config := configuration(f.URL(), f.queue)
	config.Bindings = []rabbitmq.Binding{
		{Exchange: "orders", Kind: amqp.ExchangeTopic, Key: "order.*"}, {Exchange: "there", Key: "paid"},
		{Exchange: "kinds", Kind: amqp.ExchangeHeaders, Args: amqp.Table{"kind": "gift"}},
	}
	if err := declared(t, config); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		exchange, key string
		headers       amqp.Table
		arrives       bool
	}{
		{"orders", "order.created", nil, true}, {"orders", "refund.created", nil, false}, {"there", "paid", nil, true}, {"there", "unpaid", nil, false},
		{"kinds", "", amqp.Table{"kind": "gift"}, true}, {"kinds", "", amqp.Table{"kind": "loan"}, false},
	} {
		id := fmt.Sprint("message ", i)
		f.publishTo(c.exchange, c.key, amqp.Publishing{MessageId: id, Headers: c.headers, Body: []byte("b")})
		if c.arrives {
			if d := f.take(f.queue); d.MessageId != id {
				t.Errorf("%s %s: %s arrived, want %s", c.exchange, c.key, d.MessageId, id)
			}
		}
	}
	f.empty(f.queue)
}

func TestDeclareFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*rabbitmq.Config)
		exists  func(*amqp.Channel) error
		is      error
		mention string
	}{
		"classic work queue": {
			exists: func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare("points", true, false, false, false, nil)
				return err
			},
			is: rabbitmq.ErrTopology, mention: "points",
		},
		"level of another length": {
			exists: func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare("points.retry.1s", true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-message-ttl": 5})
				return err
			},
			is: rabbitmq.ErrTopology, mention: "points.retry.1s",
		},
		"exchange of another kind": {
			change: func(c *rabbitmq.Config) {
				c.Bindings = []rabbitmq.Binding{{Exchange: "orders", Kind: amqp.ExchangeTopic, Key: "#"}}
			},
			exists: func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare("orders", amqp.ExchangeFanout, true, false, false, false, nil)
			},
			is: rabbitmq.ErrTopology, mention: "orders",
		},
		"missing exchange": {
			change: func(c *rabbitmq.Config) { c.Bindings = []rabbitmq.Binding{{Exchange: "nowhere", Key: "#"}} },
			exists: func(*amqp.Channel) error { return nil }, mention: "nowhere",
		},
		"nobody there": {
			change: func(c *rabbitmq.Config) { c.URL = "amqp://guest:guest@127.0.0.1:1/" },
			exists: func(*amqp.Channel) error { return nil }, mention: "refused",
		},
		"wrong password": {
			change: func(c *rabbitmq.Config) { c.URL = strings.Replace(c.URL, "guest:guest", "guest:secret", 1) },
			exists: func(*amqp.Channel) error { return nil }, is: amqp.ErrCredentials, mention: "403",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vhost := testkit.RabbitMQ(t)
			if err := c.exists(vhost.Channel(t)); err != nil {
				t.Fatal(err)
			}
			config := configuration(vhost.URL(), "points")
			if c.change != nil {
				c.change(&config)
			}
			err := declared(t, config)
			if err == nil || !strings.Contains(err.Error(), c.mention) || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("error %v, want %v that mentions %q", err, c.is, c.mention)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || c.is == nil && errors.Is(err, rabbitmq.ErrTopology)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestRunEndsWhereTheTopologyDiffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.Channel(t).QueueDeclare(f.queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	f.start(f.consumer(func(context.Context, consumer.Message) error { return nil }))
	f.failedWith(func(err error) bool { return errors.Is(err, rabbitmq.ErrTopology) })
}

// Whoever runs the broker may have made the queues, of another type and with other names.
func TestNoDeclare(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	channel := f.Channel(t)
	for name, args := range map[string]amqp.Table{
		"points": nil, "given up": nil, "later": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "points"},
	} {
		if _, err := channel.QueueDeclare(name, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	handled := make(chan consumer.Message, 10)
	f.start(f.consumer(func(_ context.Context, m consumer.Message) error {
		handled <- m
		return errBroken
	}, consumer.Attempts(2)), func(c *rabbitmq.Config) {
		c.NoDeclare, c.Dead, c.Retry = true, "given up", []rabbitmq.Level{{Delay: time.Minute, Queue: "later"}}
		c.Bindings = []rabbitmq.Binding{{Exchange: "nowhere", Kind: amqp.ExchangeFanout}}
	})
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
	if d := f.take("given up"); d.MessageId != "order-1" || d.Headers[consumer.HeaderAttempt] != "2" {
		t.Errorf("dead letter %s %v", d.MessageId, d.Headers)
	}
	for attempt := range 2 {
		if m := <-handled; m.Delivery != attempt+1 {
			t.Errorf("delivery %d, want %d", m.Delivery, attempt+1)
		}
	}
	if queues, err := f.Queues(); err != nil || len(queues) != 3 {
		t.Errorf("queues %+v, %v", queues, err)
	}
}

// What the broker itself gives up is a dead letter, too.
func TestRejectedByTheBroker(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := declared(t, configuration(f.URL(), f.queue)); err != nil {
		t.Fatal(err)
	}
	f.publish(amqp.Publishing{MessageId: "order-1", Body: []byte("b")})
	channel := f.Channel(t)
	d, there, err := channel.Get(f.queue, false)
	if err != nil || !there {
		t.Fatal(there, err)
	}
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
	if d := f.take("points.dead"); d.MessageId != "order-1" {
		t.Errorf("dead letter %s", d.MessageId)
	}
}
