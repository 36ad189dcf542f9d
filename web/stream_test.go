package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// served is the fixture behind a real server.
type served struct {
	*fixture
	client *http.Client
	url    string
}

func (f *fixture) serve(h http.Handler) *served {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = quiet()
	server.Start()
	f.t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.t.Cleanup(client.CloseIdleConnections)
	return &served{f, client, server.URL}
}

func (s *served) order(token string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, s.url+"/orders", strings.NewReader(`{"item":"tea"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(tokenHeader, token)
	r.AddCookie(s.cookie)
	return r
}

// send returns the answer with its body read, and whether the body broke off.
func (s *served) send(r *http.Request) (*http.Response, string, error) {
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

func TestStreamsAreNotKept(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(w http.ResponseWriter, r *http.Request){
		"http.Flusher": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "b")
		},
		"response controller": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "a")
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			fmt.Fprint(w, "b")
		},
		"larger than the limit": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, strings.Repeat("x", 256<<10+1))
		},
		"larger in pieces": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			for range 300 {
				fmt.Fprint(w, strings.Repeat("x", 1<<10))
			}
		},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := &work{then: then}
				s := f.serve(f.guard.Token("order.create")(h))
				answer, text, err := s.send(s.order(token))
				if err != nil || answer.StatusCode != http.StatusCreated || answer.Header.Get(requestID) == "" || text == "" {
					t.Fatalf("%v, %v, %d bytes", err, answer, len(text))
				}
				f.settle()
				rec := f.do(f.guard.Token("order.create")(h), f.order(token))
				if p := refused(t, rec, 409, web.AlreadyDone); p.OriginalStatus != 201 {
					t.Errorf("originally %d", p.OriginalStatus)
				}
				h.ran(t, 1)
			})
		}
	}
}

// A flush reaches the client before the handler is done.
func TestFlushArrives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	read := make(chan struct{})
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-read
		fmt.Fprint(w, "second")
	}}
	s := f.serve(f.guard.Token("order.create")(h))
	answer, err := s.client.Do(s.order(token))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	part := make([]byte, 5)
	if _, err := io.ReadFull(answer.Body, part); err != nil || string(part) != "first" {
		t.Fatalf("%q, %v", part, err)
	}
	close(read)
	if rest, err := io.ReadAll(answer.Body); err != nil || string(rest) != "second" {
		t.Errorf("%q, %v", rest, err)
	}
}

// Bytes that have left cannot be taken back: the connection is.
func TestBytesLeftAndTheFinishFails(t *testing.T) {
	t.Parallel()
	for name, stores := range map[string]string{"ledger": "both", "store": "store"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			token := f.token("order.create").Token
			f.ledger.setFault("Tx.Complete", errAway)
			f.store.setFault("Complete", errAway)
			h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "first")
				w.(http.Flusher).Flush()
			}}
			s := f.serve(f.guard.Token("order.create")(h))
			_, text, err := s.send(s.order(token))
			if err == nil {
				t.Errorf("the answer %q seems whole", text)
			}
		})
	}
}

func TestPanicOverTheWire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, r *http.Request) {
		if idem.FromContext(r.Context()).Attempt == 1 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	}}
	s := f.serve(f.guard.Token("order.create")(h))
	if answer, _, err := s.send(s.order(token)); err == nil {
		t.Fatalf("answered %v", answer)
	}
	answer, _, err := s.send(s.order(token))
	if err != nil || answer.StatusCode != http.StatusCreated || h.attempt.Load() != 2 {
		t.Errorf("%v, %v, attempt %d", answer, err, h.attempt.Load())
	}
}

func TestHijack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 202 Mine\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
	}}
	guarded := f.guard.Token("order.create")(h)
	returned := make(chan struct{})
	s := f.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { defer close(returned); guarded.ServeHTTP(w, r) }))
	answer, text, err := s.send(s.order(token))
	if err != nil || answer.StatusCode != http.StatusAccepted || text != "mine" {
		t.Fatalf("%v %q %v", answer, text, err)
	}
	<-returned // the answer came before
	f.settle()
	refused(t, f.do(guarded, f.order(token)), 409, web.AlreadyDone)
	h.ran(t, 1)
}
