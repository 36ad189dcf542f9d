package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

// site is an application on the package, serving in the background.
type site struct {
	url     string
	guard   *web.Guard
	entered atomic.Int64 // requests of the guarded route that have arrived
	worked  atomic.Int64 // attempts begun
	release chan struct{}
	log     *journal
	stop    context.CancelFunc
	end     func() error // waits for Serve
}

// work answers once it is released.
func (s *site) work(w http.ResponseWriter, _ *http.Request) {
	n := s.worked.Add(1)
	<-s.release
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "order %d", n)
}

func (s *site) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.entered.Add(1); next.ServeHTTP(w, r) })
}

// start serves the back ends by the settings. The caller releases the work and stops the site; the test's end does it at the latest.
func start(t *testing.T, c server.Config, b *server.Backends) *site {
	t.Helper()
	s := &site{release: make(chan struct{}), log: &journal{}}
	metrics, logger := server.NewMetrics(), s.log.logger()
	guard, err := web.New(c.Web(b, metrics, logger))
	if err != nil {
		t.Fatal(err)
	}
	s.guard = guard
	r := chi.NewRouter()
	r.Use(c.Middleware(logger)...)
	r.Group(b.Operations(guard, metrics))
	r.Mount("/idem", guard.Routes())
	r.With(s.count, guard.Token("order.create")).Post("/orders", s.work)

	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	var ended error
	serving.Go(func() { ended = server.Serve(ctx, c, r, guard, logger) })
	s.stop, s.end = stop, func() error { serving.Wait(); return ended }
	t.Cleanup(func() {
		s.free()
		stop()
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, 10*time.Second, "it serves", func() bool {
		for _, line := range s.log.lines(t, "idem: serving") {
			s.url = "http://" + line["address"].(string)
		}
		return s.url != ""
	})
	return s
}

// free lets all work end.
func (s *site) free() {
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// browser keeps the subject's cookie.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t)
	c.Jar = jar
	return c
}

// token asks for one.
func (s *site) token(t *testing.T, c *http.Client) string {
	t.Helper()
	res, body := send(t, c, http.MethodPost, s.url+"/idem/token", `{"action":"order.create"}`, nil)
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	return answer.Token
}

// answer is what came of an order; it is not read before done is closed.
type answer struct {
	status   int
	body     string
	replayed bool
	err      error
	done     chan struct{}
}

// order sends one in the background.
func (s *site) order(t *testing.T, c *http.Client, token string) *answer {
	t.Helper()
	a := &answer{done: make(chan struct{})}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/orders", strings.NewReader("item=tea"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Idempotent-Token": {token}, "Content-Type": {"application/x-www-form-urlencoded"}}
	go func() {
		defer close(a.done)
		res, err := c.Do(req)
		if err != nil {
			a.err = err
			return
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		a.status, a.body, a.err, a.replayed = res.StatusCode, string(text), err, res.Header.Get("Idempotent-Replayed") == "true"
	}()
	return a
}

func TestServeLetsClaimedWorkFinish(t *testing.T) {
	t.Parallel()
	redis, postgres := testkit.Redis(t), testkit.Postgres(t)
	for name, environ := range map[string]map[string]string{
		"embedded":           {},
		"Redis and Postgres": {"IDEM_REDIS_URL": "redis://" + redis.Addr, "IDEM_DATABASE_URL": postgres.URL(), "IDEM_KEYS": oneKey(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, environ)
			environ["IDEM_DATABASE_URL"] = c.DatabaseURL.Reveal()
			b := open(t, environ, discard())
			s, user := start(t, c, b), browser(t)
			token := s.token(t, user)
			first := s.order(t, user, token)
			testkit.Eventually(t, 10*time.Second, "the work has begun", func() bool { return s.worked.Load() == 1 })
			second := s.order(t, user, token)
			testkit.Eventually(t, 10*time.Second, "the duplicate has arrived", func() bool { return s.entered.Load() == 2 })

			s.stop()
			testkit.Eventually(t, 10*time.Second, "no new connection is taken", func() bool {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = do(client(t), req)
				return err != nil
			})
			s.free()
			if err := s.end(); err != nil {
				t.Errorf("Serve: %v", err)
			}
			<-first.done
			<-second.done
			if first.err != nil || first.status != 201 || first.body != "order 1" {
				t.Errorf("the first: %+v", first)
			}
			if second.err != nil || second.status != 201 || second.body != "order 1" || !second.replayed || s.worked.Load() != 1 {
				t.Errorf("the duplicate: %+v after %d attempts", second, s.worked.Load())
			}

			// What finishes behind the answers is written: the next process replays.
			next := start(t, c, b)
			third := next.order(t, user, token)
			<-third.done
			if third.err != nil || third.body != "order 1" || !third.replayed || next.worked.Load() != 0 {
				t.Errorf("at the next process: %+v", third)
			}
		})
	}
}

func TestServeLogsWhereAndNoSecret(t *testing.T) {
	t.Parallel()
	c := load(t, map[string]string{"IDEM_KEYS": mark + ":" + strings.Repeat(mark, 11), "IDEM_SERVICE_KEY": mark, "IDEM_OPS_PASSWORD": mark})
	log := &journal{}
	b, err := server.Open(t.Context(), c, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s, user := start(t, c, b), browser(t)
	token := s.token(t, user)
	s.free()
	first := s.order(t, user, token)
	<-first.done
	forged := s.order(t, user, token+"x")
	<-forged.done
	if first.status != 201 || forged.status != 403 {
		t.Errorf("%+v %+v", first, forged)
	}
	if lines := s.log.lines(t, "idem: serving"); len(lines) != 1 || lines[0]["url"] != s.url {
		t.Errorf("%v", lines)
	}
	s.stop()
	if err := s.end(); err != nil {
		t.Error(err)
	}
	written := log.String() + s.log.String()
	for name, secret := range map[string]string{
		"a key or password": mark, "the token": token, "its signature": token[strings.LastIndexByte(token, '.'):], "the payload": "item=tea", "the cookie": "idem=",
	} {
		if strings.Contains(written, secret) {
			t.Errorf("%s is in the log:\n%s", name, written)
		}
	}
	if len(s.log.lines(t, "idem: stopping")) != 1 || len(s.log.lines(t, "request")) != 3 {
		t.Errorf("log: %s", s.log)
	}
}

func TestServeCannotListen(t *testing.T) {
	t.Parallel()
	c := load(t, nil)
	b := open(t, map[string]string{"IDEM_DATABASE_URL": c.DatabaseURL.Reveal()}, discard())
	s := start(t, c, b)
	c.Addr = strings.TrimPrefix(s.url, "http://")
	err := server.Serve(t.Context(), c, http.NotFoundHandler(), s.guard, discard())
	if err == nil || !strings.HasPrefix(err.Error(), "IDEM_ADDR: cannot listen: ") {
		t.Error(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Serve(over, c, http.NotFoundHandler(), s.guard, discard()); err != nil {
		t.Errorf("told to stop before it began: %v", err)
	}
}
