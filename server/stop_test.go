package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A request that outlives every limit is cut, and the caller is told.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	begun, forever := make(chan struct{}), make(chan struct{})
	defer close(forever)
	host := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-forever })}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served, cut := make(chan error, 1), make(chan error, 1)
	go func() { served <- host.Serve(listener) }()
	go func() {
		transport := &http.Transport{DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+listener.Addr().String(), nil)
		if err == nil {
			var res *http.Response
			if res, err = transport.RoundTrip(req); err == nil {
				err = res.Body.Close()
			}
		}
		cut <- err
	}()
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = stop(ended, host, 20*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "stopping: requests were cut: ") {
		t.Error(err)
	}
	if err := <-cut; err == nil {
		t.Error("the client was answered")
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ public, bound, want string }{
		"loopback":              {"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		"every interface":       {"", "0.0.0.0:8080", "http://localhost:8080"},
		"every interface, IPv6": {"", "[::]:8080", "http://localhost:8080"},
		"IPv6":                  {"", "[::1]:80", "http://[::1]:80"},
		"public":                {"https://Shop.example:443/", "0.0.0.0:8080", "https://shop.example"},
		"public, another port":  {"https://shop.example:80", "0.0.0.0:8080", "https://shop.example:80"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound, err := net.ResolveTCPAddr("tcp", c.bound)
			if err != nil {
				t.Fatal(err)
			}
			if got := (Config{PublicURL: c.public}).url(bound); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestRedisLog(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{slog.LevelDebug: "level=DEBUG msg=\"redis: dial 1 of 2\"\n", slog.LevelInfo: ""} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})
			redisLog{slog.New(handler)}.Printf(t.Context(), "dial %d of %d", 1, 2)
			if out.String() != want {
				t.Errorf("%q", out.String())
			}
		})
	}
}
