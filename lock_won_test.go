package idem_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// counting is a ledger that does something before it draws a number.
type counting struct {
	*memstore.Store
	before func()
}

func (c counting) Fence(ctx context.Context) (int64, error) {
	c.before()
	return c.Store.Fence(ctx)
}

// redsync#72: a lock said valid after its expiry. Its holder would also have the higher number, and shut out whoever holds the lock by then.
func TestLockIsNotHandedOutAfterItsEnd(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	for name, before := range map[string]func(store *entrance){
		"the lease ran out": func(s *entrance) { s.away.Store(true); pass(lease); s.away.Store(false) },
		"the store forgot":  func(s *entrance) { s.Forget(); pass(lease) },
		"held for too long": func(*entrance) { pass(9 * time.Second) },
		"the caller left":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubbled(t, func(t *testing.T) {
				store, numbers := forgetful(), memstore.New(memstore.Options{})
				caller, leave := context.WithCancel(t.Context())
				want := idem.ErrUnavailable
				act := func() { before(store) }
				if before == nil {
					act, want = leave, context.Canceled
				}
				o := idem.LockOptions{Lease: lease, Longest: 8 * time.Second, Ledger: counting{numbers, act}}
				_, held, err := idem.Lock(caller, store, sku("tea"), o)
				if !errors.Is(err, want) || held != nil || errors.Is(err, idem.ErrClaimLost) {
					t.Fatalf("lock %+v, %v; want %v", held, err, want)
				}
				pass(lease)
				_, next, err := idem.TryLock(t.Context(), store, sku("tea"), idem.LockOptions{Ledger: numbers})
				if err != nil || next.Release(t.Context()) != nil {
					t.Fatalf("the next one: %v", err)
				}
				leave()
			})
		})
	}
}

// A ledger that takes longer than the lease does not cost the lock: it is renewed from the beginning.
func TestLockIsRenewedWhileTheLedgerIsAsked(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		store := forgetful()
		slow := counting{memstore.New(memstore.Options{}), func() { pass(5 * time.Second) }}
		ctx, held, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{Lease: time.Second, Ledger: slow})
		if err != nil || ctx.Err() != nil {
			t.Fatalf("%v, %v", err, ctx)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLockForACallerWhoLeftIsNotTaken(t *testing.T) {
	t.Parallel()
	store := forgetful()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := idem.Lock(ctx, store, sku("tea"), idem.LockOptions{Wait: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	_, _ = take(t, store, idem.LockOptions{})
}

// swallowing is a store whose first renewals go to a link that is dead, and are not refused.
type swallowing struct {
	idem.Store
	swallow atomic.Int64
}

func (s *swallowing) Extend(ctx context.Context, claims []idem.Claim) ([]int, error) {
	if s.swallow.Add(-1) >= 0 {
		return nil, hang(ctx)
	}
	return s.Store.Extend(ctx, claims)
}

// A renewal that gets no answer at all leaves time for the next.
func TestRenewalThatHangsIsTriedAgain(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		store := &swallowing{Store: forgetful()}
		store.swallow.Store(1)
		ctx, held := take(t, store, idem.LockOptions{Lease: 15 * time.Second})
		pass(time.Minute)
		if ctx.Err() != nil {
			t.Fatalf("lost: %v", context.Cause(ctx))
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
