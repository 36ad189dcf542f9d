package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/redisstore"
)

// redislock#93, #94: the fencing number went back. Two processes take turns while Redis forgets everything and fails over. Who lost the lock is told so, and
// releases nobody else's.
func TestFenceGrowsOverFlushAndFailover(t *testing.T) {
	t.Parallel()
	sentinel, numbers := testkit.Sentinel(t), memstore.New(memstore.Options{})
	here, there := redisstore.New(sentinel.Client(t), redisstore.Options{}), redisstore.New(sentinel.Client(t), redisstore.Options{})
	lock := func(store *redisstore.Store) (held context.Context, lock *idem.Held) {
		t.Helper()
		testkit.Eventually(t, 2*recovery, "the lock is taken", func() (taken bool) {
			var err error
			held, lock, err = idem.Lock(t.Context(), store, idem.K("stock", "tea"), idem.LockOptions{Lease: 3 * time.Second, Wait: 5 * time.Second, Ledger: numbers})
			return err == nil
		})
		t.Cleanup(func() { _ = lock.Release(context.Background()) })
		return held, lock
	}
	lost := func(held context.Context, lock *idem.Held) {
		t.Helper()
		select {
		case <-held.Done():
		case <-time.After(recovery):
			t.Fatal("nobody was told that the lock is lost")
		}
		if cause := context.Cause(held); !errors.Is(cause, idem.ErrClaimLost) && !errors.Is(cause, idem.ErrLeaseExpired) {
			t.Errorf("cause %v", cause)
		}
	}
	first, one := lock(here)
	must(t, sentinel.Client(t).FlushAll(t.Context()).Err())
	_, two := lock(there)
	lost(first, one)
	if err := one.Release(t.Context()); !errors.Is(err, idem.ErrClaimLost) {
		t.Errorf("the first one's release: %v", err)
	}
	old := sentinel.KillPrimary(t)
	sentinel.AwaitFailover(t, old)
	_ = two.Release(t.Context()) // it may have been lost with the primary
	_, three := lock(here)
	must(t, sentinel.Client(t).FlushAll(t.Context()).Err())
	_, four := lock(there)
	if one.Fence >= two.Fence || two.Fence >= three.Fence || three.Fence >= four.Fence {
		t.Errorf("fences %d, %d, %d, %d", one.Fence, two.Fence, three.Fence, four.Fence)
	}
}
