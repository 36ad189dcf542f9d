package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/web"
)

func allCodes() map[string]int {
	return map[string]int{
		web.TokenMissing: 400, web.TokenInURL: 400, web.RequestIDInvalid: 400, web.KeyMissing: 400, web.KeyInvalid: 400, web.BadRequest: 400,
		web.Unauthorized: 401, web.SubjectMissing: 401, web.TokenInvalid: 403, web.TokenWrongSubject: 403, web.TokenWrongAction: 403,
		web.CrossOrigin: 403, web.TokenExpired: 409, web.RequestIDMismatch: 409, web.TokenUsed: 409, web.AlreadyDone: 409, web.InProgress: 409,
		web.KeyTaken: 409, web.Cancelled: 409, web.ClaimLost: 409, web.BodyTooLarge: 413, web.PayloadMismatch: 422, web.DuplicateInWindow: 429,
		web.RateLimited: 429, web.StoreUnavailable: 503, web.OutcomeUnknown: 503,
	}
}

// Every code: its status, its headers in all three forms, and its page.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for code, status := range allCodes() {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			for accept, contentType := range map[string]string{"application/json": "application/problem+json", "text/html": "text/html; charset=utf-8"} {
				for _, wait := range []time.Duration{0, 1500 * time.Millisecond} {
					r := httptest.NewRequest(http.MethodPost, "/", nil)
					r.Header.Set("Accept", accept)
					rec := httptest.NewRecorder()
					f.guard.Refuse(rec, r, code, wait)
					head := rec.Header()
					if rec.Code != status || head.Get("Content-Type") != contentType || head.Get("Cache-Control") != "no-store" ||
						head.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(strings.Join(head["Vary"], ","), "Accept") {
						t.Errorf("answered %d %v", rec.Code, head)
					}
					after := ""
					if wait > 0 && code != web.DuplicateInWindow {
						after = "2"
					}
					if head.Get("Retry-After") != after || (head.Get("Connection") == "close") != (status == 413) || (head.Get("WWW-Authenticate") == "Bearer") != (code == web.Unauthorized) {
						t.Errorf("header %v", head)
					}
					if wait > 0 && accept == "application/json" && !strings.Contains(rec.Body.String(), `"retryAfter":2`) {
						t.Errorf("body %s", rec.Body)
					}
				}
			}
			explained(t, f, code)
		})
	}
}

func explained(t *testing.T, f *fixture, code string) {
	t.Helper()
	for _, prefix := range []string{"/idem", "/api/idempotent", ""} {
		rec := f.do(f.routes, httptest.NewRequest(http.MethodGet, prefix+"/problems/"+code, nil))
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") || !strings.Contains(rec.Body.String(), code) {
			t.Errorf("%s: answered %d %s", prefix, rec.Code, rec.Header().Get("Content-Type"))
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/idem/problems/"+code, nil)
	r.Header.Set("Accept", "application/json")
	rec := f.do(f.routes, r)
	var p problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != 200 || p.Code != code || p.Title == "" {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
}

func TestRefusePanicsForAnUnknownCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, with := panics(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.guard.Refuse(w, r, "nonsense", 0) }), httptest.NewRequest(http.MethodPost, "/", nil))
	if with == nil {
		t.Error("an unknown code was accepted")
	}
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const page, problemJSON = "text/html; charset=utf-8", "application/problem+json"
	for accept, want := range map[string]string{
		"":          problemJSON,
		"*/*":       problemJSON,
		"text/html": page,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": page,
		"application/json":                   problemJSON,
		"application/problem+json":           problemJSON,
		"text/html,application/json":         problemJSON,
		"text/html;q=0.9,application/json":   problemJSON,
		"text/html,application/json;q=0.9":   page,
		"text/html,application/problem+json": problemJSON,
		"text/html;q=0":                      problemJSON,
		"text/html;q=0.1":                    page,
		"text/html;q=0.5,*/*;q=0.5":          problemJSON,
		"text/html;q=0.5,*/*;q=0.4":          page,
		"text/*":                             page,
		"text/*,*/*":                         problemJSON,
		"TEXT/HTML":                          page,
		"text/html;level=1":                  page,
		"application/*,text/html;q=0.9":      problemJSON,
		"text/html;q=nonsense":               problemJSON,
		"text/html;q=NaN":                    problemJSON,
		"text/html;q=2":                      problemJSON,
		"text/html;q=1,application/json;q=0": page,
		"garbage, ,;":                        problemJSON,
		"application/json;q=0,text/plain":    problemJSON,
	} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			rec := httptest.NewRecorder()
			f.guard.Refuse(rec, r, web.TokenMissing, 0)
			if got := rec.Header().Get("Content-Type"); got != want {
				t.Errorf("answered %s", got)
			}
		})
	}
}

func TestFragmentForHTMX(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	guarded := f.guard.Token("order.create")(f.handler)
	r := f.order("forged", header("HX-Request", "true"), header("Accept", "*/*"))
	rec := f.do(guarded, r)
	text := rec.Body.String()
	if rec.Code != 403 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") || strings.Contains(text, "<html") || !strings.Contains(text, web.TokenInvalid) {
		t.Errorf("answered %d %s", rec.Code, text)
	}
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *web.Config) {
		c.Messages = map[string]web.Messages{
			"de": {web.TokenMissing: {Title: "Kein Token", Detail: "Nichts wurde ausgeführt."}},
			"en": {web.KeyMissing: {Title: "Say which", Detail: "changed"}},
		}
	})
	own := f.guard.Token("order.create", web.Say(web.TokenMissing, web.Message{Title: "Reload, please", Detail: "The form is stale."}))(f.handler)
	plain := f.guard.Token("order.create")(f.handler)
	for name, c := range map[string]struct {
		accept, title, language string
		route                   http.Handler
		code                    string
	}{
		"none":             {route: plain, title: "Token missing", language: "en"},
		"English":          {route: plain, accept: "en-GB", title: "Token missing", language: "en"},
		"Chinese":          {route: plain, accept: "zh-CN,zh;q=0.9,en;q=0.8", title: "缺少令牌", language: "zh"},
		"Chinese, simple":  {route: plain, accept: "zh", title: "缺少令牌", language: "zh"},
		"unknown":          {route: plain, accept: "fr", title: "Token missing", language: "en"},
		"unknown, Chinese": {route: plain, accept: "fr, zh;q=0.1", title: "缺少令牌", language: "zh"},
		"garbage":          {route: plain, accept: ";;;", title: "Token missing", language: "en"},
		"added":            {route: plain, accept: "de-AT", title: "Kein Token", language: "de"},
		"the route's own":  {route: own, accept: "zh", title: "Reload, please", language: "zh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := f.order("")
			r.Header.Set("Accept-Language", c.accept)
			rec := f.do(c.route, r)
			if p := refused(t, rec, 400, web.TokenMissing); p.Title != c.title || rec.Header().Get("Content-Language") != c.language {
				t.Errorf("problem %+v in %s", p, rec.Header().Get("Content-Language"))
			}
		})
	}
	r := keyed("", "", header("Accept-Language", "de"), header("Cookie", "idem=AAAAAAAAAAAAAAAAAAAAAA"))
	if p := refused(t, f.do(f.guard.Key("k", web.HeaderKey("Idempotency-Key"))(f.handler), r), 400, web.KeyMissing); p.Title != "Say which" {
		t.Errorf("without a text in German: %+v", p)
	}
}

func TestErrorPage(t *testing.T) {
	t.Parallel()
	layout := func(_ *http.Request, p web.Problem, content templ.Component) templ.Component {
		return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, "<html><body class=shop data-status="+p.Code+">")
			if p.Code == web.TokenInURL {
				return io.ErrUnexpectedEOF
			}
			return content.Render(ctx, w)
		})
	}
	f := newFixture(t, func(c *web.Config) { c.ErrorPage = layout })
	guarded := f.guard.Token("order.create")(f.handler)
	rec := f.do(guarded, f.order("", header("Accept", "text/html")))
	if rec.Code != 400 || !strings.HasPrefix(rec.Body.String(), "<html><body class=shop data-status=token_missing><section") {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
	broken := f.order("", header("Accept", "text/html"))
	broken.URL.RawQuery = "idempotent_token=x"
	rec = f.do(guarded, broken) // a layout that fails is no half a page
	if rec.Code != 400 || strings.Contains(rec.Body.String(), "class=shop") || !strings.Contains(rec.Body.String(), web.TokenInURL) {
		t.Errorf("answered %d %s", rec.Code, rec.Body)
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"": "/idem/problems/", "/": "/problems/", "/a/b": "/a/b/problems/"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *web.Config) { c.Prefix = prefix })
			rec := f.do(f.guard.Token("order.create")(f.handler), f.order(""))
			if !strings.Contains(rec.Body.String(), `"type":"`+want+`token_missing"`) {
				t.Errorf("problem %s", rec.Body)
			}
		})
	}
}

func TestRequestIDHeaderOfTheUsersChoice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *web.Config) { c.RequestIDHeader = "x-request-id" })
	token := f.token("order.create")
	guarded := f.guard.Token("order.create")(f.handler)
	refused(t, f.do(guarded, f.order(token.Token, header("X-Request-Id", "another-request"))), 409, web.RequestIDMismatch)
	rec := f.do(guarded, f.order(token.Token, header("X-Request-Id", token.RequestID)))
	executed(t, rec, 201)
	if rec.Header().Get("X-Request-Id") != token.RequestID || rec.Header().Get(requestID) != "" {
		t.Errorf("header %v", rec.Header())
	}
}
