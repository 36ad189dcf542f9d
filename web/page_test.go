package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// asBrowser is what a browser says of a form of the same site.
func asBrowser(r *http.Request) {
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

// submit sends a form as a browser does, with the values that the page gave it, changed ones in their place.
func (f *fixture) submit(form htmlForm, changed map[string]string) *http.Request {
	var body, parts = make([]string, 0), make([]part, 0)
	for _, field := range form.fields {
		value, ok := changed[field.name]
		if !ok {
			value = field.value
		}
		value = strings.ReplaceAll(strings.ReplaceAll(value, "\r\n", "\n"), "\n", "\r\n")
		body = append(body, url.QueryEscape(field.name)+"="+url.QueryEscape(value))
		p := part{name: field.name, content: value}
		if field.kind == "file" {
			p.file = changed[field.name]
		}
		parts = append(parts, p)
	}
	contentType, text := urlencoded, strings.Join(body, "&")
	if form.enctype == "multipart/form-data" {
		contentType, text = multiparts(parts...)
	}
	r := f.request(form.action, contentType, text)
	asBrowser(r)
	return r
}

// typed is a form submission with a token in its field.
func (f *fixture) typed(path, token, fields string) *http.Request {
	r := f.request(path, urlencoded, "idempotent_token="+token+"&"+fields)
	asBrowser(r)
	return r
}

// offered is the form on the page of a refusal, and nil where it offers none.
func (f *fixture) offered(rec *httptest.ResponseRecorder, status int, code string) *htmlForm {
	f.t.Helper()
	text := rec.Body.String()
	if rec.Code != status || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") || !strings.Contains(text, `data-code="`+code+`"`) {
		f.t.Fatalf("answered %d %s, want a page of %s", rec.Code, text, code)
	}
	for _, cookie := range rec.Result().Cookies() {
		f.cookie = cookie
	}
	forms := parseForms(f.t, text)
	if len(forms) == 0 {
		return nil
	}
	return &forms[0]
}

const typedFields = "item=tea+%26+%3Cmilk%3E&note=one%0D%0Atwo&item=second&empty=&Password=secret1&pin=secret2&then=receipt"

func (f *fixture) orderForm(then http.HandlerFunc) http.Handler {
	f.handler.then = then
	return f.guard.Token("order.create", web.Secret("pin"), web.Ignore("then"))(f.handler)
}

// Everything is kept, but secrets; and what the page offers goes through.
func TestExpiredFormGoesThrough(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			var got url.Values
			guarded := f.orderForm(func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				got = r.PostForm
				w.WriteHeader(http.StatusCreated)
			})
			token := f.token("order.create")
			f.clock.advance(31 * time.Minute)
			rec := f.do(guarded, f.typed("/orders?list=1", token.Token, typedFields))
			form := f.offered(rec, 409, web.TokenExpired)
			if form == nil || form.action != "/orders?list=1" || form.confirm {
				t.Fatalf("offered %+v", form)
			}
			if strings.Contains(rec.Body.String(), "secret1") || strings.Contains(rec.Body.String(), "secret2") {
				t.Error("a secret is given back")
			}
			claims, err := f.issuer.Verify(form.value("idempotent_token"))
			if err != nil || claims.Expired || claims.RequestID != token.RequestID {
				t.Errorf("claims %+v, %v", claims, err)
			}
			executed(t, f.do(guarded, f.submit(*form, map[string]string{"Password": "secret1", "pin": "secret2"})), 201)
			want := url.Values{"item": {"tea & <milk>", "second"}, "note": {"one\r\ntwo"}, "empty": {""}, "Password": {"secret1"}, "pin": {"secret2"}, "then": {"receipt"}}
			for name, values := range want {
				if strings.Join(got[name], "|") != strings.Join(values, "|") {
					t.Errorf("%s is %q, want %q", name, got[name], values)
				}
			}
			f.handler.ran(t, 1)
		})
	}
}

// The offered form is the same payload: after the first went through under the request id, it is its duplicate.
func TestOfferedFormIsTheSamePayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		code   string
		fault  func(f *fixture)
		repair func(f *fixture)
	}{
		"store away": {status: 503, code: web.StoreUnavailable, fault: func(f *fixture) { f.ledger.setAway(true) }, repair: func(f *fixture) { f.ledger.setAway(false) }},
		"outcome unknown": {
			status: 503, code: web.OutcomeUnknown,
			fault:  func(f *fixture) { f.ledger.onAfter("Tx.Complete", lose(errAway)) },
			repair: func(f *fixture) { f.ledger.onAfter("Tx.Complete", nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			guarded := f.orderForm(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			token := f.token("order.create").Token
			c.fault(f)
			form := f.offered(f.do(guarded, f.typed("/orders", token, "item=tea&note=a%0D%0A%0D%0Ab&then=x")), c.status, c.code)
			c.repair(f)
			if form == nil || form.value("idempotent_token") != token {
				t.Fatalf("offered %+v", form)
			}
			if rec := f.do(guarded, f.submit(*form, nil)); rec.Code != 201 {
				t.Errorf("answered %d %s", rec.Code, rec.Body)
			}
			f.handler.ran(t, 1)
		})
	}
}

func TestFilesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	guarded := f.orderForm(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("item") != "tea" || r.MultipartForm == nil {
			t.Errorf("got %v", r.Form)
		}
		w.WriteHeader(http.StatusCreated)
	})
	token := f.token("order.create")
	f.clock.advance(31 * time.Minute)
	contentType, text := multiparts(part{name: "idempotent_token", content: token.Token}, part{name: "item", content: "tea"}, part{name: "attachment", file: "x.txt", content: "content of it"})
	r := f.request("/orders", contentType, text)
	asBrowser(r)
	rec := f.do(guarded, r)
	form := f.offered(rec, 409, web.TokenExpired)
	if form == nil || form.enctype != "multipart/form-data" || strings.Contains(rec.Body.String(), "content of it") {
		t.Fatalf("offered %+v", form)
	}
	if last := form.fields[len(form.fields)-1]; last.name != "attachment" || last.kind != "file" {
		t.Errorf("fields %+v", form.fields)
	}
	executed(t, f.do(guarded, f.submit(*form, map[string]string{"attachment": "x.txt"})), 201)
}

func TestWrongSubjectPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*http.Request)
		offered bool
	}{
		"same origin, says the browser": {change: func(*http.Request) {}, offered: true},
		"same origin, says Origin":      {change: func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "http://example.com") }, offered: true},
		"typed into the address bar":    {change: func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }},
		"says nothing":                  {change: func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, byUser)
			guarded := f.orderForm(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			token := f.token("order.create")
			r := f.typed("/orders", token.Token, "item=tea")
			as("ann")(r)
			c.change(r)
			form := f.offered(f.do(guarded, r), 403, web.TokenWrongSubject)
			if (form != nil) != c.offered {
				t.Fatalf("offered %+v", form)
			}
			if form == nil {
				return
			}
			claims, err := f.issuer.Verify(form.value("idempotent_token"))
			if !form.confirm || err != nil || claims.RequestID != token.RequestID {
				t.Errorf("confirm %v, claims %+v, %v", form.confirm, claims, err)
			}
			again := f.submit(*form, nil)
			as("ann")(again)
			executed(t, f.do(guarded, again), 201)
			f.handler.ran(t, 1)
		})
	}
}

func TestMismatchPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first http.HandlerFunc
		link  string
	}{
		"a redirect": {first: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/orders/1?a=1&b=2", http.StatusSeeOther)
		}, link: `href="/orders/1?a=1&amp;b=2"`},
		"another host": {first: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://pay.example/1", http.StatusSeeOther)
		}, link: `href="https://pay.example/1"`},
		"a script": {first: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "javascript:alert(1)")
			w.WriteHeader(http.StatusSeeOther)
		}},
		"no redirect": {first: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) }},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				guarded := f.orderForm(c.first)
				token := f.token("order.create")
				f.do(guarded, f.typed("/orders", token.Token, "item=tea"))
				f.settle()
				rec := f.do(guarded, f.typed("/orders", token.Token, "item=coffee"))
				form := f.offered(rec, 422, web.PayloadMismatch)
				text := rec.Body.String()
				if !strings.Contains(text, "went through") || (c.link != "") != strings.Contains(text, `<a href=`) || !strings.Contains(text, c.link) {
					t.Errorf("page %s", text)
				}
				claims, err := f.issuer.Verify(form.value("idempotent_token"))
				if err != nil || claims.RequestID == token.RequestID || form.value("item") != "coffee" {
					t.Errorf("claims %+v, %v, form %+v", claims, err, form)
				}
				f.handler.then = nil
				executed(t, f.do(guarded, f.submit(*form, nil)), 201)
				f.handler.ran(t, 2)
			})
		}
	}
}
