package consumertest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

const (
	patience = 60 * time.Second // until something that must come is missed
	prompt   = 10 * time.Second // within which a stopped adapter has ended: seconds, on a machine that does much else
	lease    = 2 * time.Second
	first    = 50 * time.Millisecond // the delay after a first attempt, and
	longest  = 200 * time.Millisecond
)

// fixture is one test's backend with what the tests do to it.
type fixture struct {
	*testing.T
	Backend
	events events
}

func newFixture(t *testing.T, b Backend) *fixture { return &fixture{T: t, Backend: b} }

// consumer has short delays. Its verdicts are counted in f.events.
func (f *fixture) consumer(name string, handler consumer.Handler, options ...consumer.Option) *consumer.Consumer {
	f.Helper()
	options = append([]consumer.Option{
		consumer.Backoff(first, longest), consumer.Lease(lease), consumer.Logger(slog.New(slog.DiscardHandler)), consumer.Observe(f.events.add),
	}, options...)
	c, err := consumer.New(f.Ledger, name, handler, options...)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// start runs the adapter. The returned function ends it gracefully, checks that it ends in time, and may be called twice.
func (f *fixture) start(c *consumer.Consumer, concurrency int) (stop func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Backend.Run(ctx, c, concurrency) }()
	stop = sync.OnceFunc(func() {
		f.Helper()
		cancel()
		begun := time.Now()
		select {
		case err := <-ended:
			if err != nil {
				f.Errorf("the adapter ended with %v", err)
			}
		case <-time.After(patience):
			f.Fatal("the adapter does not end")
		}
		if took := time.Since(begun); took > prompt {
			f.Errorf("the adapter took %v to end", took)
		}
	})
	f.Cleanup(stop)
	return stop
}

// publish repeats until the broker has the message, as a producer has to.
func (f *fixture) publish(m consumer.Message) {
	f.Helper()
	var err error
	f.until("message "+m.ID+" published", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), prompt)
		defer cancel()
		err = f.Publish(ctx, m)
		return err == nil
	}, func() string { return fmt.Sprint(err) })
}

func (f *fixture) publishMany(n int) {
	f.Helper()
	for i := range n {
		f.publish(message(i))
	}
}

// drained waits until the broker has nothing left for the consumer.
func (f *fixture) drained(name string) {
	f.Helper()
	var left int
	var err error
	f.until("nothing left for "+name, func() bool {
		left, err = f.Pending(context.Background(), name)
		return err == nil && left == 0
	}, func() string { return fmt.Sprint(left, " left, error ", err) })
}

// dead waits for so many dead letters of the first consumer.
func (f *fixture) dead(n int) []consumer.Message {
	f.Helper()
	var letters []consumer.Message
	var err error
	f.until(fmt.Sprint(n, " dead letters"), func() bool {
		letters, err = f.Dead(context.Background(), points)
		return err == nil && len(letters) == n
	}, func() string { return fmt.Sprint(len(letters), " of them, error ", err) })
	return letters
}

// until polls; on says what stands instead when the patience is over.
func (f *fixture) until(what string, condition func() bool, on ...func() string) {
	f.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			stands := ""
			for _, say := range on {
				stands += ": " + say()
			}
			f.Fatalf("not within %v: %s%s", patience, what, stands)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// stays checks that a condition holds for a while.
func (f *fixture) stays(what string, d time.Duration, condition func() bool) {
	f.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if !condition() {
			f.Fatalf("%s: no longer so", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func message(i int) consumer.Message {
	return consumer.Message{
		ID: fmt.Sprintf("order-%d", i), Body: fmt.Appendf(nil, `{"order":%d,"bytes":"%s"}`, i, "\x00\xff~"),
		Headers: map[string]string{"Trace": fmt.Sprintf("trace %d", i), "Shop": "köln"},
	}
}

// calls counts a handler's calls by message.
type calls struct {
	mu   sync.Mutex
	runs map[string][]run
}

// run is one call of a handler.
type run struct {
	consumer.Message
	attempt int
	at      time.Time
}

// add notes a call and returns how many there were of this message, this one included.
func (c *calls) add(ctx context.Context, m consumer.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[string][]run{}
	}
	c.runs[m.ID] = append(c.runs[m.ID], run{Message: m, attempt: idem.FromContext(ctx).Attempt, at: time.Now()})
	return len(c.runs[m.ID])
}

// handle is a handler that succeeds.
func (c *calls) handle(ctx context.Context, m consumer.Message) error {
	c.add(ctx, m)
	return nil
}

func (c *calls) of(id string) []run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]run(nil), c.runs[id]...)
}

// messages is the number of messages that were handled at least once.
func (c *calls) messages() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// events keeps what an observer was told.
type events struct {
	mu   sync.Mutex
	seen []consumer.Event
}

func (e *events) add(_ context.Context, event consumer.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, event)
}

func (e *events) count(like func(consumer.Event) bool) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, event := range e.seen {
		if like(event) {
			n++
		}
	}
	return n
}
