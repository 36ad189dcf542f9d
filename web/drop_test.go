package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// exporting guards a key that is dropped when its work is done.
func (f *fixture) exporting(options ...web.Option) func(text string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	guarded := f.guard.Key("export", web.JSONKey("report"), append(options, web.Anonymous(), web.DropWhenDone())...)(f.handler)
	return func(text string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		return f.do(guarded, keyed("application/json", text, change...))
	}
}

func TestDropWhenDone(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store"} {
		for name, c := range map[string]struct {
			then    http.HandlerFunc
			code    int
			second  string
			attempt int // of the second
		}{
			"success":                   {code: 201, second: `{"report":1}`, attempt: 1},
			"redirect":                  {then: status(303), code: 303, second: `{"report":1}`, attempt: 1},
			"success, another payload":  {code: 201, second: `{"report":1,"x":2}`, attempt: 1},
			"failure":                   {then: status(500), code: 500, second: `{"report":1}`, attempt: 2},
			"rejected":                  {then: func(_ http.ResponseWriter, r *http.Request) { web.Reject(r.Context()) }, code: 200, second: `{"report":1}`, attempt: 2},
			"outcome unknown, the same": {then: unknown, code: 504, second: `{"report":1}`, attempt: 2},
		} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), byUser)
				export := f.exporting()
				f.handler.then = c.then
				executed(t, export(`{"report":1}`, as("ann")), c.code)
				f.handler.then = nil
				executed(t, export(c.second, as("ann")), 201)
				if got := f.handler.attempt.Load(); int(got) != c.attempt {
					t.Errorf("attempt %d, want %d", got, c.attempt)
				}
				executed(t, export(`{"report":1}`, as("bob")), 201) // nobody has it
				if n := f.ledger.all(); n != 0 {
					t.Errorf("%d calls of the ledger", n)
				}
			})
		}
	}
}

// The key guards while the work runs: nobody waits for a result that there will not be.
func TestDropWhenDoneWhileRunning(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handler = held()
		export := f.exporting(web.Wait(time.Hour))
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- export(`{"report":1}`) }()
		<-f.handler.started
		pass(25 * time.Second) // longer than the lease, which is all that the record is kept for
		begun := time.Now()
		refused(t, export(`{"report":1}`), 409, web.InProgress)
		refused(t, export(`{"report":1,"x":2}`), 422, web.PayloadMismatch)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		close(f.handler.release)
		executed(t, <-first, 201)
		executed(t, export(`{"report":1}`), 201)
	})
}

// Where it cannot be dropped the key falls by itself.
func TestDropFails(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		var seen []idem.EventKind
		f := newFixture(t, func(c *web.Config) {
			c.Observe = func(_ context.Context, e idem.Event) { seen = append(seen, e.Kind) }
		})
		export := f.exporting()
		f.store.setFault("Drop", errAway)
		executed(t, export(`{"report":1}`), 201)
		f.store.setFault("Drop", nil)
		if p := refused(t, export(`{"report":1}`), 409, web.AlreadyDone); p.OriginalStatus != 201 {
			t.Errorf("problem %+v", p)
		}
		pass(idem.DefaultLease)
		executed(t, export(`{"report":1}`), 201)
		if len(seen) < 2 || seen[1] != idem.ReleaseFailed {
			t.Errorf("observed %v", seen)
		}
		f.store.setAway(true)
		refused(t, export(`{"report":1}`), 503, web.StoreUnavailable)
	})
}
