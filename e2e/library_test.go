package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/chromedp/chromedp"
	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// library is one that sends forms in place of the browser, as it comes from the npm registry, and the hook for it.
type library struct {
	file    string // below js/node_modules
	started string // the event of a request that is about to be sent
	ended   string // and of one whose answer is in the page
	hook    func(nonce string) templ.Component
	hx      bool
	stays   answering // leaves the form in the page
}

func htmxes() map[string]library {
	return map[string]library{
		"htmx 2": {"htmx2/dist/htmx.min.js", "htmx:beforeRequest", "htmx:afterRequest", templates.HTMX, true, silent},
		"htmx 4": {"htmx4/dist/htmx.min.js", "htmx:before:request", "htmx:finally:request", templates.HTMX, true, silent},
	}
}

func turbo() library {
	return library{"@hotwired/turbo/dist/turbo.es2017-umd.js", "turbo:submit-start", "turbo:submit-end", templates.Turbo, false, stream}
}

func libraries() map[string]library {
	all := htmxes()
	all["Turbo"] = turbo()
	return all
}

// sends has the library send a row's form, with what becomes of the answer in htmx.
func (l library) sends(swap string) func(row string) templ.Attributes {
	return func(row string) templ.Attributes {
		if !l.hx {
			return nil // Turbo takes every form
		}
		return templ.Attributes{"hx-post": "/rows/" + row, "hx-swap": swap, "hx-target": "closest div"}
	}
}

// answering answers when a row was saved.
type answering func(p *rows, w http.ResponseWriter, r *http.Request, row string)

func silent(*rows, http.ResponseWriter, *http.Request, string) {}

// stream changes one element of Turbo's page.
func stream(p *rows, w http.ResponseWriter, _ *http.Request, _ string) {
	w.Header().Set("Content-Type", "text/vnd.turbo-stream.html")
	fmt.Fprintf(w, `<turbo-stream action="update" target="total"><template>%d</template></turbo-stream>`, p.total())
}

// rows is a page of forms, each of which saves one row, and a browser in front of it.
type rows struct {
	testkit.Browser
	*httptest.Server
	library library
	page    templ.Component
	answer  answering
	delay   time.Duration // of the work
	gate    chan struct{} // what the work waits for; nil: nothing
	mu      sync.Mutex
	posts   []string // the rows that submissions came for
	saved   []string // "row=value", as it was carried out
}

// rowsAt shows the page in the browser. Its forms go to /rows/{row}; whose they are, the cookie "user" says.
func rowsAt(t *testing.T, b testkit.Browser, l library, page templ.Component, answer answering) *rows {
	t.Helper()
	b.TB = t
	p := &rows{Browser: b, library: l, page: page, answer: answer, delay: 200 * time.Millisecond}
	secret, err := tokens.GenerateHS256("rows")
	must(t, err)
	keys, err := tokens.ParseKeys(secret)
	must(t, err)
	issuer, err := tokens.New(tokens.Config{Keys: keys})
	must(t, err)
	guard, err := web.New(web.Config{Tokens: issuer, Store: memstore.New(memstore.Options{}), Subject: user})
	must(t, err)
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())
	r.Get("/library.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("..", "js", "node_modules", filepath.FromSlash(l.file)))
	})
	r.With(guard.Forms).Get("/", p.show)
	r.Get("/slow", func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(1500 * time.Millisecond)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!doctype html><title>slow</title><p id="landed">landed</p>`)
	})
	r.With(p.count, guard.Token("row.save")).HandleFunc("/rows/{row}", p.save)
	p.Server = httptest.NewServer(r)
	t.Cleanup(p.Close)
	if _, err := os.Stat(filepath.Join("..", "js", "node_modules", filepath.FromSlash(l.file))); err != nil {
		t.Fatalf("%v; run: make components", err)
	}
	p.Visit(p.URL)
	return p
}

func user(r *http.Request) string {
	cookie, err := r.Cookie("user")
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (p *rows) show(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Libraries bring styles of their own into the page.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; style-src 'unsafe-inline' 'self'")
	head := templ.Join(templ.Raw(`<!doctype html><title>rows</title><script src="/library.js" defer></script>`), templates.Script(""), p.library.hook(""))
	if r.URL.Query().Has("after") {
		head = templ.Join(head, templ.Raw(`<link rel="stylesheet" href="/slow">`)) // Turbo shows the page when that is there
	}
	if err := templ.Join(head, p.page, templ.Raw(`<output id="total"></output>`)).Render(r.Context(), w); err != nil {
		p.Error(err)
	}
}

func (p *rows) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.posts = append(p.posts, chi.URLParam(r, "row"))
		p.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (p *rows) save(w http.ResponseWriter, r *http.Request) {
	<-time.After(p.delay)
	if p.gate != nil {
		<-p.gate
	}
	row := chi.URLParam(r, "row")
	p.mu.Lock()
	p.saved = append(p.saved, row+"="+r.FormValue("value"))
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.answer(p, w, r, row)
}

// total is how often any row was saved.
func (p *rows) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.saved)
}

// saves waits for one.
func (p *rows) saves(what string) {
	p.Helper()
	testkit.Eventually(p, 20*time.Second, what+" is saved", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Contains(p.saved, what)
	})
	if p.total() != 1 {
		p.Errorf("%d rows are saved", p.total())
	}
}

// want is every row's saving in any order, and one submission for each.
func (p *rows) want(saved ...string) {
	p.Helper()
	testkit.Eventually(p, 20*time.Second, fmt.Sprintf("%d rows saved", len(saved)), func() bool { return p.total() >= len(saved) })
	p.mu.Lock()
	defer p.mu.Unlock()
	got := slices.Sorted(slices.Values(p.saved))
	if slices.Sort(saved); !slices.Equal(got, saved) {
		p.Errorf("saved %q, want %q", got, saved)
	}
	if len(p.posts) != len(saved) {
		p.Errorf("submissions for %q, want one for each of %q", p.posts, saved)
	}
}

// rowForm is one row, a form with the attributes given, and with more behind its buttons.
func rowForm(row string, attributes templ.Attributes, more ...templ.Component) templ.Component {
	props := templates.FormProps{Action: "row.save", URL: "/rows/" + row, ID: "row-" + row, Attributes: attributes}
	field := templ.Raw(`<input name="value" value="` + row + `"><button name="then" value="save" data-idem-busy="Saving">Save</button><button name="then" value="more">More</button>`)
	form := templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return templates.Form(props).Render(templ.WithChildren(ctx, templ.Join(append([]templ.Component{field}, more...)...)), w)
	})
	return templ.Join(templ.Raw("<div>"), form, templ.Raw("</div>"))
}

func rowNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	return names
}

func rowForms(names []string, attributes func(row string) templ.Attributes) templ.Component {
	var forms []templ.Component
	for _, row := range names {
		forms = append(forms, rowForm(row, attributes(row)))
	}
	return templ.Join(forms...)
}

// token is the one that a row's form has in the page.
func (p *rows) token(row string) string {
	p.Helper()
	return testkit.Eval[string](p.Browser, `document.querySelector("#row-`+row+` [name=idempotent_token]").value`)
}

// free waits until a row's form can be sent again.
func (p *rows) free(row string) {
	p.Helper()
	p.until(`document.querySelector("#row-%s:not([aria-busy]):not(:has([aria-disabled]))") !== null`, row)
}

// insist clicks until so many submissions have come for a row.
func (p *rows) insist(row string, n int) {
	p.Helper()
	testkit.Eventually(p, 20*time.Second, "another submission for "+row, func() bool {
		if p.arrived(row) < n {
			p.click(row)
		}
		return p.arrived(row) >= n
	})
}

func (p *rows) arrived(row string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, post := range p.posts {
		if post == row {
			n++
		}
	}
	return n
}

func (p *rows) click(row string) { p.Helper(); p.Click("#row-" + row + " button") }

// until polls an expression, of a page that may be just coming.
func (p *rows) until(format string, arguments ...any) {
	p.Helper()
	expression := fmt.Sprintf(format, arguments...)
	testkit.Eventually(p, 20*time.Second, expression, func() bool {
		holds := false
		p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			value, err := chromedp.Evaluate[bool](expression)(ctx, target)
			holds = err == nil && value
			return nil
		}))
		return holds
	})
}

// keys presses them in an element.
func (p *rows) keys(selector, text string) {
	p.Helper()
	testkit.Eval[bool](p.Browser, fmt.Sprintf(`document.querySelector(%q).focus(), true`, selector))
	p.Do(chromedp.KeyEvent(text))
}
