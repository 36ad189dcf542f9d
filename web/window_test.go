package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

const payment = `{"orderNo":"o-1","paymentChannel":"card","amount":5}`

// paying sends payments through a window of ten seconds.
func (f *fixture) paying(options ...web.Option) func(text string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	guarded := f.guard.Window("payment", 10*time.Second, web.JSONKey("orderNo", "paymentChannel"), options...)(f.handler)
	return func(text string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		return f.do(guarded, keyed("application/json", text, change...))
	}
}

// inWindow checks the refusal of a duplicate.
func inWindow(t *testing.T, rec *httptest.ResponseRecorder, left int) {
	t.Helper()
	p := refused(t, rec, 429, web.DuplicateInWindow)
	if p.RetryAfter != left || rec.Header().Get("Retry-After") != "" {
		t.Errorf("%d seconds left, Retry-After %q, want %d and none", p.RetryAfter, rec.Header().Get("Retry-After"), left)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second string
		change []func(*http.Request)
		own    bool // it is another request
	}{
		"the same":                    {second: payment},
		"another amount":              {second: `{"orderNo":"o-1","paymentChannel":"card","amount":6}`},
		"another order":               {second: `{"orderNo":"o-2","paymentChannel":"card"}`, own: true},
		"another channel":             {second: `{"orderNo":"o-1","paymentChannel":"cash"}`, own: true},
		"a moved border":              {second: `{"orderNo":"o-1c","paymentChannel":"ard"}`, own: true},
		"another caller":              {second: payment, change: []func(*http.Request){as("bob")}},
		"nobody":                      {second: payment, change: []func(*http.Request){func(r *http.Request) { r.Header.Del("X-User") }}},
		"another tenant":              {second: payment, change: []func(*http.Request){header("X-Shop", "2")}, own: true},
		"another path, the same name": {second: payment, change: []func(*http.Request){func(r *http.Request) { r.URL.Path = "/other" }}},
	} {
		for _, stores := range []string{"both", "store"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T) {
					f := newFixture(t, only(stores), byUser, func(c *web.Config) { c.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") } })
					pay := f.paying()
					executed(t, pay(payment, as("ann")), 201)
					pass(3500 * time.Millisecond)
					second := pay(c.second, append([]func(*http.Request){as("ann")}, c.change...)...)
					if c.own {
						executed(t, second, 201)
						return
					}
					inWindow(t, second, 7)
					pass(6499 * time.Millisecond) // the refusal did not prolong it
					inWindow(t, pay(payment), 1)
					pass(time.Millisecond)
					executed(t, pay(payment), 201)
					inWindow(t, pay(payment), 10)
					f.handler.ran(t, 2)
					if n := f.ledger.all(); n != 0 {
						t.Errorf("%d calls of the ledger", n)
					}
				})
			})
		}
	}
}

// The handler finds the body that the key was read from.
func TestWindowHandsTheBodyOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	large := `{"orderNo":"o-1","paymentChannel":"card","note":"` + strings.Repeat("x", 2<<20) + `"}` // beyond what stays in memory
	f.handler.then = func(_ http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != large {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	executed(t, f.paying()(large), 200)
}

// When a window opens again.
func TestReopenOnFailure(t *testing.T) {
	t.Parallel()
	then := func(code int, overrule func(context.Context)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if overrule != nil {
				overrule(r.Context())
			}
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		then  http.HandlerFunc
		code  int // 0: a panic
		opens bool
	}{
		"success":               {then: then(201, nil), code: 201},
		"redirect":              {then: then(303, nil), code: 303},
		"client's error":        {then: then(422, nil), code: 422, opens: true},
		"server's error":        {then: then(500, nil), code: 500, opens: true},
		"rejected":              {then: then(200, web.Reject), code: 200, opens: true},
		"outcome unknown":       {then: then(504, web.Unknown), code: 504},
		"a panic":               {then: func(http.ResponseWriter, *http.Request) { panic("boom") }, opens: true},
		"a panic, bytes before": {then: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x"); panic("boom") }, opens: true},
	} {
		for _, reopen := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				var options []web.Option
				if reopen {
					options = append(options, web.ReopenOnFailure())
				}
				f.handler.then = c.then
				guarded := f.guard.Window("payment", time.Minute, web.JSONKey("no"), options...)(f.handler)
				rec, with := panics(guarded, keyed("application/json", `{"no":1}`))
				if c.code != 0 && (with != nil || rec.Code != c.code) || c.code == 0 && with != "boom" {
					t.Fatalf("answered %d, panicked with %v", rec.Code, with)
				}
				f.handler.then = nil
				second := f.do(guarded, keyed("application/json", `{"no":1}`))
				if reopen && c.opens {
					executed(t, second, 201)
					return
				}
				refused(t, second, 429, web.DuplicateInWindow)
			})
		}
	}
}

// The window is open before the failure's answer arrives, large as it may be: who sends again at once is let in.
func TestReopenedBeforeTheAnswerLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
	}
	seen := false
	f.store.onAfter("Release", func(context.Context) error { seen = true; return nil })
	guarded := f.guard.Window("payment", time.Minute, web.JSONKey("no"), web.ReopenOnFailure())(f.handler)
	guarded.ServeHTTP(onHeader{httptest.NewRecorder(), func() {
		if !seen {
			t.Error("the answer left before the window was open")
		}
	}}, keyed("application/json", `{"no":1}`))
}

// onHeader is told when an answer leaves.
type onHeader struct {
	http.ResponseWriter
	leaves func()
}

func (w onHeader) WriteHeader(status int) { w.leaves(); w.ResponseWriter.WriteHeader(status) }
