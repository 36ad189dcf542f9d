package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/stores/memstore"
)

const name = "points"

var errBroken = errors.New("the points server is down")

// bench is a consumer on a ledger of its own, with what it was asked to do.
type bench struct {
	*testing.T
	ledger *memstore.Store
	c      *consumer.Consumer

	mu     sync.Mutex
	answer consumer.Handler
	runs   []idem.Claim
	events []consumer.Event
}

// newBench has a handler that succeeds until answer is set.
func newBench(t *testing.T, options ...consumer.Option) *bench {
	t.Helper()
	b := &bench{T: t, ledger: memstore.New(memstore.Options{})}
	b.c = b.open(b.ledger, options...)
	return b
}

func (b *bench) open(ledger idem.Ledger, options ...consumer.Option) *consumer.Consumer {
	b.Helper()
	options = append([]consumer.Option{
		consumer.Logger(slog.New(slog.DiscardHandler)), consumer.Backoff(time.Second, 8*time.Second), consumer.Observe(b.observe),
	}, options...)
	c, err := consumer.New(ledger, name, b.handle, options...)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) handle(ctx context.Context, m consumer.Message) error {
	b.mu.Lock()
	b.runs = append(b.runs, idem.FromContext(ctx))
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx, m)
}

func (b *bench) observe(_ context.Context, e consumer.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

func (b *bench) fails(err error) {
	b.answer = func(context.Context, consumer.Message) error { return err }
}

func (b *bench) deliver(m consumer.Message) consumer.Verdict {
	b.Helper()
	return b.c.Handle(context.Background(), m)
}

// ran checks how often the handler was called.
func (b *bench) ran(n int) {
	b.Helper()
	if len(b.runs) != n {
		b.Errorf("the handler ran %d times, want %d", len(b.runs), n)
	}
}

// record is what the ledger says of the message.
func (b *bench) record(id string) idem.Record {
	b.Helper()
	r, err := b.ledger.Lookup(context.Background(), idem.Request{Key: key(id)})
	if err != nil && !errors.Is(err, idem.ErrNotFound) {
		b.Fatal(err)
	}
	return r
}

func (b *bench) stands(id string, state idem.State, attempt int) {
	b.Helper()
	if r := b.record(id); r.State != state || r.Attempt != attempt {
		b.Errorf("the record is %q at attempt %d, want %q at %d", r.State, r.Attempt, state, attempt)
	}
}

// claim is somebody else's.
func (b *bench) claim(id string) idem.Claim {
	b.Helper()
	answer, err := b.ledger.Claim(context.Background(), idem.Request{
		Key: key(id), Owner: idem.NewOwner(), Lease: 3 * time.Second, Retention: time.Hour,
	})
	if err != nil || answer.Outcome != idem.Won {
		b.Fatal(answer.Outcome, err)
	}
	return answer.Claim
}

func key(id string) idem.Key { return idem.K("consume."+name, id) }

func order(id string) consumer.Message {
	return consumer.Message{ID: id, Body: []byte(`{"order":1}`), Headers: map[string]string{"Trace": "t-1"}, Source: "orders"}
}

// sees checks the parts of a verdict that are no time.
func (b *bench) sees(v consumer.Verdict, action consumer.Action, attempt int, counted bool, cause error) {
	b.Helper()
	if v.Action != action || v.Attempt != attempt || v.Counted != counted || !errors.Is(v.Err, cause) || v.Consumer != name {
		b.Errorf("verdict %+v, want %v at attempt %d, counted %v, error %v", v, action, attempt, counted, cause)
	}
	if (v.Action == consumer.Retry) != (v.Delay > 0) {
		b.Errorf("%v with a delay of %v", v.Action, v.Delay)
	}
}
