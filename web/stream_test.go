package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

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
			w.WriteHeader(201)
			fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "b")
		},
		"response controller": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			fmt.Fprint(w, "a")
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			fmt.Fprint(w, "b")
		},
		"larger than the limit": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			fmt.Fprint(w, strings.Repeat("x", 256<<10+1))
		},
		"larger in pieces": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
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
				if err != nil || answer.StatusCode != 201 || answer.Header.Get(requestID) == "" || text == "" {
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
	h := &work{then: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
	s := f.serve(f.guard.Token("order.create")(h))
	if answer, _, err := s.send(s.order(token)); err == nil {
		t.Fatalf("answered %v", answer)
	}
	h.then = nil
	answer, _, err := s.send(s.order(token))
	if err != nil || answer.StatusCode != 201 || h.attempt.Load() != 2 {
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
	s := f.serve(guarded)
	answer, text, err := s.send(s.order(token))
	if err != nil || answer.StatusCode != 202 || text != "mine" {
		t.Fatalf("%v %q %v", answer, text, err)
	}
	f.settle()
	refused(t, f.do(guarded, f.order(token)), 409, web.AlreadyDone)
	h.ran(t, 1)
}

func TestTrailers(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(w http.ResponseWriter){
		"declared": func(w http.ResponseWriter) {
			w.Header().Set("Trailer", "X-Sum, X-Other")
			fmt.Fprint(w, "body")
			w.Header().Set("X-Sum", "42")
		},
		"by prefix": func(w http.ResponseWriter) {
			fmt.Fprint(w, "body")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
		},
		"flushed": func(w http.ResponseWriter) {
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "body")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "42")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{then: func(w http.ResponseWriter, _ *http.Request) { then(w) }}
			s := f.serve(f.guard.Token("order.create")(h))
			answer, text, err := s.send(s.order(token))
			if err != nil || text != "body" || answer.Trailer.Get("X-Sum") != "42" || answer.Header.Get("X-Sum") != "" {
				t.Fatalf("%q %v, header %v, trailer %v", text, err, answer.Header, answer.Trailer)
			}
			again, text, err := s.send(s.order(token))
			if err != nil || again.Header.Get("X-Sum") != "" || (name != "flushed" && text != "body") {
				t.Errorf("replayed %q %v %v", text, err, again.Header)
			}
		})
	}
}

func TestEarlyHintsArrive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("X-Final", "1")
		w.WriteHeader(201)
	}}
	s := f.serve(f.guard.Token("order.create")(h))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := s.order(token).Write(conn); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	hints, err := http.ReadResponse(reader, nil)
	if err != nil || hints.StatusCode != 103 || hints.Header.Get("Link") == "" {
		t.Fatalf("%v %v", hints, err)
	}
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != 201 || answer.Header.Get("X-Final") != "1" || !slices.Equal(answer.Header["Link"], []string{"</a.css>; rel=preload"}) {
		t.Errorf("%v %v", answer, err)
	}
	answer.Body.Close()
}

// A client that is cut off: the work goes on, the retry on another connection gets its result.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := held()
	gone := make(chan struct{})
	guarded := f.guard.Token("order.create")(h)
	s := f.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			<-r.Context().Done()
			select {
			case gone <- struct{}{}:
			case <-time.After(10 * time.Second):
			}
		}()
		guarded.ServeHTTP(w, r)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.order(token).Write(conn); err != nil {
		t.Fatal(err)
	}
	<-h.started
	conn.Close()
	<-gone
	close(h.release)
	answer, text, err := s.send(s.order(token))
	<-gone
	if err != nil || answer.StatusCode != 201 || answer.Header.Get(replayed) != "true" || text != "order 1" {
		t.Errorf("%v %q %v", answer, text, err)
	}
	h.ran(t, 1)
}

// A forged token is refused before the client sends the body that it announces.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token   func(good string) string
		length  int
		status  int
		invited bool
	}{
		"good":     {token: func(good string) string { return good }, length: 4, status: 201, invited: true},
		"forged":   {token: func(string) string { return "forged" }, length: 4, status: 403},
		"too long": {token: func(good string) string { return good }, length: 11 << 20, status: 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			s := f.serve(f.guard.Token("order.create")(&work{}))
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(conn, "POST /orders HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s: %s\r\nCookie: %s=%s\r\n\r\n",
				c.length, tokenHeader, c.token(token), f.cookie.Name, f.cookie.Value)
			reader := bufio.NewReader(conn)
			answer, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if invited := answer.StatusCode == 100; invited != c.invited {
				t.Errorf("answered %d", answer.StatusCode)
			}
			if c.invited {
				fmt.Fprint(conn, "true")
				answer, err = http.ReadResponse(reader, nil)
			}
			if err != nil || answer.StatusCode != c.status {
				t.Errorf("%v %v", answer, err)
			}
		})
	}
}
