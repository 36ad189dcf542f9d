package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// LockOptions say how a lock is taken and held. The zero value is usable.
type LockOptions struct {
	// Lease is how long the lock stands without renewal; it is renewed every third of it. 0: DefaultLease.
	Lease time.Duration
	// Wait is how long to try where somebody else holds it. 0: not at all.
	Wait time.Duration
	// Longest is the longest time that it is held, renewed or not, so that a holder that hangs does not keep it for ever. 0: DefaultLongest.
	Longest time.Duration
	// Ledger draws the fencing numbers, and is asked again after the lock is taken; see Record. Nil: the number grows for as long as the store
	// remembers the lock.
	Ledger Ledger
}

// DefaultLongest is the longest time that a lock is held where LockOptions name none.
const DefaultLongest = 5 * time.Minute

// lockRetention is how long a store remembers the number of a lock that nobody holds, where there is no ledger to draw it.
const lockRetention = DefaultRetention

// The pauses between two tries for a lock, before and after their growth; each is shortened at random by up to half.
const (
	minLockPause = 5 * time.Millisecond
	maxLockPause = 200 * time.Millisecond
)

// Held is a lock that is held: a claim without a result. It is safe for concurrent use.
type Held struct {
	// Fence grows with each holder of any lock of one ledger, and never goes back, whatever the store forgets. A write that carries it
	// must be refused where a higher one was seen: that, and not the lock, keeps a holder out that was stopped for longer than its lease.
	Fence int64
	// Record is what the ledger knows of the key, read after the lock was taken: the work may have been done meanwhile. Nil: nothing, or no ledger.
	Record *Record

	store  Store
	claim  Claim
	lease  *lease
	cancel context.CancelCauseFunc
}

// Lock takes the lock of a key. The context that it returns ends with ErrClaimLost or ErrLeaseExpired as its cause when the lock is lost, and with
// ErrHeldTooLong after the longest time. Release it in any case. It returns ErrInProgress where somebody else holds it after the waiting time, and
// ErrUnavailable where it cannot be decided.
//
// The lock keeps two workers apart for speed and order. Correctness is the fence's: see Held.Fence.
func Lock(ctx context.Context, store Store, key Key, o LockOptions) (context.Context, *Held, error) {
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Longest = cmp.Or(o.Longest, DefaultLongest)
	if store == nil || o.Longest < 0 {
		return ctx, nil, fmt.Errorf("%w: a lock needs a store, and a longest time that is not negative", ErrInvalid)
	}
	q := Request{Key: apart("lock", key), Owner: NewOwner(), Lease: o.Lease, Retention: o.Lease, Exclusive: true}
	if o.Ledger == nil {
		q.Retention = max(lockRetention, o.Lease)
	}
	claim, asked, err := takeLock(ctx, store, q, o.Wait)
	if err != nil {
		return ctx, nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, o.Longest, ErrHeldTooLong)
	locked, cancel := context.WithCancelCause(limited)
	held := &Held{store: store, claim: claim, Fence: int64(claim.Attempt)}
	held.cancel = func(cause error) { cancel(cause); stop() }
	held.lease = newRenewals(store.Extend).hold(claim, asked, cancel)
	context.AfterFunc(limited, held.lease.stop) // a holder that hangs is not renewed for ever
	err = held.consult(locked, o.Ledger, key)
	if lost := held.lost(ctx, locked); lost != nil {
		err = lost
	}
	if err != nil {
		_ = held.Release(ctx) // its lease ends it otherwise
		return ctx, nil, err
	}
	return locked, held, nil
}

// TryLock is Lock without waiting.
func TryLock(ctx context.Context, store Store, key Key, o LockOptions) (context.Context, *Held, error) {
	o.Wait = 0
	return Lock(ctx, store, key, o)
}

// takeLock tries until the lock is won or the waiting time is over. asked is when the winning try began: the lease is no younger.
func takeLock(ctx context.Context, store Store, q Request, wait time.Duration) (claim Claim, asked time.Time, err error) {
	deadline := time.Now().Add(wait)
	for pause := minLockPause; ; pause = min(2*pause, maxLockPause) {
		if ctx.Err() != nil {
			return claim, asked, ctx.Err()
		}
		bounded, cancel := whole(ctx, finishLimit)
		asked = time.Now()
		answer, err := store.Claim(bounded, q)
		cancel()
		switch {
		case err != nil:
			return claim, asked, unavailable(ctx, err)
		case answer.Outcome == Won:
			return answer.Claim, asked, nil
		case answer.Outcome != Busy:
			return claim, asked, fmt.Errorf("%w: the key of a lock has a record that is none: %v", ErrInvalid, answer.Outcome)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return claim, asked, ErrInProgress
		}
		timer := time.NewTimer(min(pause/2+rand.N(pause/2), left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return claim, asked, ctx.Err()
		case <-timer.C:
		}
	}
}

// consult draws the fencing number, and reads what the ledger knows by now.
func (h *Held) consult(ctx context.Context, ledger Ledger, key Key) error {
	if ledger == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	fence, err := ledger.Fence(bounded)
	if err != nil {
		return unavailable(ctx, err)
	}
	h.Fence = fence
	record, err := ledger.Lookup(bounded, Request{Key: key})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return unavailable(ctx, err)
	}
	h.Record = &record
	return nil
}

// lost says why a lock is not to be handed out although it was won: a number drawn after its end is higher than that of whoever has it by then.
// The own deadline decides, and not the timer, which may be late.
func (h *Held) lost(caller, locked context.Context) error {
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case locked.Err() != nil:
		return fmt.Errorf("%w: the lock was lost while the ledger was asked: %s", ErrUnavailable, context.Cause(locked).Error())
	case !h.lease.stands():
		return fmt.Errorf("%w: the lock was lost while the ledger was asked: %s", ErrUnavailable, ErrLeaseExpired.Error())
	}
	return nil
}

// Release gives the lock free, if it is still this holder's, and ends the context. ErrClaimLost: somebody else has it, or the store forgot it.
func (h *Held) Release(ctx context.Context) error {
	h.lease.stop()
	defer h.cancel(context.Canceled)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	return h.store.Release(bounded, h.claim, Failed, "")
}

// apart keeps the records of locks and windows from those of operations with the same key.
func apart(kind string, key Key) Key {
	key.Type = kind + "/" + key.Type
	return key
}
