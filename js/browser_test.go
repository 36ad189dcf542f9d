package js_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
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
	testkit.Eventually(t, 10*time.Second, fmt.Sprintf("%d posts", n), func() bool { return s.count() >= n })
}

func open(t *testing.T, s *shop) testkit.Browser {
	t.Helper()
	b := testkit.Chromium(t)
	b.Visit(s.URL)
	return b
}
