package idem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func sku(id string) idem.Key { return idem.K("stock", id) }

// forgetful is a store that renewals do not reach while it is cut off.
func forgetful() *entrance { return &entrance{Store: memstore.New(memstore.Options{Forgetful: true})} }

func take(t testing.TB, store idem.Store, o idem.LockOptions) (context.Context, *idem.Held) {
	t.Helper()
	ctx, held, err := idem.Lock(t.Context(), store, sku("tea"), o)
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	t.Cleanup(func() { _ = held.Release(context.Background()) })
	return ctx, held
}

func cause(ctx context.Context, t testing.TB) error {
	t.Helper()
	await(t, ctx.Done(), "the lock's context to end")
	return context.Cause(ctx)
}

func TestLockKeepsWorkersApart(t *testing.T) {
	t.Parallel()
	store := forgetful()
	var inside, most, total atomic.Int64
	var workers sync.WaitGroup
	for range 200 {
		workers.Go(func() {
			_, held, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			total.Add(1)
			inside.Add(-1)
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if most.Load() != 1 || total.Load() != 200 {
		t.Fatalf("%d at once, %d in all", most.Load(), total.Load())
	}
}

func TestTryLockDoesNotWait(t *testing.T) {
	t.Parallel()
	store := forgetful()
	_, held := take(t, store, idem.LockOptions{})
	if _, _, err := idem.TryLock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: time.Hour}); !errors.Is(err, idem.ErrInProgress) {
		t.Fatalf("while it is held: %v", err)
	}
	if _, other, err := idem.TryLock(t.Context(), store, sku("milk"), idem.LockOptions{}); err != nil || other.Release(t.Context()) != nil {
		t.Fatalf("another key: %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, again := take(t, store, idem.LockOptions{})
	if again.Fence <= held.Fence {
		t.Fatalf("fence %d after %d", again.Fence, held.Fence)
	}
}

func TestLockWaits(t *testing.T) {
	t.Parallel()
	store := forgetful()
	_, held := take(t, store, idem.LockOptions{})
	got := make(chan error, 1)
	go func() {
		_, next, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: time.Minute})
		if err == nil {
			err = next.Release(context.Background())
		}
		got <- err
	}()
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := await(t, got, "the one that waits"); err != nil {
		t.Fatal(err)
	}
	_, _ = take(t, store, idem.LockOptions{})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, _, err := idem.Lock(ctx, store, sku("tea"), idem.LockOptions{Wait: time.Minute})
		got <- err
	}()
	leave()
	if err := await(t, got, "the one that left"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A lock that is lost, taken again and held for long is renewed like the first (redisson#3712).
func TestLockIsRenewed(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		store := forgetful()
		_, first := take(t, store, idem.LockOptions{Lease: 300 * time.Millisecond})
		store.Forget()
		ctx, again := take(t, store, idem.LockOptions{Lease: 300 * time.Millisecond})
		if err := first.Release(t.Context()); !errors.Is(err, idem.ErrClaimLost) {
			t.Fatalf("the forgotten one released: %v", err)
		}
		_, _, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: time.Second})
		if !errors.Is(err, idem.ErrInProgress) || ctx.Err() != nil {
			t.Fatalf("after three leases: %v, the holder's context %v", err, ctx.Err())
		}
		if err := again.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLockThatIsLostSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options idem.LockOptions
		harm    func(*entrance)
		want    error
		after   time.Duration
	}{
		"forgotten":         {idem.LockOptions{Lease: 3 * time.Second}, func(s *entrance) { s.Forget() }, idem.ErrClaimLost, time.Second},
		"cut off":           {idem.LockOptions{Lease: 3 * time.Second}, func(s *entrance) { s.away.Store(true) }, idem.ErrLeaseExpired, 3 * time.Second},
		"held for too long": {idem.LockOptions{Longest: 5 * time.Second}, func(*entrance) {}, idem.ErrHeldTooLong, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubbled(t, func(t *testing.T) {
				store := forgetful()
				ctx, _ := take(t, store, c.options)
				begun := time.Now()
				c.harm(store)
				if got := cause(ctx, t); !errors.Is(got, c.want) || time.Since(begun) != c.after {
					t.Fatalf("cause %v after %v, want %v after %v", got, time.Since(begun), c.want, c.after)
				}
			})
		})
	}
}

// After its longest time a lock is not renewed any more, whatever its holder does, and falls to the next.
func TestLockOfAHungHolderEnds(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		store := forgetful()
		_, hung := take(t, store, idem.LockOptions{Lease: 100 * time.Millisecond, Longest: 50 * time.Millisecond})
		_, next, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := hung.Release(t.Context()); !errors.Is(err, idem.ErrClaimLost) {
			t.Fatalf("the hung one released another's lock: %v", err)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLockOutageShorterThanTheLease(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		store := forgetful()
		ctx, held := take(t, store, idem.LockOptions{Lease: 600 * time.Millisecond})
		store.away.Store(true)
		pass(300 * time.Millisecond)
		store.away.Store(false)
		if _, _, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Wait: time.Second}); !errors.Is(err, idem.ErrInProgress) || ctx.Err() != nil {
			t.Fatalf("%v, the holder's context %v", err, ctx.Err())
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// The fencing number grows although the store forgets, and the ledger is read after the lock is taken.
func TestLockWithALedger(t *testing.T) {
	t.Parallel()
	store, ledger := forgetful(), memstore.New(memstore.Options{})
	o := idem.LockOptions{Ledger: ledger}
	_, first := take(t, store, o)
	store.Forget()
	if _, err := idem.Once(t.Context(), ledger, sku("tea"), func(context.Context) (int, error) { return 7, nil }); err != nil {
		t.Fatal(err)
	}
	_, second := take(t, store, o)
	if second.Fence <= first.Fence || first.Record != nil {
		t.Fatalf("fence %d after %d, record %v", second.Fence, first.Fence, first.Record)
	}
	if second.Record == nil || second.Record.State != idem.Succeeded || string(second.Record.Result.Body) != "7" {
		t.Fatalf("record %+v", second.Record)
	}
}

func TestLockWhatCannotBeDecided(t *testing.T) {
	t.Parallel()
	store := forgetful()
	if _, _, err := idem.Lock(t.Context(), store, idem.Key{}, idem.LockOptions{}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
	if _, _, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Lease: -time.Second}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("negative lease: %v", err)
	}
	if _, _, err := idem.Lock(t.Context(), silent{store}, sku("tea"), idem.LockOptions{}); !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("store away: %v", err)
	}
}

// silent does not answer claims.
type silent struct{ idem.Store }

func (silent) Claim(context.Context, idem.Request) (idem.Answer, error) {
	return idem.Answer{}, errAway
}
