package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/rabbitmq"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleURL) != "" {
		if err := hang(context.Background()); err != nil {
			fmt.Fprintln(os.Stdout, "failed:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

var errBroken = errors.New("the shop is closed")

// configuration has short delays.
func configuration(url, queue string) rabbitmq.Config {
	return rabbitmq.Config{
		URL: url, Queue: queue, Concurrency: 1,
		Retry:          []rabbitmq.Level{{Delay: 100 * time.Millisecond}, {Delay: time.Second}, {Delay: 10 * time.Second}, {Delay: time.Hour}},
		FirstReconnect: 20 * time.Millisecond, MaxReconnect: 500 * time.Millisecond, ConfirmTimeout: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// fixture is a consumer of one queue with what the tests see of it.
type fixture struct {
	*testing.T
	*testkit.RabbitMQVhost
	queue  string
	ledger idem.Ledger

	mu       sync.Mutex
	verdicts []consumer.Verdict
	sessions []error // what Observe was told
}

func newFixture(t *testing.T) *fixture { return on(t, testkit.RabbitMQ(t)) }

func on(t *testing.T, vhost *testkit.RabbitMQVhost) *fixture {
	return &fixture{T: t, RabbitMQVhost: vhost, queue: "points", ledger: memstore.New(memstore.Options{})}
}

func (f *fixture) consumer(handler consumer.Handler, options ...consumer.Option) *consumer.Consumer {
	f.Helper()
	options = append([]consumer.Option{
		consumer.Backoff(50*time.Millisecond, 200*time.Millisecond), consumer.Logger(slog.New(slog.DiscardHandler)),
		consumer.Observe(func(_ context.Context, e consumer.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.verdicts = append(f.verdicts, e.Verdict)
		}),
	}, options...)
	c, err := consumer.New(f.ledger, "points", handler, options...)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// start runs the adapter with the configuration, changed, until the returned function, which gives what Run returned, or the end of the test.
func (f *fixture) start(c *consumer.Consumer, change ...func(*rabbitmq.Config)) (stop func() error) {
	f.Helper()
	config := configuration(f.URL(), f.queue)
	config.Observe = func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions = append(f.sessions, err)
	}
	for _, with := range change {
		with(&config)
	}
	adapter, err := rabbitmq.New(config)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- adapter.Run(ctx, c) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("the adapter does not end")
		}
	})
	f.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, rabbitmq.ErrTopology) {
			f.Error(err)
		}
	})
	return stop
}

// connected is how often messages could begin to come; failed is what ended or prevented that.
func (f *fixture) observed() (connected int, failed []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.sessions {
		if err == nil {
			connected++
		} else {
			failed = append(failed, err)
		}
	}
	return connected, failed
}

func (f *fixture) connected(times int) {
	f.Helper()
	f.until(fmt.Sprint(times, " sessions"), func() bool { connected, _ := f.observed(); return connected >= times })
}

// failedWith waits for an end of a session, or of an attempt at one, that is like the error.
func (f *fixture) failedWith(like func(error) bool) {
	f.Helper()
	f.until("a failed session", func() bool {
		_, failed := f.observed()
		for _, err := range failed {
			if like(err) {
				return true
			}
		}
		return false
	})
}

func (f *fixture) judged(action consumer.Action) (found []consumer.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.verdicts {
		if v.Action == action {
			found = append(found, v)
		}
	}
	return found
}

func (f *fixture) until(what string, condition func() bool) {
	f.Helper()
	testkit.Eventually(f.T, patience, what, condition)
}

// publish sends to the queue by the default exchange and waits for the confirmation.
func (f *fixture) publish(p amqp.Publishing) { f.Helper(); f.publishTo("", f.queue, p) }

func (f *fixture) publishTo(exchange, key string, p amqp.Publishing) {
	f.Helper()
	p.DeliveryMode = amqp.Persistent
	confirmation, err := f.Channel(f.T).PublishWithDeferredConfirmWithContext(context.Background(), exchange, key, true, false, p)
	if err != nil {
		f.Fatal(err)
	}
	if acked, err := confirmation.WaitContext(f.Context()); err != nil || !acked {
		f.Fatalf("confirmed %v, %v", acked, err)
	}
}

// take waits for the first message of a queue and acknowledges it.
func (f *fixture) take(queue string) amqp.Delivery {
	f.Helper()
	channel := f.Channel(f.T)
	var got amqp.Delivery
	f.until("a message in "+queue, func() bool {
		d, there, err := channel.Get(queue, true)
		if err != nil {
			f.Fatal(err)
		}
		got = d
		return there
	})
	return got
}

// empty waits until the broker has nothing in the queue, delivered or not.
func (f *fixture) empty(queue string) {
	f.Helper()
	f.until(queue+" is empty", func() bool {
		left, err := messages(f.T, f.RabbitMQVhost, queue)
		return err == nil && left == 0
	})
}

// messages is asked twice, for the broker counts five times a second or so: nothing twice in a row is nothing.
func messages(t testing.TB, vhost *testkit.RabbitMQVhost, names ...string) (left int, err error) {
	t.Helper()
	for range 2 {
		queues, err := vhost.Queues()
		if err != nil {
			return 0, err
		}
		left = 0
		for _, queue := range queues {
			for _, name := range names {
				if queue.Name == name {
					left += queue.Messages
				}
			}
		}
		if left > 0 {
			return left, nil
		}
		<-time.After(250 * time.Millisecond)
	}
	return left, nil
}

func path(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }
