package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/web"
)

const booking = `{"sku":"tea","delta":1}`

// stocking sends bookings through a lock on the sku.
func (f *fixture) stocking(options ...web.Option) func(change ...func(*http.Request)) *httptest.ResponseRecorder {
	guarded := f.guard.Lock("stock", web.JSONKey("sku"), options...)(f.handler)
	return func(change ...func(*http.Request)) *httptest.ResponseRecorder {
		return f.do(guarded, keyed("application/json", booking, change...))
	}
}

// lockKey is the key of the lock's own record.
var lockKey = idem.K("lock/stock", "tea")

// Two hundred at once, each reading, thinking and writing: not one is lost, and the fence grows.
func TestLockIsExact(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				stock, inside, fence := 0, 0, int64(0)
				f.handler.then = func(_ http.ResponseWriter, r *http.Request) {
					held := web.LockFrom(r.Context())
					if inside++; inside != 1 || held.Fence <= fence || held.Record != nil {
						t.Errorf("%d inside, fence %d after %d, record %v", inside, held.Fence, fence, held.Record)
					}
					fence = held.Fence
					read := stock
					pass(time.Millisecond)
					stock = read + 1
					inside--
				}
				add := f.stocking(web.Wait(time.Hour))
				for _, rec := range racers(200, func(int) *httptest.ResponseRecorder { return add() }) {
					executed(t, rec, 200)
				}
				if stock != 200 {
					t.Errorf("stock %d", stock)
				}
			})
		})
	}
}

func TestLockIsNotObtained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []web.Option
		waits   time.Duration
	}{
		"without waiting": {options: []web.Option{web.Wait(0)}},
		"after two":       {options: []web.Option{web.Wait(2 * time.Second)}, waits: 2 * time.Second},
		"by default":      {waits: idem.DefaultWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t)
				f.handler = held()
				add := f.stocking(c.options...)
				first := make(chan *httptest.ResponseRecorder)
				go func() { first <- add() }()
				<-f.handler.started
				begun := time.Now()
				rec := add()
				if p := refused(t, rec, 409, web.InProgress); p.RetryAfter < 1 || rec.Header().Get("Retry-After") == "" {
					t.Errorf("problem %+v", p)
				}
				if waited := time.Since(begun); waited != c.waits {
					t.Errorf("waited %v, want %v", waited, c.waits)
				}
				f.handler.release <- struct{}{}
				executed(t, <-first, 201)
				close(f.handler.release)
				executed(t, add(), 201)
			})
		})
	}
}

// Who shares a lock: everybody of the tenant with the same key.
func TestScopeOfLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second func(r *http.Request)
		own    bool
	}{
		"another caller": {second: as("bob")},
		"another tenant": {second: header("X-Shop", "2"), own: true},
		"another key":    {second: body(`{"sku":"coffee"}`), own: true},
		"another amount": {second: body(`{"sku":"tea","delta":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, byUser, func(c *web.Config) { c.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") } })
			f.handler = held()
			add := f.stocking(web.Wait(0))
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- add(as("ann")) }()
			<-f.handler.started
			if c.own {
				close(f.handler.release)
				executed(t, add(c.second), 201)
			} else {
				refused(t, add(c.second), 409, web.InProgress)
				close(f.handler.release)
			}
			executed(t, <-first, 201)
		})
	}
}

// A lost lock ends the handler's context with a cause, and the answer is the handler's.
func TestLockIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(f *fixture)
		after time.Duration
		cause error
	}{
		"the store forgot": {lose: func(f *fixture) { f.store.real.Forget() }, after: time.Second, cause: idem.ErrClaimLost},
		"somebody took it": {lose: func(f *fixture) {
			f.store.real.Lapse(lockKey)
			q := idem.Request{Key: lockKey, Owner: "another", Lease: time.Minute, Retention: time.Minute, Exclusive: true}
			if a, err := f.store.real.Claim(context.Background(), q); err != nil || a.Outcome != idem.Won {
				panic(fmt.Sprint(a.Outcome, err))
			}
		}, after: time.Second, cause: idem.ErrClaimLost},
		"the store is away": {lose: func(f *fixture) { f.store.setAway(true) }, after: 3 * time.Second, cause: idem.ErrLeaseExpired},
		"for a short while": {lose: func(f *fixture) { f.store.setAway(true); pass(2 * time.Second); f.store.setAway(false) }, after: 20 * time.Second, cause: idem.ErrHeldTooLong},
		"held for too long": {lose: func(*fixture) {}, after: 20 * time.Second, cause: idem.ErrHeldTooLong},
		"the store is stuck": {lose: func(f *fixture) {
			f.store.onBefore("Extend", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}, after: 3 * time.Second, cause: idem.ErrLeaseExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				var causes []error
				f := newFixture(t, func(config *web.Config) {
					config.Observe = func(_ context.Context, e idem.Event) {
						if e.Kind == idem.ClaimLost {
							causes = append(causes, e.Err)
						}
					}
				})
				f.handler.then = func(w http.ResponseWriter, r *http.Request) {
					begun := time.Now()
					c.lose(f)
					<-r.Context().Done()
					if cause := context.Cause(r.Context()); !errors.Is(cause, c.cause) || time.Since(begun) != c.after {
						t.Errorf("cause %v after %v, want %v after %v", cause, time.Since(begun), c.cause, c.after)
					}
					f.guard.Refuse(w, r, web.ClaimLost, 0) // as the fence would have it
				}
				add := f.stocking(web.Lease(3*time.Second), web.Limit(20*time.Second))
				refused(t, add(), 409, web.ClaimLost)
				if len(causes) != 1 || !errors.Is(causes[0], c.cause) {
					t.Errorf("observed %v", causes)
				}
			})
		})
	}
}

// A holder that was stopped for longer than its lease comes back: the fence, not the lock, keeps its write out.
func TestFenceRefusesALateWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handler.started = make(chan struct{}, 2)
		var highest atomic.Int64
		wake := make(chan struct{})
		f.handler.then = func(w http.ResponseWriter, r *http.Request) {
			fence := web.LockFrom(r.Context()).Fence
			if highest.Load() == 0 && f.handler.runs.Load() == 1 {
				<-wake
			}
			if fence < highest.Load() {
				f.guard.Refuse(w, r, web.ClaimLost, 0)
				return
			}
			highest.Store(fence)
		}
		add := f.stocking(web.Wait(0))
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- add() }()
		<-f.handler.started
		f.store.real.Lapse(lockKey)
		executed(t, add(), 200)
		close(wake)
		refused(t, <-first, 409, web.ClaimLost)
	})
}

func TestLockWithStoresAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault, mend func(f *fixture)
	}{
		"store":        {fault: func(f *fixture) { f.store.setAway(true) }, mend: func(f *fixture) { f.store.setAway(false) }},
		"ledger":       {fault: func(f *fixture) { f.ledger.setAway(true) }, mend: func(f *fixture) { f.ledger.setAway(false) }},
		"newer record": {fault: func(f *fixture) { f.ledger.setFault("Lookup", idem.ErrFormat) }, mend: func(f *fixture) { f.ledger.setFault("Lookup", nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			add := f.stocking(web.Wait(0))
			c.fault(f)
			refused(t, add(), 503, web.StoreUnavailable)
			f.handler.ran(t, 0)
			c.mend(f)
			executed(t, add(), 201) // what was taken was given back
		})
	}
}

// After taking the lock the ledger is asked again: the work may have been done meanwhile.
func TestLockShowsTheLedgersRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	complete(t, f.ledger.real, idem.K("stock", "tea"))
	f.handler.then = func(_ http.ResponseWriter, r *http.Request) {
		if record := web.LockFrom(r.Context()).Record; record == nil || record.State != idem.Succeeded {
			t.Errorf("record %+v", record)
		}
	}
	executed(t, f.stocking()(), 200)
	if web.LockFrom(t.Context()) != nil {
		t.Error("a lock where there is none")
	}
}

// complete makes a record that says that the operation is done.
func complete(t *testing.T, store *memstore.Store, key idem.Key) idem.Claim {
	t.Helper()
	answer, err := store.Claim(t.Context(), idem.Request{Key: key, Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour})
	if err != nil || answer.Outcome != idem.Won {
		t.Fatal(answer.Outcome, err)
	}
	if err := store.Complete(t.Context(), answer.Claim, idem.Result{Status: 201, Kept: true}); err != nil {
		t.Fatal(err)
	}
	return answer.Claim
}
