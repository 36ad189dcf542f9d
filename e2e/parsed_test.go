package e2e_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/csrf"

	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// guestbook is an application behind gorilla/csrf, which has parsed each form before the guard sees it.
type guestbook struct {
	mu      sync.Mutex
	entries []string
}

func (g *guestbook) form(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, csrf.TemplateField(r))
	if err := (templates.Field(templates.TokenField{Action: "entry.create"})).Render(r.Context(), w); err != nil {
		panic(err)
	}
}

func (g *guestbook) sign(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry := r.PostFormValue("name") + "|" + strings.Join(r.PostForm["line"], ",")
	if r.MultipartForm != nil {
		for _, file := range r.MultipartForm.File["picture"] {
			opened, err := file.Open()
			if err != nil {
				panic(err)
			}
			content, _ := io.ReadAll(opened)
			entry += fmt.Sprintf("|%s %s", file.Filename, content)
		}
	}
	g.entries = append(g.entries, entry)
	http.Redirect(w, r, fmt.Sprintf("/entries/%d", len(g.entries)), http.StatusSeeOther)
}

func newGuard(t *testing.T) *web.Guard {
	t.Helper()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}))
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	must(t, err)
	key, err := tokens.HS256("e2e", bytes.Repeat([]byte("k"), tokens.MinSecret))
	must(t, err)
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	must(t, err)
	guard, err := web.New(web.Config{
		Tokens: issuer, Store: memstore.New(memstore.Options{}), Ledger: ledger, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return guard
}

func TestFormParsedInFront(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encode func(v *visitor, fields url.Values) *http.Request
		want   string
	}{
		"urlencoded": {func(v *visitor, fields url.Values) *http.Request { return v.encoded("/", fields) }, "Ada|one,two"},
		"multipart": {func(v *visitor, fields url.Values) *http.Request {
			return v.multipart("/", fields, "picture", "ada.png", "pixels")
		}, "Ada|one,two|ada.png pixels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book, guard := &guestbook{}, newGuard(t)
			r := chi.NewRouter()
			r.Use(csrf.Protect(bytes.Repeat([]byte("c"), 32), csrf.Path("/")))
			r.With(guard.Forms).Get("/", book.form)
			r.With(guard.Token("entry.create")).Post("/", book.sign)
			server := httptest.NewTLSServer(r)
			defer server.Close()
			in := &ingress{Server: server}
			v := in.through(t, &demo{})

			page := v.get("/")
			fields := url.Values{
				"idempotent_token": {v.formToken(page)}, "gorilla.csrf.Token": {csrfToken(v, page)},
				"name": {"Ada"}, "line": {"one", "two"},
			}
			send := func(fields url.Values) answer {
				r := c.encode(v, fields)
				r.Header.Set("Origin", server.URL)
				return v.do(r)
			}
			first := send(fields)
			v.want(first, http.StatusSeeOther)
			for range 2 {
				again := send(fields)
				v.want(again, http.StatusSeeOther)
				if !replayed(again) || again.Header.Get("Location") != first.Header.Get("Location") {
					t.Errorf("the duplicate leads to %q: %v", again.Header.Get("Location"), again.Header)
				}
			}
			fields.Set("name", "Eve")
			v.want(send(fields), http.StatusUnprocessableEntity)
			fields.Set("gorilla.csrf.Token", "forged")
			v.want(send(fields), http.StatusForbidden)
			if len(book.entries) != 1 || book.entries[0] != c.want {
				t.Errorf("the entries are %q, want %q once", book.entries, c.want)
			}
		})
	}
}

func csrfToken(v *visitor, page answer) string {
	v.Helper()
	_, after, ok := strings.Cut(page.body, `name="gorilla.csrf.Token" value="`)
	token, _, closed := strings.Cut(after, `"`)
	if !ok || !closed {
		v.Fatalf("no token of gorilla/csrf in %s", page.body)
	}
	return html.UnescapeString(token)
}
