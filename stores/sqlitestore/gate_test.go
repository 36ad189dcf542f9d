package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/idemkit/idem"
)

// enterAll queues one call after the other, in this order, and returns the order in which they are served.
func enterAll(t *testing.T, g *gate, urgent ...bool) (served func() []int) {
	t.Helper()
	var calls sync.WaitGroup
	var order []int
	for i, first := range urgent {
		calls.Go(func() {
			if err := g.enter(context.Background(), first, nil); err != nil {
				t.Errorf("enter: %v", err)
			}
			order = append(order, i)
			g.leave(false)
		})
		synctest.Wait()
	}
	return func() []int { calls.Wait(); return order }
}

func TestGateOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		urgent []bool
		want   []int
	}{
		"nobody":                         {nil, nil},
		"first come, first served":       {[]bool{false, false, false}, []int{0, 1, 2}},
		"renewals first":                 {[]bool{false, true, false, true}, []int{1, 3, 0, 2}},
		"renewals first come, likewise":  {[]bool{true, true}, []int{0, 1}},
		"a renewal alone among the last": {[]bool{false, false, true}, []int{2, 0, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var g gate
				if err := g.enter(t.Context(), false, nil); err != nil {
					t.Fatal(err)
				}
				served := enterAll(t, &g, tt.urgent...)
				g.leave(false)
				if got := served(); !slices.Equal(got, tt.want) {
					t.Fatalf("served %v, want %v", got, tt.want)
				}
				if g.held {
					t.Fatal("held by nobody")
				}
			})
		})
	}
}

func TestGateQuit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		if err := g.enter(t.Context(), false, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		quits := 0
		calls.Go(func() {
			if err := g.enter(ctx, false, func() { quits++ }); !errors.Is(err, context.Canceled) {
				t.Errorf("enter: %v, want the context's error", err)
			}
		})
		synctest.Wait()
		behind := enterAll(t, &g, false)
		cancel()
		calls.Wait()
		g.leave(false)
		behind()
		if quits != 1 || g.held || len(g.regular) != 0 {
			t.Fatalf("quits %d, held %v, waiting %d", quits, g.held, len(g.regular))
		}
		if err := g.enter(ctx, false, nil); !errors.Is(err, context.Canceled) || g.held {
			t.Fatalf("enter under an ended context: %v, held %v", err, g.held)
		}
	})
}

// Many callers give up while others are served: the gate is never lost, and never held twice.
func TestGateUnderCancellation(t *testing.T) {
	t.Parallel()
	var g gate
	var calls sync.WaitGroup
	inside := 0 // guarded by the gate; -race notices where it is not
	for i := range 400 {
		calls.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			if err := g.enter(ctx, i%5 == 0, nil); err != nil {
				return
			}
			if inside++; inside != 1 {
				t.Errorf("%d inside", inside)
			}
			inside--
			g.leave(false)
		})
	}
	calls.Wait()
	if g.held || len(g.regular)+len(g.urgent) != 0 {
		t.Fatalf("held %v, waiting %d and %d", g.held, len(g.urgent), len(g.regular))
	}
}

func TestGateKeepsPendingRenewals(t *testing.T) {
	t.Parallel()
	var g gate
	claim := func(id string, attempt int) idem.Claim {
		return idem.Claim{Request: idem.Request{Key: idem.K("t", id), Owner: "o"}, Attempt: attempt}
	}
	if err := g.enter(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.note([]idem.Claim{claim("a", 1), claim("b", 1), claim("a", 1)})
	g.mu.Unlock()
	if g.leave(false) {
		t.Fatal("left with renewals pending")
	}
	tests := map[string]struct {
		claim idem.Claim
		want  bool
	}{
		"noted":           {claim("a", 1), true},
		"another attempt": {claim("a", 2), false},
		"another key":     {claim("c", 1), false},
	}
	for name, tt := range tests {
		if got := g.keeps(fenceOf(tt.claim)); got != tt.want {
			t.Errorf("%s: kept %v, want %v", name, got, tt.want)
		}
	}
	if got := len(g.renewals()); got != 2 {
		t.Errorf("%d renewals, want 2", got)
	}
	g.drop(g.renewals()...)
	if !g.leave(false) || g.held {
		t.Fatal("not free after the renewals were written")
	}
	if err := g.enter(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.note([]idem.Claim{claim("a", 1)})
	g.mu.Unlock()
	if !g.leave(true) || g.held {
		t.Fatal("not left by force")
	}
}
