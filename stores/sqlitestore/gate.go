package sqlitestore

import (
	"context"
	"slices"
	"sync"

	"github.com/idemkit/idem"
)

// gate is the queue in front of the one writer: first come, first served, renewals first. The zero value is free.
//
// It also holds the renewals that could not be written in time. Whoever holds the gate writes them before it leaves, or before it judges a
// claim, so that a claim whose holder asked for renewal is never taken over for having waited here.
type gate struct {
	mu      sync.Mutex
	held    bool
	open    *work // the work whose transaction holds the gate, if it is one
	urgent  []*waiter
	regular []*waiter
	pending map[fence]idem.Claim
}

// waiter is closed when the gate is handed to it.
type waiter struct{ ready chan struct{} }

// fence names one claim of one key, in the words of the table's columns.
type fence struct {
	tenant, bizType, bizKey, owner string
	attempt                        int
}

func fenceOf(c idem.Claim) fence {
	return fence{
		tenant: idem.Column(c.Key.Tenant), bizType: idem.Column(c.Key.Type), bizKey: c.Key.Column(),
		owner: idem.Column(c.Owner), attempt: c.Attempt,
	}
}

// enter waits for the gate as long as ctx allows, in the lane of renewals where urgent. onQuit, if any, runs when it gave up, in the same
// instant, so that the holder cannot have left in between.
func (g *gate) enter(ctx context.Context, urgent bool, onQuit func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if !g.held {
		g.held = true
		g.mu.Unlock()
		return nil
	}
	me := &waiter{ready: make(chan struct{})}
	lane := &g.regular
	if urgent {
		lane = &g.urgent
	}
	*lane = append(*lane, me)
	g.mu.Unlock()
	select {
	case <-me.ready:
		return nil
	case <-ctx.Done():
		return g.quit(ctx, lane, me, onQuit)
	}
}

// quit leaves the lane. A waiter that was served meanwhile holds the gate and returns nil.
func (g *gate) quit(ctx context.Context, lane *[]*waiter, me *waiter, onQuit func()) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	place := slices.Index(*lane, me)
	if place < 0 {
		return nil
	}
	*lane = slices.Delete(*lane, place, place+1)
	if onQuit != nil {
		onQuit()
	}
	return ctx.Err()
}

// leave hands the gate on. It refuses while renewals are pending, unless forced.
func (g *gate) leave(force bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) > 0 && !force {
		return false
	}
	g.open = nil
	lane := &g.urgent
	if len(*lane) == 0 {
		lane = &g.regular
	}
	if len(*lane) == 0 {
		g.held = false
		return true
	}
	next := (*lane)[0]
	*lane = slices.Delete(*lane, 0, 1)
	close(next.ready)
	return true
}

// opened says whose transaction holds the gate.
func (g *gate) opened(w *work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = w
}

// note keeps renewals for the next transaction. The caller holds g.mu.
func (g *gate) note(claims []idem.Claim) {
	if g.pending == nil {
		g.pending = make(map[fence]idem.Claim)
	}
	for _, c := range claims {
		g.pending[fenceOf(c)] = c
	}
}

// noteOpen notes renewals where w's transaction holds the gate.
func (g *gate) noteOpen(w *work, claims []idem.Claim) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != w {
		return false
	}
	g.note(claims)
	return true
}

func (g *gate) renewals() []idem.Claim {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) == 0 {
		return nil
	}
	claims := make([]idem.Claim, 0, len(g.pending))
	for _, c := range g.pending {
		claims = append(claims, c)
	}
	return claims
}

// drop forgets renewals that are written, or whose claim has ended.
func (g *gate) drop(claims ...idem.Claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range claims {
		delete(g.pending, fenceOf(c))
	}
}

// keeps reports whether the claim cannot be taken over in this process now, whatever its lease says: its renewal is pending, or its own
// transaction holds the gate.
func (g *gate) keeps(f fence) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, pending := g.pending[f]; pending {
		return true
	}
	return g.open != nil && fenceOf(g.open.claim) == f
}

// claimed reports whether the transaction that holds the gate has a claim in it, not committed yet, under the request's key or its request id. It
// compares columns, for a key that was read back from them is the same.
func (g *gate) claimed(q idem.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil || !g.open.fresh {
		return false
	}
	own, asked := intention(g.open.claim.Request), intention(q)
	sameType := slices.Equal(own[:2], asked[:2])
	return sameType && (own[2] == asked[2] || (q.RequestID != "" && slices.Equal(own[3:], asked[3:])))
}
