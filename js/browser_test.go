package js_test

import (
	"encoding/base64"
	"encoding/json"
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
	life    int64 // of its tokens, in seconds; 0: one
	subject string
	mu      sync.Mutex
	signed  int
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
	mux.HandleFunc("POST /download", func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		w.Header().Set("Content-Disposition", `attachment; filename="tea.txt"`)
		fmt.Fprint(w, "tea")
	})
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
	fmt.Fprintf(w, `<!doctype html><script type=module src="/idem-client.js" integrity="%s"></script>%s`, js.Load().Integrity, body)
}

// home has a new token at every mark.
func (s *shop) home(w http.ResponseWriter, _ *http.Request) {
	body := s.page
	for strings.Contains(body, mark) {
		body = strings.Replace(body, mark, s.sign("order.create", ""), 1)
	}
	page(w, body)
}

// mark is where a page has a token.
const mark = "{token}"

// sign makes a token that a client can read; nobody checks it here.
func (s *shop) sign(action, requestID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed++
	if requestID == "" {
		requestID = fmt.Sprintf("request-%d", s.signed)
	}
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"jti":"%d>>>???","sub":%q,"rid":%q,"act":%q,"iat":%d,"exp":%d}`, s.signed, s.subject, requestID, action, now, now+max(s.life, 1))
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// claimsOf a token, as far as tests look at them; none of what is no token.
func claimsOf(token string) (read struct {
	Rid, Act string
	Exp      int64
}) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &read)
	}
	return read
}

func (s *shop) token(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Action, RequestID string }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	token := s.sign(asked.Action, asked.RequestID)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"token":%q,"requestId":%q}`, token, claimsOf(token).Rid)
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

// signs is how many tokens there are.
func (s *shop) signs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
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
