package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// What may not be offered: nothing that is not the kit's form, and no part of a form for the whole.
func TestNothingIsOffered(t *testing.T) {
	t.Parallel()
	big := "a=" + strings.Repeat("x", 70<<10) + "&b=1"
	for name, c := range map[string]struct {
		r      func(f *fixture) *http.Request
		status int
		code   string
	}{
		"JSON":                     {r: func(f *fixture) *http.Request { r := f.order(""); asBrowser(r); return r }, status: 400, code: web.TokenMissing},
		"other action":             {r: func(f *fixture) *http.Request { return f.typed("/orders", f.token("order.cancel").Token, "a=1") }, status: 403, code: web.TokenWrongAction},
		"cut off before the token": {r: func(f *fixture) *http.Request { return f.typed("/orders", "", big) }, status: 400, code: web.TokenMissing},
		"forged, and cut off":      {r: func(f *fixture) *http.Request { return f.typed("/orders", "forged", big) }, status: 403, code: web.TokenInvalid},
		"no token, another site's": {r: func(f *fixture) *http.Request {
			r := f.typed("/orders", "", "a=1")
			r.Header.Del("Sec-Fetch-Site")
			return r
		}, status: 400, code: web.TokenMissing},
		"cross-site": {r: func(f *fixture) *http.Request {
			r := f.typed("/orders", f.token("order.create").Token, "a=1")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			return r
		}, status: 403, code: web.CrossOrigin},
		"malformed": {r: func(f *fixture) *http.Request {
			r := f.typed("/orders", f.token("order.create").Token, "a=%zz&b=1")
			f.clock.advance(time.Hour)
			return r
		}, status: 409, code: web.TokenExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			guarded := f.orderForm(nil)
			if form := f.offered(f.do(guarded, c.r(f)), c.status, c.code); form != nil {
				t.Errorf("offered %+v", form)
			}
			f.handler.ran(t, 0)
		})
	}
}

// The offer goes where the form went, not to where a router has cut the path.
func TestOfferKeepsThePathAsSent(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/shop/orders?a=1":               "/shop/orders?a=1",
		"/shop//orders":                  "/shop//orders",
		"//evil.example/shop/orders":     "/.//evil.example/shop/orders",
		"http://example.com/shop/orders": "/shop/orders",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			guarded := f.orderForm(nil)
			strip := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cut := r.Clone(r.Context())
				cut.URL.Path = "/orders" // as http.StripPrefix does
				guarded.ServeHTTP(w, cut)
			})
			token := f.token("order.create").Token
			f.clock.advance(time.Hour)
			r := f.typed("/", token, "a=1")
			r.RequestURI = target
			r.URL, _ = url.ParseRequestURI(target)
			if form := f.offered(f.do(strip, r), 409, web.TokenExpired); form == nil || form.action != want {
				t.Errorf("offered %+v, want %s", form, want)
			}
		})
	}
}

// Pages of refusals that offer what a person meant to send: it goes through.
func TestOffersGoThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stores string
		spoil  func(f *fixture, token string) string // returns the token that is sent
		status int
		code   string
		asks   bool
	}{
		"token missing":                  {spoil: func(*fixture, string) string { return "" }, status: 400, code: web.TokenMissing, asks: true},
		"token invalid":                  {spoil: func(*fixture, string) string { return "a.b.c" }, status: 403, code: web.TokenInvalid, asks: true},
		"token used":                     {stores: "store", spoil: func(f *fixture, token string) string { f.store.real.Forget(); return token }, status: 409, code: web.TokenUsed, asks: true},
		"token missing, unknown browser": {spoil: func(f *fixture, _ string) string { f.cookie = nil; return "" }, status: 400, code: web.TokenMissing, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(c.stores))
			guarded := f.orderForm(nil)
			token := c.spoil(f, f.token("order.create").Token)
			form := f.offered(f.do(guarded, f.typed("/orders", token, "item=tea")), c.status, c.code)
			if form == nil || form.confirm != c.asks {
				t.Fatalf("offered %+v", form)
			}
			executed(t, f.do(guarded, f.submit(*form, nil)), 201)
			f.handler.ran(t, 1)
		})
	}
}

func TestInProgressPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = held()
	guarded := f.guard.Token("order.create", web.Wait(0))(f.handler)
	token := f.token("order.create").Token
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- f.do(guarded, f.typed("/orders", token, "item=tea")) }()
	<-f.handler.started
	rec := f.do(guarded, f.typed("/orders", token, "item=tea"))
	form := f.offered(rec, 409, web.InProgress)
	if form == nil || form.value("idempotent_token") != token || rec.Header().Get("Retry-After") == "" {
		t.Errorf("offered %+v, header %v", form, rec.Header())
	}
	changed := f.do(guarded, f.typed("/orders", token, "item=coffee"))
	if form := f.offered(changed, 422, web.PayloadMismatch); form == nil {
		t.Error("no new submission is offered")
	}
	close(f.handler.release)
	answer := <-first
	executed(t, answer, 201)
	repeats(t, f.do(guarded, f.submit(*form, nil)), answer)
	f.handler.ran(t, 1)
}

func TestKeyedPageOffersNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	guarded := f.guard.Key("refund", web.FormKey("no"), web.Anonymous())(f.handler)
	if form := f.offered(f.do(guarded, keyed(urlencoded, "a=1", asBrowser)), 400, web.KeyMissing); form != nil {
		t.Errorf("offered %+v", form)
	}
}

// A layout may have forms of its own, such as one that logs out: their tokens are the visitor's, whatever was refused and however early.
func TestTokensInALayout(t *testing.T) {
	t.Parallel()
	layout := func(_ *http.Request, _ web.Problem, content templ.Component) templ.Component {
		return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			if err := templates.Form(templates.FormProps{Action: "logout", URL: "/logout"}).Render(ctx, w); err != nil {
				return err
			}
			return content.Render(ctx, w)
		})
	}
	for name, change := range map[string]func(f *fixture, r *http.Request){
		"early":     func(_ *fixture, r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"too large": func(_ *fixture, r *http.Request) { r.ContentLength = 11 << 20 },
		"late":      func(_ *fixture, r *http.Request) { r.Header.Set(tokenHeader, "forged") },
		"an unknown browser": func(f *fixture, r *http.Request) {
			f.cookie = nil
			r.Header.Del("Cookie")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *web.Config) { c.ErrorPage = layout })
			r := f.typed("/orders", f.token("order.create").Token, "a=1")
			change(f, r)
			rec := f.do(f.orderForm(nil), r)
			for _, cookie := range rec.Result().Cookies() {
				f.cookie = cookie
			}
			forms := parseForms(t, rec.Body.String())
			if len(forms) == 0 || forms[0].action != "/logout" {
				t.Fatalf("answered %d %s", rec.Code, rec.Body)
			}
			executed(t, f.do(f.guard.Token("logout")(&work{}), f.typed("/logout", forms[0].value("idempotent_token"), "")), 201)
		})
	}
}

// Where the layout cannot be made there is the kit's own page.
func TestLayoutThatFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withoutLedger, func(c *web.Config) {
		c.ErrorPage = func(*http.Request, web.Problem, templ.Component) templ.Component {
			return templ.ComponentFunc(func(context.Context, io.Writer) error { return io.ErrUnexpectedEOF })
		}
	})
	for _, target := range []string{"/orders", "/orders?idempotent_token=x"} {
		rec := f.do(f.orderForm(nil), f.typed(target, "", "a=1"))
		if rec.Code != 400 || !strings.HasPrefix(rec.Body.String(), "<!doctype html>") {
			t.Errorf("answered %d %s", rec.Code, rec.Body)
		}
	}
	f.store.setAway(true)
	r := f.request("/", "", "")
	asBrowser(r)
	if rec := f.do(f.guard.Forms(page(1, "a")), r); rec.Code != 503 || !strings.HasPrefix(rec.Body.String(), "<!doctype html>") {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
}
