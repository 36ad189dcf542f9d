package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

func TestWindowRefusals(t *testing.T) {
	t.Parallel()
	byPath := web.Join(web.JSONKey("orderNo"), web.PathKey("shop"), web.HeaderKey("X-Channel"))
	for name, c := range map[string]struct {
		key    web.KeyFunc
		text   string
		change func(*http.Request)
		status int
		code   string
		says   string
	}{
		"declared too large, cross-site": {text: payment, change: func(r *http.Request) { r.ContentLength = 11 << 20; r.Header.Set("Sec-Fetch-Site", "cross-site") }, status: 413, code: web.BodyTooLarge},
		"cross-site, too large":          {text: strings.Repeat(" ", 11<<20), change: func(r *http.Request) { r.ContentLength = -1; r.Header.Set("Sec-Fetch-Site", "cross-site") }, status: 403, code: web.CrossOrigin},
		"too large, no key":              {text: strings.Repeat(" ", 11<<20), change: func(r *http.Request) { r.ContentLength = -1 }, status: 413, code: web.BodyTooLarge},
		"not JSON":                       {text: "orderNo=1", status: 400, code: web.KeyInvalid, says: "JSON"},
		"a part missing":                 {text: `{"orderNo":"1"}`, status: 400, code: web.KeyMissing, says: `"paymentChannel"`},
		"a part null":                    {text: `{"orderNo":"1","paymentChannel":null}`, status: 400, code: web.KeyInvalid, says: `"paymentChannel"`},
		"joined, first missing":          {key: byPath, text: `{}`, change: all(path("shop", "s"), header("X-Channel", "c")), status: 400, code: web.KeyMissing, says: `"orderNo"`},
		"joined, second missing":         {key: byPath, text: payment, change: header("X-Channel", "c"), status: 400, code: web.KeyMissing, says: `path parameter "shop"`},
		"joined, third missing":          {key: byPath, text: payment, change: path("shop", "s"), status: 400, code: web.KeyMissing, says: "X-Channel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			key := c.key
			if name[0] != 'j' {
				key = web.JSONKey("orderNo", "paymentChannel")
			}
			r := keyed("application/json", c.text)
			if c.change != nil {
				c.change(r)
			}
			for kind, guarded := range map[string]http.Handler{
				"window": f.guard.Window("payment", time.Minute, key)(f.handler), "lock": f.guard.Lock("payment", key)(f.handler),
			} {
				again := r.Clone(t.Context())
				body(c.text)(again)
				again.ContentLength = r.ContentLength
				if p := refused(t, f.do(guarded, again), c.status, c.code); !strings.Contains(p.Detail, c.says) {
					t.Errorf("%s: detail %q, want %q", kind, p.Detail, c.says)
				}
			}
			f.handler.ran(t, 0)
			if n := f.store.all(); n != 0 {
				t.Errorf("%d calls of the store", n)
			}
		})
	}
}

func path(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.SetPathValue(name, value) }
}

func all(changes ...func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		for _, change := range changes {
			change(r)
		}
	}
}

func TestWindowWithTheStoreAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(f *fixture)
		code  int // of the second; 0: let in
	}{
		"away":           {fault: func(f *fixture) { f.store.setAway(true) }},
		"newer format":   {fault: func(f *fixture) { f.store.setFault("Claim", idem.ErrFormat) }},
		"the reply lost": {fault: func(f *fixture) { f.store.onAfter("Claim", lose(errAway)) }, code: 429}, // nobody knows that it is ours
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			pay := f.paying(web.ReopenOnFailure())
			c.fault(f)
			if p := refused(t, pay(payment), 503, web.StoreUnavailable); p.RetryAfter < 1 || strings.Contains(p.Detail, "10.1.2.3") {
				t.Errorf("problem %+v", p)
			}
			f.handler.ran(t, 0)
			f.store.setAway(false)
			f.store.setFault("Claim", nil)
			f.store.onAfter("Claim", nil)
			if rec := pay(payment); c.code != 0 && rec.Code != c.code || c.code == 0 && rec.Code != 201 {
				t.Errorf("then %d", rec.Code)
			}
		})
	}
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
			f.store.setAway(true)
			w.WriteHeader(http.StatusInternalServerError)
		}
		pay := f.paying(web.ReopenOnFailure())
		executed(t, pay(payment), 500) // the answer is the handler's; the window stays closed
		f.store.setAway(false)
		refused(t, pay(payment), 429, web.DuplicateInWindow)
	})
}

// A window that is over by the end of its work is somebody else's: it is not opened under them.
func TestReopeningComesTooLate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handler = held()
		f.handler.then = status(500)
		pay := f.paying(web.ReopenOnFailure())
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- pay(payment) }()
		<-f.handler.started
		pass(11 * time.Second)
		second := make(chan *httptest.ResponseRecorder)
		go func() { second <- pay(payment) }()
		<-f.handler.started
		f.handler.release <- struct{}{}
		executed(t, <-first, 500)
		inWindow(t, pay(payment), 10)
		f.handler.release <- struct{}{}
		executed(t, <-second, 500)
	})
}

// A hundred at once: one runs. The client's leaving does not cancel it, and the route's limit does.
func TestWindowUnderLoad(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handler.then = func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusCreated)
		}
		pay := f.paying(web.Limit(2 * time.Second))
		ctx, leave := context.WithCancel(t.Context())
		leave()
		begun, done := time.Now(), 0
		for _, rec := range racers(100, func(int) *httptest.ResponseRecorder {
			return pay(payment, func(r *http.Request) { *r = *r.WithContext(ctx) })
		}) {
			if rec.Code == 201 {
				done++
			} else {
				inWindow(t, rec, 10)
			}
		}
		if done != 1 || time.Since(begun) != 2*time.Second {
			t.Errorf("%d ran, after %v", done, time.Since(begun))
		}
	})
}

// Reading passes, and so does nobody's message: the route says its own.
func TestWindowOptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	guarded := f.guard.Window("payment", time.Minute, web.JSONKey("no"), web.BodyLimit(10),
		web.Say(web.DuplicateInWindow, web.Message{Title: "Slow down", Detail: "You have just paid."}))(f.handler)
	for range 2 {
		executed(t, f.do(guarded, httptest.NewRequest(http.MethodGet, "/", nil)), 201)
	}
	executed(t, f.do(guarded, keyed("application/json", `{"no":1}`)), 201)
	if p := refused(t, f.do(guarded, keyed("application/json", `{"no":1}`)), 429, web.DuplicateInWindow); p.Title != "Slow down" || p.Detail != "You have just paid." {
		t.Errorf("problem %+v", p)
	}
	refused(t, f.do(guarded, keyed("application/json", `{"no": 123}`)), 413, web.BodyTooLarge)
	page := f.do(guarded, keyed("application/json", `{"no":1}`, header("Accept", "text/html")))
	if page.Code != 429 || !strings.Contains(page.Body.String(), "You have just paid.") || page.Header().Get("Retry-After") != "" {
		t.Errorf("page %d %v %s", page.Code, page.Header(), page.Body)
	}
}
