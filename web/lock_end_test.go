package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// However the handler ends, the next one is let in.
func TestLockIsReleased(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]http.HandlerFunc{
		"success": nil, "failure": status(500), "rejected": func(_ http.ResponseWriter, r *http.Request) { web.Reject(r.Context()) },
		"a panic": func(http.ResponseWriter, *http.Request) { panic("boom") },
		"an end":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"released by itself": func(_ http.ResponseWriter, r *http.Request) {
			_ = web.LockFrom(r.Context()).Release(r.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.handler.then = then
			guarded := f.guard.Lock("stock", web.JSONKey("sku"), web.Wait(0))(f.handler)
			panics(guarded, keyed("application/json", booking))
			f.handler.then = nil
			executed(t, f.do(guarded, keyed("application/json", booking)), 201)
		})
	}
}

// The client's leaving does not cancel the work, and ends the wait.
func TestClientLeavesALock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handler = held()
		f.handler.then = func(w http.ResponseWriter, r *http.Request) {
			if err := r.Context().Err(); err != nil {
				t.Errorf("the work's context has ended: %v", err)
			}
			w.WriteHeader(http.StatusCreated)
		}
		add := f.stocking(web.Wait(time.Hour))
		leaving := func() (context.CancelFunc, chan *httptest.ResponseRecorder) {
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan *httptest.ResponseRecorder)
			go func() { done <- add(func(r *http.Request) { *r = *r.WithContext(ctx) }) }()
			return leave, done
		}
		leaveFirst, first := leaving()
		<-f.handler.started
		leaveSecond, second := leaving()
		pass(time.Second)
		leaveFirst()
		leaveSecond()
		if rec := <-second; rec.Code < 400 {
			t.Errorf("a client that left was told %d", rec.Code)
		}
		pass(25 * time.Second) // renewed, although nobody waits for it
		close(f.handler.release)
		executed(t, <-first, 201)
		f.handler.ran(t, 1)
	})
	t.Run("just as it gets it", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		add := f.stocking(web.Wait(0))
		ctx, leave := context.WithCancel(t.Context())
		f.store.onAfter("Claim", func(context.Context) error { leave(); return nil })
		add(func(r *http.Request) { *r = *r.WithContext(ctx) })
		f.store.onAfter("Claim", nil)
		f.handler.ran(t, 0)
		executed(t, add(), 201)
	})
}
