package memstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a store with a clock, and calls that fail the test.
type bench struct {
	*testing.T
	*memstore.Store
	clock *clock
}

func newBench(t *testing.T, options memstore.Options) bench {
	c := &clock{now: time.Unix(1_700_000_000, 0)}
	options.Now = c.Now
	return bench{T: t, Store: memstore.New(options), clock: c}
}

func request(id string) idem.Request {
	return idem.Request{
		Key: idem.K("order.create", id), Subject: "alice", RequestID: "request-" + id, Fingerprint: []byte("payload"),
		Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour,
	}
}

func again(q idem.Request) idem.Request {
	q.Owner = idem.NewOwner()
	return q
}

func (b bench) outcome(want idem.Outcome, q idem.Request) idem.Answer {
	b.Helper()
	answer, err := b.Claim(b.Context(), q)
	if err != nil || answer.Outcome != want {
		b.Fatalf("Claim: %v, %v; want %v", answer.Outcome, err, want)
	}
	return answer
}

func (b bench) complete(q idem.Request, r idem.Result) {
	b.Helper()
	if err := b.Complete(b.Context(), b.outcome(idem.Won, q).Claim, r); err != nil {
		b.Fatalf("Complete: %v", err)
	}
}

func (b bench) kept(q idem.Request) bool {
	_, err := b.Lookup(b.Context(), q)
	return err == nil
}
