// Run with: go test -tags browser ./js (needs Chromium; CHROMIUM names it, otherwise it is looked for).
package js_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/js"
)

// policy is as strict as a page's can be: a violation breaks the test.
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; base-uri 'none'"

// shop serves one page under /, the client, and counts what is posted to /post; its answers wait for release.
type shop struct {
	*httptest.Server
	page    string
	gate    chan struct{}
	release func()
	mu      sync.Mutex
	posts   []string
	headers []http.Header
}

func newShop(t *testing.T, body string) *shop {
	t.Helper()
	gate := make(chan struct{})
	s := &shop{page: body, gate: gate, release: sync.OnceFunc(func() { close(gate) })}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /done", func(w http.ResponseWriter, _ *http.Request) { page(w, "<p id=done>done</p>") })
	mux.HandleFunc("POST /post", s.post)
	mux.HandleFunc("POST /nothing", func(w http.ResponseWriter, r *http.Request) { s.note(r); w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /idem/token", s.token)
	mux.HandleFunc("GET /idem-client.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(js.Load().Source)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() { s.release(); s.Close() })
	return s
}

func page(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	fmt.Fprintf(w, `<!doctype html><script defer src="/idem-client.js" integrity="%s"></script>%s`, js.Load().Integrity, body)
}

func (s *shop) home(w http.ResponseWriter, _ *http.Request) { page(w, s.page) }

func (s *shop) token(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := "request-" + fmt.Sprint(time.Now().UnixNano())
	if _, after, ok := strings.Cut(string(body), `"requestId":"`); ok {
		id, _, _ = strings.Cut(after, `"`)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"token":"t","requestId":%q}`, id)
}

func (s *shop) note(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts = append(s.posts, string(body))
	s.headers = append(s.headers, r.Header)
}

func (s *shop) post(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	select {
	case <-s.gate:
	case <-r.Context().Done():
	}
	if r.Header.Get("Idempotent-Token") != "" && s.count() < 2 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, r, "/done", http.StatusSeeOther)
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.posts)
}

func (s *shop) reached(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.count() < n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d posts, want %d", s.count(), n)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func open(t *testing.T, s *shop) context.Context {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-back-forward-cache", false), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if path := os.Getenv("CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	do(t, ctx, chromedp.Navigate(s.URL))
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil { // no time limit: the context of the first Do owns the browser
		t.Fatal(err)
	}
}

func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// click is a real one, by the mouse, that waits for nothing.
func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2] })()`, selector))
	do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
}

func check[T comparable](t *testing.T, ctx context.Context, expression string, want T) {
	t.Helper()
	if got := eval[T](t, ctx, expression); got != want {
		t.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// until polls an expression in the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !eval[bool](t, ctx, expression); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", expression)
		}
	}
}
