package idemtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idemkit/idem/idemtest"
	"github.com/idemkit/idem/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type counter struct{ runs atomic.Int32 }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.runs.Add(1)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.Copy(w, r.Body)
}

func order() *http.Request {
	return httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("item=tea"))
}

func send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// answered checks status and code; the code is that of a refusal, "replay", or empty.
func answered(t *testing.T, rec *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var problem struct{ Code string }
	_ = json.Unmarshal(rec.Body.Bytes(), &problem)
	if rec.Header().Get("Idempotent-Replayed") == "true" {
		problem.Code = "replay"
	}
	if rec.Code != status || problem.Code != code {
		t.Fatalf("answered %d %q %s, want %d %q", rec.Code, problem.Code, rec.Body, status, code)
	}
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	subject := func(c *web.Config) { c.Subject = func(r *http.Request) string { return r.Header.Get("X-User") } }
	for name, c := range map[string]struct {
		change    []func(*web.Config)
		user      string
		authorize func(g *idemtest.Guard, r *http.Request) *http.Request
		options   []web.Option
	}{
		"header":           {authorize: byHeader},
		"form field":       {authorize: func(g *idemtest.Guard, r *http.Request) *http.Request { return g.AuthorizeForm(r, "order.create") }},
		"a user":           {change: []func(*web.Config){subject}, user: "ann", authorize: byHeader},
		"behind TLS":       {change: []func(*web.Config){func(c *web.Config) { c.TLS = true }}, authorize: byHeader},
		"store alone":      {change: []func(*web.Config){func(c *web.Config) { c.Ledger = nil }}, authorize: byHeader},
		"ledger alone":     {change: []func(*web.Config){func(c *web.Config) { c.Store = nil }}, authorize: byHeader},
		"same transaction": {authorize: byHeader, options: []web.Option{web.SameTx()}},
		"cross-site, allowed": {
			change: []func(*web.Config){func(c *web.Config) { c.Origins = []string{"https://a.example"} }},
			authorize: func(g *idemtest.Guard, r *http.Request) *http.Request {
				r.Header.Set("Origin", "https://a.example")
				return byHeader(g, r)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := idemtest.New(t, c.change...)
			h := &counter{}
			guarded := g.Token("order.create", c.options...)(h)
			original := order()
			original.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			original.Header.Set("X-User", c.user)
			r := c.authorize(g, original)
			first := send(guarded, r)
			answered(t, first, 201, "")
			if !strings.HasSuffix(first.Body.String(), "item=tea") {
				t.Errorf("the handler read %q", first.Body)
			}
			answered(t, send(guarded, idemtest.Again(r)), 201, "replay")
			answered(t, send(guarded, c.authorize(g, original)), 201, "") // another intention
			if n := h.runs.Load(); n != 2 {
				t.Errorf("ran %d times", n)
			}
		})
	}
}

func byHeader(g *idemtest.Guard, r *http.Request) *http.Request {
	return g.Authorize(r, "order.create")
}

func TestClockAndForgetting(t *testing.T) {
	t.Parallel()
	t.Run("a token expires, and is renewed", func(t *testing.T) {
		t.Parallel()
		g := idemtest.New(t)
		guarded := g.Token("order.create")(&counter{})
		r := g.Authorize(order(), "order.create")
		g.Advance(31 * time.Minute)
		rec := send(guarded, r)
		answered(t, rec, 409, "token_expired")
		again := g.AuthorizeAgain(idemtest.Again(r), "order.create", rec.Header().Get("Idempotent-Request-Id"))
		answered(t, send(guarded, again), 201, "")
	})
	t.Run("a result is forgotten", func(t *testing.T) {
		t.Parallel()
		g := idemtest.New(t)
		guarded := g.Token("order.create")(&counter{})
		r := g.Authorize(order(), "order.create")
		answered(t, send(guarded, r), 201, "")
		g.Settle()
		g.Advance(25 * time.Hour)
		answered(t, send(guarded, idemtest.Again(r)), 409, "already_done")
	})
	t.Run("the store forgets", func(t *testing.T) {
		t.Parallel()
		g := idemtest.New(t)
		guarded := g.Token("order.create")(&counter{})
		r := g.Authorize(order(), "order.create")
		answered(t, send(guarded, r), 201, "")
		g.Settle()
		g.Forget()
		answered(t, send(guarded, idemtest.Again(r)), 201, "replay")
	})
	t.Run("the store forgets, no ledger", func(t *testing.T) {
		t.Parallel()
		g := idemtest.New(t, func(c *web.Config) { c.Ledger = nil })
		guarded := g.Token("order.create")(&counter{})
		r := g.Authorize(order(), "order.create")
		answered(t, send(guarded, r), 201, "")
		g.Forget()
		answered(t, send(guarded, idemtest.Again(r)), 409, "token_used")
	})
}

// failing is a test that notes how it failed, instead of failing.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                        {}
func (f *failing) Cleanup(func())                 {}
func (f *failing) Fatalf(format string, _ ...any) { f.said = format; panic(f) }

func TestMistakesFailTheTest(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]func(f *failing){
		"configuration": func(f *failing) { idemtest.New(f, func(c *web.Config) { c.Prefix = "x" }) },
		"action":        func(f *failing) { idemtest.New(f).Authorize(order(), "a/b") },
		"request id":    func(f *failing) { idemtest.New(f).AuthorizeAgain(order(), "a", "short") },
		"a form that is none": func(f *failing) {
			r := order()
			r.Header.Set("Content-Type", "application/json")
			idemtest.New(f).AuthorizeForm(r, "a")
		},
		"JSON without its type": func(f *failing) {
			idemtest.New(f).AuthorizeForm(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"item":"tea"}`)), "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failing{}
			defer func() {
				if with := recover(); with != f || !strings.HasPrefix(f.said, "idemtest: ") {
					t.Errorf("panicked with %v, said %q", with, f.said)
				}
			}()
			mistake(f)
		})
	}
}

func TestAgainOfAForeignRequest(t *testing.T) {
	t.Parallel()
	if r := idemtest.Again(httptest.NewRequest(http.MethodPost, "/", nil)); r.Body == nil {
		t.Error("a request without a body has lost it")
	}
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "idemtest: Again: ") {
			t.Errorf("panicked with %q", text)
		}
	}()
	idemtest.Again(order())
}
