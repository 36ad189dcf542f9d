package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idemkit/idem/web"
)

// Middlewares in front that have read the form, as CSRF checks do.
func TestFormsParsedInFront(t *testing.T) {
	t.Parallel()
	parsers := map[string]func(r *http.Request){
		"nobody":             func(*http.Request) {},
		"ParseForm":          func(r *http.Request) { _ = r.ParseForm() },
		"ParseMultipartForm": func(r *http.Request) { _ = r.ParseMultipartForm(1 << 10) },
		"PostFormValue":      func(r *http.Request) { r.PostFormValue("csrf_token") },
		"FormValue":          func(r *http.Request) { r.FormValue("csrf_token") },
	}
	bodies := map[string]func(token string) (string, string){
		"urlencoded": func(token string) (string, string) {
			return urlencoded, "idempotent_token=" + token + "&a=1&a=2&b=milk" + strings.Repeat("x", 100<<10)
		},
		"odd parameter": func(token string) (string, string) {
			return urlencoded + "; charset", "idempotent_token=" + token + "&a=1&a=2&b=milk"
		},
		"multipart": func(token string) (string, string) {
			return multiparts(part{name: "idempotent_token", content: token}, part{name: "a", content: "1"}, part{name: "a", content: "2"},
				part{name: "f", file: "d/x.txt", content: strings.Repeat("x", 2<<20) + "milk"})
		},
	}
	for kind, make := range bodies {
		for name, parse := range parsers {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				t.Run(kind+"/"+name+"/"+method, func(t *testing.T) {
					t.Parallel()
					f := newFixture(t)
					token := f.token("order.create").Token
					h := &work{then: func(w http.ResponseWriter, r *http.Request) {
						if method == "DELETE" && kind != "multipart" { // net/http does not parse it; the body is there
							fmt.Fprint(w, strings.Contains(readAll(r), "a=1&a=2"))
							return
						}
						_ = r.ParseMultipartForm(1 << 20)
						fmt.Fprint(w, r.PostForm["a"])
					}}
					inner := f.guard.Token("order.create")(h)
					guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { parse(r); inner.ServeHTTP(w, r) })
					send := func(front http.Handler, change func(string) string) (int, string, string) {
						contentType, text := make(token)
						r := f.request("/orders", contentType, change(text))
						r.Method = method
						rec := f.do(front, r)
						return rec.Code, rec.Body.String(), rec.Header().Get(replayed)
					}
					keep := func(s string) string { return s }
					code, first, _ := send(guarded, keep)
					if code != 200 || first != "[1 2]" && first != "true" {
						t.Fatalf("answered %d %s", code, first)
					}
					for _, front := range []http.Handler{guarded, inner} { // the fingerprint does not tell who parsed
						if code, again, replay := send(front, keep); code != 200 || again != first || replay != "true" {
							t.Errorf("then %d %q, replayed %q", code, again, replay)
						}
					}
					for _, front := range []http.Handler{guarded, inner} {
						if code, text, _ := send(front, func(s string) string { return strings.Replace(s, "milk", "mild", 1) }); code != 422 {
							t.Errorf("a changed payload: %d %s", code, text)
						}
					}
					h.ran(t, 1)
				})
			}
		}
	}
}

// A changed payload is noticed whoever has parsed the form.
func TestMismatchOfParsedForms(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{}
			inner := f.guard.Token("order.create")(h)
			guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = r.ParseForm(); inner.ServeHTTP(w, r) })
			for i, text := range []string{"a=1", "a=2"} {
				r := f.order(token)
				r.Method = method
				asForm(r, text)
				rec := f.do(guarded, r)
				if i == 0 {
					executed(t, rec, 201)
				} else {
					refused(t, rec, 422, web.PayloadMismatch)
				}
			}
			h.ran(t, 1)
		})
	}
}
