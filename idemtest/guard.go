package idemtest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// Guard is a web.Guard over stores in memory, with a clock that can be moved. Make one with New, for one test. It is safe for concurrent use.
type Guard struct {
	*web.Guard
	t      testing.TB
	store  *memstore.Store
	ledger *memstore.Store
	ahead  atomic.Int64 // of the real clock
}

// New returns a guard with an entrance store that may forget and a ledger, both empty. change may set anything of the configuration, such as
// Subject, or Ledger to nil; what it does not set has its default, save that nothing is logged. The test fails at once where the configuration does not hold.
//
// What finishes behind the answers has finished when the test ends.
func New(t testing.TB, change ...func(*web.Config)) *Guard {
	t.Helper()
	g := &Guard{t: t}
	g.store = memstore.New(memstore.Options{Now: g.Now, Forgetful: true})
	g.ledger = memstore.New(memstore.Options{Now: g.Now})
	config := web.Config{Tokens: g.issuer(), Store: g.store, Ledger: g.ledger, Logger: slog.New(slog.DiscardHandler)}
	for _, set := range change {
		set(&config)
	}
	guard, err := web.New(config)
	if err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	g.Guard = guard
	t.Cleanup(g.Settle)
	return g
}

// issuer signs with a key that anybody can read here: it must not be anybody's real one.
func (g *Guard) issuer() *tokens.Issuer {
	g.t.Helper()
	key, err := tokens.HS256("idemtest", []byte("idemtest: a key for tests alone."))
	if err != nil {
		g.t.Fatalf("idemtest: %v", err)
	}
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}, Now: g.Now})
	if err != nil {
		g.t.Fatalf("idemtest: %v", err)
	}
	return issuer
}

// Now is the time on the clock of tokens and stores.
func (g *Guard) Now() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }

// Advance moves that clock on: tokens expire, results and records lapse. Leases that work holds lapse too, as if its process had been
// stopped for so long; how long a duplicate waits and how long a handler may take is measured by the real clock.
func (g *Guard) Advance(d time.Duration) { g.ahead.Add(int64(d)) }

// Forget empties the entrance store, as a restart or a fail-over of Redis does. The ledger stays.
func (g *Guard) Forget() { g.store.Forget() }

// Settle waits, up to ten seconds, until what finishes behind the answers is written. A test needs it before Forget, if it has to come after that.
func (g *Guard) Settle() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.Drain(ctx); err != nil {
		g.t.Errorf("idemtest: what finishes behind the answers has not: %v", err)
	}
}
