package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/idemkit/idem"
)

// Lock guards a route with a distributed lock: of requests with equal keys one runs at a time, each of them runs, and nothing is replayed. A request
// waits for the lock as long as the route's Wait says, and gets in_progress then. The lock is renewed while the handler works, at the longest for the
// route's Limit.
//
// The name and the key are the tenant's: no subject is needed, and none counts. The client's leaving does not cancel the work, but ends its wait. The handler's
// context ends, with idem.ErrClaimLost, idem.ErrLeaseExpired or idem.ErrHeldTooLong as its cause, when the lock is lost; the answer is the handler's
// then, too. The lock alone does not keep a holder from writing that was stopped for longer than its lease. The fence does: write with LockFrom's number,
// where a write with a higher one was seen write nothing, and say so:
//
//	held := web.LockFrom(r.Context())
//	if stock, err = store.Add(ctx, sku, delta, held.Fence); errors.Is(err, errFenced) {
//		guard.Refuse(w, r, web.ClaimLost, 0)
//		return
//	}
//
// It needs Config.Store, and answers store_unavailable while that, or a Ledger that is to draw the fence's number, is away. It panics where the options contradict
// each other or the Config.
func (g *Guard) Lock(name string, key KeyFunc, options ...Option) func(http.Handler) http.Handler {
	rt := g.keyed(name, key, options)
	if g.config.Store == nil {
		panic("web: route " + name + ": locks need Config.Store")
	}
	rt.resultless = true
	return rt.check().middleware((*submission).locked)
}

type heldKey struct{}

// LockFrom returns the lock that a handler behind Guard.Lock runs under: its Fence, and the Record that the ledger has of the route's name and key. Nil elsewhere.
// The guard releases it.
func LockFrom(ctx context.Context) *idem.Held {
	held, _ := ctx.Value(heldKey{}).(*idem.Held)
	return held
}

func (s *submission) locked(next http.Handler) {
	key, failure := s.tenantKey()
	if failure != nil {
		s.refuse(failure)
		return
	}
	begun := time.Now()
	client := s.r.Context()
	detached, end := context.WithCancel(context.WithoutCancel(client))
	defer end()
	attached := context.AfterFunc(client, end)
	ctx, held, err := idem.Lock(detached, s.config.Store, key, idem.LockOptions{
		Lease: s.lease, Wait: s.wait, Longest: s.limit, Ledger: s.config.Ledger,
	})
	if !attached() { // the client left while it waited: nobody works for it
		if held != nil {
			s.unreleased(held.Release(detached))
		}
		err = client.Err()
	}
	if err != nil {
		s.answered(begun, "", err)
		s.refuseFor(idem.Reply{}, err)
		return
	}
	rec := newRecorder(s.w, s.responseLimit)
	s.answered(begun, s.underLock(context.WithValue(ctx, heldKey{}, held), rec, next), nil)
	_ = rec.finish() // a client that left is nobody's error
}

// underLock releases the lock before the answer leaves: the next request may follow at once, without waiting.
func (s *submission) underLock(ctx context.Context, rec *recorder, next http.Handler) idem.State {
	defer func() {
		lost := context.Cause(ctx)
		err := LockFrom(ctx).Release(ctx)
		if lost != nil {
			s.observe(ctx, idem.Event{Kind: idem.ClaimLost, Type: s.businessType, Err: lost})
			return
		}
		s.unreleased(err)
	}()
	return s.attend(ctx, rec, next)
}

// unreleased tells the observer of a lock, or a window, that could not be given free.
func (s *submission) unreleased(err error) {
	switch {
	case err == nil:
	case errors.Is(err, idem.ErrClaimLost):
		s.observe(s.r.Context(), idem.Event{Kind: idem.ClaimLost, Type: s.businessType, Err: err})
	default:
		s.observe(s.r.Context(), idem.Event{Kind: idem.ReleaseFailed, Type: s.businessType, Err: err})
	}
}
