package testkit_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idemkit/idem/internal/testkit"
)

// lines is a server that answers every line with itself and counts what it received.
func lines(t *testing.T) (addr string, received *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received = new(atomic.Int64)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					received.Add(1)
					_, _ = io.WriteString(conn, line)
				}
			}()
		}
	}()
	return listener.Addr().String(), received
}

type peer struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{conn, bufio.NewReader(conn)}
}

func (p *peer) ask(line string) (string, error) {
	if _, err := io.WriteString(p, line+"\n"); err != nil {
		return "", err
	}
	answer, err := p.in.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

func TestProxy(t *testing.T) {
	t.Parallel()
	answered := func(t *testing.T, p *peer) {
		t.Helper()
		if got, err := p.ask("hello"); got != "hello" || err != nil {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	broken := func(t *testing.T, p *peer) {
		t.Helper()
		if got, err := p.ask("hello"); err == nil {
			t.Fatalf("answer %q over a broken link", got)
		}
	}
	tests := map[string]func(*testing.T, *testkit.Link, *atomic.Int64){
		"without faults": func(t *testing.T, link *testkit.Link, _ *atomic.Int64) {
			p := dial(t, link.Addr())
			answered(t, p)
			answered(t, p)
		},
		"one reply lost": func(t *testing.T, link *testkit.Link, received *atomic.Int64) {
			p := dial(t, link.Addr())
			answered(t, p)
			link.DropReplies(1)
			broken(t, p)
			if received.Load() != 2 {
				t.Errorf("the server received %d lines, not 2", received.Load())
			}
			answered(t, dial(t, link.Addr()))
		},
		"all replies lost until switched off": func(t *testing.T, link *testkit.Link, received *atomic.Int64) {
			link.DropReplies(-1)
			for range 3 {
				broken(t, dial(t, link.Addr()))
			}
			if received.Load() != 3 {
				t.Errorf("the server received %d lines, not 3", received.Load())
			}
			link.DropReplies(0)
			answered(t, dial(t, link.Addr()))
		},
		"what was sent before the reply was lost is carried out": func(t *testing.T, link *testkit.Link, received *atomic.Int64) {
			p := dial(t, link.Addr())
			link.DropReplies(1)
			_, _ = io.WriteString(p, strings.Repeat("x\n", 500))
			if _, err := p.in.ReadByte(); err == nil {
				t.Error("a reply came through")
			}
			testkit.Eventually(t, 10*time.Second, "all 500 lines arrive", func() bool { return received.Load() == 500 })
		},
		"latency": func(t *testing.T, link *testkit.Link, _ *atomic.Int64) {
			p := dial(t, link.Addr())
			link.Latency(50 * time.Millisecond)
			start := time.Now()
			answered(t, p)
			if took := time.Since(start); took < 50*time.Millisecond {
				t.Errorf("took %v", took)
			}
			link.Latency(0)
			answered(t, p)
		},
		"latency without end ends with the test": func(t *testing.T, link *testkit.Link, _ *atomic.Int64) {
			link.Latency(time.Hour)
			_, _ = io.WriteString(dial(t, link.Addr()), "hello\n")
		},
		"cut": func(t *testing.T, link *testkit.Link, _ *atomic.Int64) {
			p, q := dial(t, link.Addr()), dial(t, link.Addr())
			answered(t, p)
			answered(t, q)
			link.Cut()
			broken(t, p)
			broken(t, q)
			answered(t, dial(t, link.Addr()))
		},
		"refuse": func(t *testing.T, link *testkit.Link, received *atomic.Int64) {
			p := dial(t, link.Addr())
			answered(t, p)
			link.Refuse(true)
			answered(t, p)
			if conn, err := net.Dial("tcp", link.Addr()); err == nil {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					t.Error("a refused connection was served")
				}
			}
			link.Refuse(false)
			answered(t, dial(t, link.Addr()))
			if received.Load() != 3 {
				t.Errorf("the server received %d lines, not 3", received.Load())
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, received := lines(t)
			test(t, testkit.Proxy(t, addr), received)
		})
	}
}

func TestProxyWithoutTarget(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if got, err := dial(t, testkit.Proxy(t, listener.Addr().String()).Addr()).ask("hello"); err == nil {
		t.Errorf("answer %q with nobody there", got)
	}
}

func TestProxyCarriesHTTP(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	link := testkit.Proxy(t, server.Listener.Addr().String())
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	post := func() (string, error) {
		response, err := client.Post("http://"+link.Addr(), "text/plain", strings.NewReader("hello"))
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	if got, err := post(); got != "hello" || err != nil {
		t.Errorf("answer %q, %v", got, err)
	}
	link.DropReplies(1)
	if got, err := post(); err == nil {
		t.Errorf("answer %q, although it was dropped", got)
	}
	if served.Load() != 2 {
		t.Errorf("served %d requests, not 2", served.Load())
	}
}

// Not parallel: it looks at all goroutines.
func TestProxyLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("used", func(t *testing.T) {
		addr, _ := lines(t)
		for _, fault := range []func(*testkit.Link){
			func(*testkit.Link) {},
			func(link *testkit.Link) { link.DropReplies(-1) },
			func(link *testkit.Link) { link.Latency(time.Hour) },
			func(link *testkit.Link) { link.Refuse(true) },
			func(link *testkit.Link) { link.Cut() },
		} {
			link := testkit.Proxy(t, addr)
			p := dial(t, link.Addr())
			fault(link)
			_, _ = io.WriteString(p, "hello\n")
			if conn, err := net.Dial("tcp", link.Addr()); err == nil {
				defer conn.Close()
			}
		}
	})
	goleak.VerifyNone(t, before)
}
