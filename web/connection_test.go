package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

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
		w.WriteHeader(http.StatusCreated)
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
	if err != nil || hints.StatusCode != http.StatusEarlyHints || hints.Header.Get("Link") == "" {
		t.Fatalf("%v %v", hints, err)
	}
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusCreated || answer.Header.Get("X-Final") != "1" || !slices.Equal(answer.Header["Link"], []string{"</a.css>; rel=preload"}) {
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
	if err != nil || answer.StatusCode != http.StatusCreated || answer.Header.Get(replayed) != "true" || text != "order 1" {
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
			if invited := answer.StatusCode == http.StatusContinue; invited != c.invited {
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

// What net/http adds to an answer of its own accord it adds to the replay too.
func TestReplayOverTheWire(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(w http.ResponseWriter, r *http.Request){
		"sniffed": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!DOCTYPE html><p>x") },
		"no type wanted": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<html>")
		},
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "x")
			fmt.Fprint(w, "<html>")
		},
		"empty":        func(http.ResponseWriter, *http.Request) {},
		"no content":   status(204),
		"not modified": status(304),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{then: then}
			s := f.serve(f.guard.Token("order.create")(h))
			first, text, err := s.send(s.order(token))
			if err != nil {
				t.Fatal(err)
			}
			second, again, err := s.send(s.order(token))
			if err != nil || again != text || second.StatusCode != first.StatusCode || second.Header.Get(replayed) != "true" {
				t.Errorf("%q, then %q, %v", text, again, err)
			}
			for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding"} {
				if !slices.Equal(first.Header[name], second.Header[name]) {
					t.Errorf("%s was %q, then %q", name, first.Header[name], second.Header[name])
				}
			}
		})
	}
}
