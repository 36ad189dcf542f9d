package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// renderHead is a page that links to the kit's assets.
func renderHead(w http.ResponseWriter, r *http.Request) {
	_ = templates.Script("").Render(r.Context(), w)
	_ = templates.Style().Render(r.Context(), w)
}

// page is a handler whose page has n forms of each action.
func page(n int, actions ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range n {
			for _, action := range actions {
				if err := templates.Form(templates.FormProps{Action: action, URL: "/orders"}).Render(r.Context(), w); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
			}
		}
	})
}

func TestFormsStoreOnce(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			rec := f.do(f.guard.Forms(page(20, "order.create", "order.cancel")), httptest.NewRequest(http.MethodGet, "/", nil))
			forms := parseForms(t, rec.Body.String())
			if rec.Code != 200 || len(forms) != 40 || f.store.count("Issue") != 1 {
				t.Fatalf("answered %d with %d forms, %d calls", rec.Code, len(forms), f.store.count("Issue"))
			}
			cookies := rec.Result().Cookies()
			if len(cookies) != 1 || rec.Header().Get("Cache-Control") != "no-store" {
				t.Fatalf("header %v", rec.Header())
			}
			f.cookie = cookies[0]
			guarded := f.guard.Token("order.create")(f.handler)
			for i := 0; i < 40; i += 2 { // each form is an operation of its own
				r := f.request("/orders", urlencoded, "idempotent_token="+forms[i].value("idempotent_token"))
				executed(t, f.do(guarded, r), 201)
			}
			f.handler.ran(t, 20)
		})
	}
}

func TestFormsPageIsUncacheable(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"plain": func(w http.ResponseWriter, r *http.Request) { page(1, "a").ServeHTTP(w, r) },
		"cacheable": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			page(1, "a").ServeHTTP(w, r)
		},
		"an error page": func(w http.ResponseWriter, r *http.Request) {
			page(1, "a").ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "x", http.StatusUnprocessableEntity)
		},
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			page(1, "a").ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush()
			page(1, "a").ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			rec := f.do(f.guard.Forms(h), httptest.NewRequest(http.MethodGet, "/", nil))
			if rec.Header().Get("Cache-Control") != "no-store" || len(rec.Result().Cookies()) != 1 {
				t.Errorf("header %v", rec.Header())
			}
			for _, form := range parseForms(t, rec.Body.String()) {
				if _, err := f.issuer.Verify(form.value("idempotent_token")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Where the tokens cannot be stored there is a page that says so, and not half a page.
func TestFormsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	t.Run("no ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withoutLedger)
		f.store.setAway(true)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", "text/html")
		rec := f.do(f.guard.Forms(page(3, "order.create")), r)
		text := rec.Body.String()
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || !strings.Contains(text, web.StoreUnavailable) || strings.Contains(text, "idempotent_token") {
			t.Errorf("answered %d %s", rec.Code, text)
		}
	})
	t.Run("with a ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.store.setAway(true)
		rec := f.do(f.guard.Forms(page(3, "order.create")), httptest.NewRequest(http.MethodGet, "/", nil))
		if rec.Code != 200 || len(parseForms(t, rec.Body.String())) != 3 {
			t.Errorf("answered %d %s", rec.Code, rec.Body)
		}
	})
	t.Run("after half the page has left", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withoutLedger)
		s := f.serve(f.guard.Forms(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page(1, "a").ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush()
			f.store.setAway(true)
			page(1, "a").ServeHTTP(w, r)
		})))
		r, _ := http.NewRequest(http.MethodGet, s.url, nil)
		if _, text, err := s.send(r); err == nil {
			t.Errorf("the page seems whole: %s", text)
		}
	})
}

func TestFormOutsideOfForms(t *testing.T) {
	t.Parallel()
	err := templates.Form(templates.FormProps{Action: "a"}).Render(context.Background(), io.Discard)
	if !errors.Is(err, templates.ErrNoPage) {
		t.Errorf("got %v", err)
	}
}

// A form that fails validation is shown again with the request id that it came with; what follows a success is another intention.
func TestFormShownAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w http.ResponseWriter, r *http.Request)
		same   bool
	}{
		"422":      {before: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }, same: true},
		"rejected": {before: func(w http.ResponseWriter, r *http.Request) { web.Reject(r.Context()); w.WriteHeader(http.StatusOK) }, same: true},
		"success":  {before: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create")
				h := &work{then: func(w http.ResponseWriter, r *http.Request) { c.before(w, r); page(2, "order.create").ServeHTTP(w, r) }}
				guarded := f.guard.Token("order.create")(h)
				rec := f.do(guarded, f.order(token.Token, asField(token.Token, "item=te")))
				forms := parseForms(t, rec.Body.String())
				if len(forms) != 2 || rec.Header().Get("Cache-Control") != "no-store" {
					t.Fatalf("answered %s %v", rec.Body, rec.Header())
				}
				for i, form := range forms {
					claims, err := f.issuer.Verify(form.value("idempotent_token"))
					if err != nil || (claims.RequestID == token.RequestID) != (c.same && i == 0) {
						t.Errorf("form %d has %s, it came with %s, %v", i, claims.RequestID, token.RequestID, err)
					}
				}
				h.then = nil
				again := f.do(guarded, f.order(forms[0].value("idempotent_token"), body(`{"item":"tea"}`)))
				executed(t, again, 201)
				if attempt := int(h.attempt.Load()); (attempt == 2) != c.same {
					t.Errorf("attempt %d", attempt)
				}
			})
		}
	}
}

func asField(token, text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del(tokenHeader)
		asForm(r, "idempotent_token="+token+"&"+text)
	}
}

// templ flushes at the end of each component that is rendered into a response: that is no stream. templ.Flush is.
func TestRenderingIsNotStreaming(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(w http.ResponseWriter, r *http.Request)
		kept bool
	}{
		"a component": {then: func(w http.ResponseWriter, r *http.Request) {
			_ = templates.Submit(templates.SubmitProps{}).Render(r.Context(), w)
		}, kept: true},
		"two components": {then: func(w http.ResponseWriter, r *http.Request) { page(2, "a").ServeHTTP(w, r) }, kept: true},
		"a wrapped writer": {then: func(w http.ResponseWriter, r *http.Request) {
			_ = templates.Submit(templates.SubmitProps{}).Render(r.Context(), wrapped{w})
		}, kept: true},
		"templ.Flush": {then: func(w http.ResponseWriter, r *http.Request) {
			ctx := templ.WithChildren(r.Context(), templ.Raw("part"))
			_ = templ.Flush().Render(ctx, w)
			_, _ = io.WriteString(w, "rest")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{then: c.then}
			guarded := f.guard.Token("order.create")(h)
			first := f.do(guarded, f.order(token))
			executed(t, first, 200)
			second := f.do(guarded, f.order(token))
			if c.kept {
				repeats(t, second, first)
			} else {
				refused(t, second, 409, web.AlreadyDone)
			}
			h.ran(t, 1)
		})
	}
}

// wrapped is what a middleware behind the guard may put around the answer.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// The same on a guarded route: a page whose last tokens nobody knows must not look whole.
func TestGuardedPageBreaksOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withoutLedger)
	token := f.token("order.create").Token
	f.handler.then = func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		f.store.setFault("Issue", errAway)
		page(1, "order.create").ServeHTTP(w, r)
	}
	s := f.serve(f.guard.Token("order.create")(f.handler))
	if _, text, err := s.send(s.order(token)); err == nil {
		t.Errorf("the page seems whole: %s", text)
	}
}
