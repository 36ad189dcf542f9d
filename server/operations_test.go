package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

// operations serves the routes of the back ends.
func operations(t *testing.T, b *server.Backends) string {
	t.Helper()
	guard, err := web.New(web.Config{Tokens: b.Tokens, Store: b.Store, Ledger: b.Ledger})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Group(b.Operations(guard, server.NewMetrics()))
	host := httptest.NewServer(r)
	t.Cleanup(host.Close)
	return host.URL
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	const (
		ok           = `{"status":"ok"}` + "\n"
		withoutRedis = `{"status":"degraded","away":["redis"]}` + "\n"
		withoutPG    = `{"status":"unavailable","away":["postgres"]}` + "\n"
		withoutAny   = `{"status":"unavailable","away":["redis","postgres"]}` + "\n"
	)
	type parts struct {
		redis    *testkit.RedisServer
		postgres *testkit.Link
	}
	cut := func(p parts) { p.postgres.Refuse(true); p.postgres.Cut() }
	freeze := func(t *testing.T, p parts) {
		if err := p.redis.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.redis.Signal(syscall.SIGCONT) })
	}
	for name, c := range map[string]struct {
		harm   func(t *testing.T, p parts)
		status int
		body   string
	}{
		"all is well":         {func(*testing.T, parts) {}, 200, ok},
		"Redis is gone":       {func(_ *testing.T, p parts) { p.redis.Kill() }, 200, withoutRedis},
		"Redis is frozen":     {freeze, 200, withoutRedis},
		"Postgres is gone":    {func(_ *testing.T, p parts) { cut(p) }, 503, withoutPG},
		"Postgres is too far": {func(_ *testing.T, p parts) { p.postgres.Latency(time.Minute) }, 503, withoutPG},
		"both are gone":       {func(_ *testing.T, p parts) { p.redis.Kill(); cut(p) }, 503, withoutAny},
		"Redis came back":     {func(t *testing.T, p parts) { p.redis.Kill(); p.redis.Restart(t) }, 200, ok},
		"Postgres came back":  {func(_ *testing.T, p parts) { cut(p); p.postgres.Refuse(false) }, 200, ok},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testkit.Postgres(t)
			p := parts{testkit.Redis(t), testkit.Proxy(t, database.Addr)}
			url := operations(t, open(t, map[string]string{
				"IDEM_REDIS_URL": "redis://" + p.redis.Addr, "IDEM_DATABASE_URL": database.URLVia(p.postgres.Addr()), "IDEM_KEYS": oneKey(t),
			}, discard()))
			c.harm(t, p)
			var last string
			testkit.Eventually(t, 20*time.Second, name, func() bool {
				begun := time.Now()
				res, body := send(t, client(t), http.MethodGet, url+"/readyz", "", nil)
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("took %v", took)
				}
				if body != last {
					t.Logf("%d %s", res.StatusCode, body)
				}
				last = body
				return res.StatusCode == c.status && body == c.body
			})
		})
	}
}

func TestOperationsOnEmbeddedStores(t *testing.T) {
	t.Parallel()
	b := open(t, nil, discard())
	url := operations(t, b)
	for name, c := range map[string]struct {
		method, path string
		status       int
		contentType  string
		contains     string
	}{
		"alive":                {http.MethodGet, "/healthz", 200, "application/json", `{"status":"ok"}`},
		"ready":                {http.MethodGet, "/readyz", 200, "application/json", `{"status":"ok"}`},
		"metrics":              {http.MethodGet, "/metrics", 200, "text/plain", "idem_entrance_failures_total 0"},
		"nothing else":         {http.MethodGet, "/debug/pprof", 404, "text/plain", ""},
		"not to be written to": {http.MethodPost, "/metrics", 405, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := send(t, client(t), c.method, url+c.path, "", nil)
			if res.StatusCode != c.status || !strings.HasPrefix(res.Header.Get("Content-Type"), c.contentType) || !strings.Contains(body, c.contains) {
				t.Errorf("%d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
			}
			if c.path != "/metrics" && c.status == 200 && res.Header.Get("Cache-Control") != "no-store" {
				t.Error("it may be cached")
			}
		})
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if res, body := send(t, client(t), http.MethodGet, url+"/readyz", "", nil); res.StatusCode != http.StatusServiceUnavailable || body != `{"status":"unavailable","away":["sqlite"]}`+"\n" {
		t.Errorf("with the file closed: %d %s", res.StatusCode, body)
	}
	if res, _ := send(t, client(t), http.MethodGet, url+"/healthz", "", nil); res.StatusCode != http.StatusOK {
		t.Errorf("the process is alive whatever its stores are: %d", res.StatusCode)
	}
}
