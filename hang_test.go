package idem_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// frozen is a store that takes commands and does not answer, as a stopped process does. Every call ends with its context alone.
type frozen struct{ *memstore.Store }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (frozen) Claim(ctx context.Context, _ idem.Request) (idem.Answer, error) {
	return idem.Answer{}, hang(ctx)
}

func (frozen) Spend(ctx context.Context, _ string, _ idem.Request) (idem.Answer, error) {
	return idem.Answer{}, hang(ctx)
}

func (frozen) Lookup(ctx context.Context, _ idem.Request) (idem.Record, error) {
	return idem.Record{}, hang(ctx)
}

func (frozen) Restore(ctx context.Context, _ idem.Claim, _ idem.Result) error { return hang(ctx) }

func (frozen) ClaimTx(ctx context.Context, _ idem.Request, _ time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	return idem.Answer{}, nil, nil, hang(ctx)
}

func TestFrozenStores(t *testing.T) {
	t.Parallel()
	live := func() *memstore.Store { return memstore.New(memstore.Options{}) }
	for name, c := range map[string]struct {
		entrance idem.TokenStore
		ledger   idem.Ledger
		change   func(*idem.Call)
		want     error // nil: executed
	}{
		"entrance, beside a ledger":               {entrance: frozen{live()}, ledger: live()},
		"entrance, same transaction":              {entrance: frozen{live()}, ledger: live(), change: func(c *idem.Call) { c.SameTx = true }},
		"entrance, expired token":                 {entrance: frozen{live()}, ledger: live(), change: func(c *idem.Call) { c.LookOnly = true }, want: idem.ErrTokenExpired},
		"entrance alone":                          {entrance: frozen{live()}, want: idem.ErrUnavailable},
		"entrance alone, expired token":           {entrance: frozen{live()}, change: func(c *idem.Call) { c.LookOnly = true }, want: idem.ErrUnavailable},
		"ledger":                                  {entrance: live(), ledger: frozen{live()}, want: idem.ErrUnavailable},
		"ledger, expired token":                   {entrance: live(), ledger: frozen{live()}, change: func(c *idem.Call) { c.LookOnly = true }, want: idem.ErrUnavailable},
		"ledger, same transaction":                {entrance: live(), ledger: frozen{live()}, change: func(c *idem.Call) { c.SameTx = true }, want: idem.ErrUnavailable},
		"ledger, same transaction, short waiting": {ledger: frozen{live()}, change: func(c *idem.Call) { c.SameTx, c.Wait = true, 3*time.Second }, want: idem.ErrUnavailable},
		"both": {entrance: frozen{live()}, ledger: frozen{live()}, want: idem.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				engine, err := idem.NewEngine(idem.EngineConfig{Store: c.entrance, Ledger: c.ledger})
				if err != nil {
					t.Fatal(err)
				}
				key := idem.Key{Type: "order.create", Scope: "anna", ID: "request-1"}
				call := idem.Call{
					Request: idem.Request{Key: key, Subject: "anna", RequestID: "request-1", Lease: time.Minute, Retention: time.Hour},
					TokenID: "jti", Entrance: key, Wait: 10 * time.Second, Limit: time.Minute,
				}
				if c.change != nil {
					c.change(&call)
				}
				begun, work := time.Now(), succeed("receipt")
				if _, err := engine.Do(t.Context(), call, work.work); !errors.Is(err, c.want) || (c.want == nil) != (work.runs.Load() == 1) {
					t.Errorf("%v after %d runs, want %v", err, work.runs.Load(), c.want)
				}
				if took := time.Since(begun); took > 15*time.Second {
					t.Errorf("it took %v", took)
				}
				settled, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := engine.Drain(settled); err != nil {
					t.Errorf("drain: %v", err)
				}
			})
		})
	}
}

// deaf is an entrance that hangs where it is to be told something.
type deaf struct {
	*memstore.Store
	told atomic.Int64
}

func (d *deaf) Restore(ctx context.Context, _ idem.Claim, _ idem.Result) error {
	d.told.Add(1)
	return hang(ctx)
}

// What is to be told to an entrance that hangs does not pile up without end, and what is left out is answered all the same.
func TestRepairsDoNotPileUp(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		const calls, most = 1500, 1000
		r, store := newRig(t, both), &deaf{Store: memstore.New(memstore.Options{Forgetful: true})}
		var left atomic.Int64
		engine, err := idem.NewEngine(idem.EngineConfig{Store: store, Ledger: r.ledger, Observe: func(_ context.Context, e idem.Event) {
			if e.Kind == idem.EntranceFailed {
				left.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		work := succeed("receipt")
		for i := range calls {
			call := noWait(r.order(t, strconv.Itoa(i)))
			for _, replayed := range []bool{false, true} {
				if reply, err := engine.Do(t.Context(), call, work.work); err != nil || reply.Replayed != replayed {
					t.Fatalf("call %d: %+v, %v", i, reply, err)
				}
			}
		}
		synctest.Wait()
		if told := store.told.Load(); told != most || left.Load() != 2*calls-most || work.runs.Load() != calls {
			t.Errorf("%d under way, %d left out, %d runs", told, left.Load(), work.runs.Load())
		}
		pass(time.Minute)
		drain(t, engine)
	})
}
