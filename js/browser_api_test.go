package js_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/js"
)

// answer is what the api says once; the zero value is a success. never: nothing, until the client leaves.
type answer struct {
	status  int
	code    string
	headers map[string]string
	never   bool
}

func away(seconds string) answer {
	return answer{status: http.StatusServiceUnavailable, headers: map[string]string{"Retry-After": seconds}}
}

func (a answer) write(w http.ResponseWriter) {
	for name, value := range a.headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(max(a.status, http.StatusCreated))
	fmt.Fprintf(w, `{"code":%q}`, a.code)
}

type received struct {
	body           string
	header         http.Header
	token, request string
}

// api serves an empty page with the client, hands out tokens, and answers posts as it is told to, then with success. Other origins may call it.
type api struct {
	*httptest.Server
	t      *testing.T
	head   string // of the page
	mu     sync.Mutex
	script []answer
	calls  []received
	asked  []map[string]any // bodies that the token service got
	refuse bool             // the token service
}

func newAPI(t *testing.T, script ...answer) *api {
	t.Helper()
	a := &api{t: t, script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "connect-src 'self'", "connect-src http:", 1))
		fmt.Fprintf(w, `<!doctype html>%s<script type=module src="/idem-client.js" integrity="%s"></script><button>Go</button>`, a.head, js.Load().Integrity)
	})
	mux.HandleFunc("GET /idem-client.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(js.Load().Source)
	})
	mux.HandleFunc("OPTIONS /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*")
	})
	mux.HandleFunc("POST /idem/token", a.hand)
	mux.HandleFunc("POST /orders", a.order)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

func (a *api) hand(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	_ = json.NewDecoder(r.Body).Decode(&asked)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, asked)
	id, named := asked["requestId"]
	if !named {
		id = fmt.Sprintf("request-%d", len(a.asked))
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if a.refuse {
		w.WriteHeader(http.StatusForbidden)
	}
	fmt.Fprintf(w, `{"token":"token-%d","requestId":%q,"expiresIn":1800}`, len(a.asked), id)
}

func (a *api) order(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.calls = append(a.calls, received{string(body), r.Header, r.Header.Get("Idempotent-Token"), r.Header.Get("Idempotent-Request-Id")})
	var now answer
	if len(a.script) > 0 {
		now, a.script = a.script[0], a.script[1:]
	}
	a.mu.Unlock()
	if now.never {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	now.write(w)
}

func (a *api) got() []received {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]received{}, a.calls...)
}

func (a *api) issued() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// reached waits until n posts have come, and no more than that.
func (a *api) reached(n int) []received {
	a.t.Helper()
	testkit.Eventually(a.t, 10*time.Second, fmt.Sprintf("%d posts", n), func() bool { return len(a.got()) >= n })
	if got := a.got(); len(got) != n {
		a.t.Fatalf("%d posts, want %d", len(got), n)
	}
	return a.got()
}

func (a *api) open(more ...chromedp.ExecAllocatorOption) testkit.Browser {
	a.t.Helper()
	b := testkit.Chromium(a.t, more...)
	b.Visit(a.URL)
	return b
}

// same checks that posts are one intention's: one token, one request id, the same bytes.
func same(t *testing.T, calls ...received) {
	t.Helper()
	for _, call := range calls {
		if call.token == "" || call.request == "" || call.token != calls[0].token || call.request != calls[0].request || call.body != calls[0].body {
			t.Errorf("%q under %s, %s; the first was %q under %s, %s", call.body, call.token, call.request, calls[0].body, calls[0].token, calls[0].request)
		}
	}
}
