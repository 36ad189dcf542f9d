package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock runs with the real one, from a point that a test can move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

const tokenHeader = "Idempotent-Token"

// fixture is a guard over a forgetful store and a ledger, both in memory, with one browser in front.
type fixture struct {
	t      *testing.T
	clock  *clock
	store  *faultyStore
	ledger *faultyLedger
	issuer *tokens.Issuer
	guard  *web.Guard
	routes http.Handler
	cookie *http.Cookie

	handler *work // for tests that need one
}

func newFixture(t *testing.T, change ...func(*web.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clock{}, handler: &work{}}
	f.store = &faultyStore{records{newFaults(), memstore.New(memstore.Options{Now: f.clock.now, Forgetful: true})}}
	f.ledger = &faultyLedger{records: records{newFaults(), memstore.New(memstore.Options{Now: f.clock.now})}}
	f.issuer = newIssuer(t, f.clock, "idem")
	config := web.Config{Tokens: f.issuer, Store: f.store, Ledger: f.ledger, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&config)
	}
	guard, err := web.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.guard, f.routes = guard, guard.Routes()
	t.Cleanup(f.settle)
	return f
}

// quiet is for servers whose handlers panic on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func withoutLedger(c *web.Config) { c.Ledger = nil }
func withoutStore(c *web.Config)  { c.Store = nil }

func newIssuer(t *testing.T, c *clock, name string) *tokens.Issuer {
	t.Helper()
	key, err := tokens.HS256("k1", []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}, Issuer: name, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// settle waits for what is written behind the answers.
func (f *fixture) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.guard.Drain(ctx); err != nil {
		f.t.Error(err)
	}
}

type issued struct {
	Token     string    `json:"token"`
	RequestID string    `json:"requestId"`
	Action    string    `json:"action"`
	ExpiresAt time.Time `json:"expiresAt"`
	ExpiresIn int       `json:"expiresIn"`
}

// token asks the token service, as the fixture's browser.
func (f *fixture) token(action string) issued { return f.renew(action, "") }

func (f *fixture) renew(action, requestID string) issued {
	f.t.Helper()
	body := fmt.Sprintf(`{"action":%q}`, action)
	if requestID != "" {
		body = fmt.Sprintf(`{"action":%q,"requestId":%q}`, action, requestID)
	}
	rec := f.do(f.routes, f.request("/idem/token", "application/json", body))
	if rec.Code != http.StatusCreated {
		f.t.Fatalf("token service: %d %s", rec.Code, rec.Body)
	}
	for _, cookie := range rec.Result().Cookies() {
		f.cookie = cookie
	}
	var got issued
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		f.t.Fatal(err)
	}
	return got
}

// request is a POST of the fixture's browser.
func (f *fixture) request(path, contentType, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if f.cookie != nil {
		r.AddCookie(f.cookie)
	}
	return r
}

// order is a JSON submission with the token in the header.
func (f *fixture) order(token string, change ...func(*http.Request)) *http.Request {
	r := f.request("/orders", "application/json", `{"item":"tea"}`)
	r.Header.Set(tokenHeader, token)
	for _, c := range change {
		c(r)
	}
	return r
}

func (f *fixture) do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(finals{rec}, r)
	return rec
}

// finals passes informational answers by, at which httptest's recorder would stop.
type finals struct{ *httptest.ResponseRecorder }

func (w finals) WriteHeader(status int) {
	if status < 100 || status >= 200 {
		w.ResponseRecorder.WriteHeader(status)
	}
}

// body replaces the body of a request.
func body(text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(text))
		r.ContentLength = int64(len(text))
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

// work is a handler that counts its runs, answers 201, and can be held.
type work struct {
	runs    atomic.Int32
	started chan struct{} // nil: nobody waits for the start
	release chan struct{} // nil: it does not wait
	attempt atomic.Int32
	then    http.HandlerFunc // nil: 201
}

func held() *work { return &work{started: make(chan struct{}, 100), release: make(chan struct{})} }

func (h *work) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := h.runs.Add(1)
	h.attempt.Store(int32(idem.FromContext(r.Context()).Attempt))
	if h.started != nil {
		h.started <- struct{}{}
	}
	if h.release != nil {
		<-h.release
	}
	if h.then != nil {
		h.then(w, r)
		return
	}
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d", n)
}

func (h *work) ran(t *testing.T, want int) {
	t.Helper()
	if got := int(h.runs.Load()); got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// problem is a refusal as it came over the wire.
type problem struct {
	Type           string `json:"type"`
	Title          string `json:"title"`
	Status         int    `json:"status"`
	Detail         string `json:"detail"`
	Code           string `json:"code"`
	RequestID      string `json:"requestId"`
	RetryAfter     int    `json:"retryAfter"`
	OriginalStatus int    `json:"originalStatus"`
}

// refused checks everything that every refusal has, and returns it.
func refused(t *testing.T, rec *httptest.ResponseRecorder, status int, code string) problem {
	t.Helper()
	var p problem
	if rec.Code != status || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("answered %d %s %q, want %d %s", rec.Code, rec.Header().Get("Content-Type"), rec.Body, status, code)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if p.Code != code || p.Status != status || p.Type != "/idem/problems/"+code || p.Title == "" || p.Detail == "" {
		t.Fatalf("problem %+v, want %d %s", p, status, code)
	}
	if rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get(replayed) != "" {
		t.Errorf("header %v", rec.Header())
	}
	if got := rec.Header().Get("Retry-After"); code != web.DuplicateInWindow && (got != "") != (p.RetryAfter > 0) {
		t.Errorf("Retry-After %q beside retryAfter %d", got, p.RetryAfter)
	}
	return p
}

const (
	replayed  = "Idempotent-Replayed"
	requestID = "Idempotent-Request-Id"
)

// executed checks that the handler answered, and not a replay.
func executed(t *testing.T, rec *httptest.ResponseRecorder, status int) {
	t.Helper()
	if rec.Code != status || rec.Header().Get(replayed) != "" {
		t.Fatalf("answered %d %q, replayed %q, want %d by the handler", rec.Code, rec.Body, rec.Header().Get(replayed), status)
	}
}

// repeats checks that an answer is the replay of another.
func repeats(t *testing.T, rec, first *httptest.ResponseRecorder) {
	t.Helper()
	if rec.Code != first.Code || rec.Header().Get(replayed) != "true" || !bytes.Equal(rec.Body.Bytes(), first.Body.Bytes()) {
		t.Fatalf("answered %d %q, replayed %q, want the replay of %d %q", rec.Code, rec.Body, rec.Header().Get(replayed), first.Code, first.Body)
	}
}
