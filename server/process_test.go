package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// shared are the settings of processes that have everything in common.
func shared(t *testing.T, redisAddr string) map[string]string {
	t.Helper()
	return map[string]string{
		"IDEM_REDIS_URL": "redis://" + redisAddr, "IDEM_DATABASE_URL": testkit.Postgres(t).URL(), "IDEM_KEYS": oneKey(t),
	}
}

// An order at one process and its duplicate at another are one order.
func TestTwoProcessesShareEverything(t *testing.T) {
	t.Parallel()
	environ := shared(t, testkit.Redis(t).Addr)
	one := start(t, load(t, environ), open(t, environ, discard()))
	other := start(t, load(t, environ), open(t, environ, discard()))
	user := browser(t)
	token := one.token(t, user)

	first := one.order(t, user, token)
	testkit.Eventually(t, 10*time.Second, "the work has begun", func() bool { return one.worked.Load() == 1 })
	duplicate := other.order(t, user, token)
	testkit.Eventually(t, 10*time.Second, "the duplicate has arrived", func() bool { return other.entered.Load() == 1 })
	one.free()
	<-first.done
	<-duplicate.done
	if first.err != nil || first.status != 201 || first.replayed {
		t.Errorf("the first: %+v", first)
	}
	if duplicate.err != nil || duplicate.status != 201 || !duplicate.replayed || duplicate.body != first.body || other.worked.Load() != 0 {
		t.Errorf("the duplicate: %+v", duplicate)
	}
}

// A token outlives a restart of the demo's default stores: the memory is lost, key file and ledger are not.
func TestRestartOnEmbeddedStores(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "a.db")}
	user := browser(t)
	before := start(t, load(t, environ), open(t, environ, discard()))
	done, fresh := before.token(t, user), before.token(t, user)
	before.free()
	first := before.order(t, user, done)
	<-first.done
	before.stop()
	if err := before.end(); err != nil {
		t.Fatal(err)
	}

	after := start(t, load(t, environ), open(t, environ, discard()))
	after.free()
	for name, c := range map[string]struct {
		token    string
		replayed bool
	}{"of an order that is done": {done, true}, "that was not used yet": {fresh, false}} {
		again := after.order(t, user, c.token)
		<-again.done
		if again.err != nil || again.status != 201 || again.replayed != c.replayed {
			t.Errorf("the token %s: %+v", name, again)
		}
	}
	if n := after.worked.Load(); n != 1 {
		t.Errorf("%d attempts after the restart", n)
	}
}

// With Redis away tokens are issued and orders served; the metrics say so.
func TestRedisAwayIsServedByTheLedger(t *testing.T) {
	t.Parallel()
	redis := testkit.Redis(t)
	environ := shared(t, redis.Addr)
	s, user := start(t, load(t, environ), open(t, environ, discard())), browser(t)
	s.free()
	kept := s.token(t, user)
	redis.Kill()
	for name, token := range map[string]string{"from before": kept, "from meanwhile": s.token(t, user)} {
		first := s.order(t, user, token)
		<-first.done
		again := s.order(t, user, token)
		<-again.done
		if first.err != nil || first.status != 201 || first.replayed || again.err != nil || again.body != first.body || !again.replayed {
			t.Errorf("a token %s: %+v, then %+v", name, first, again)
		}
	}
	if n := s.worked.Load(); n != 2 {
		t.Errorf("%d attempts", n)
	}
	res, text := send(t, user, http.MethodGet, s.url+"/metrics", "", nil)
	if res.StatusCode != http.StatusOK || strings.Contains(text, "idem_entrance_failures_total 0\n") ||
		!strings.Contains(text, `idem_calls_total{outcome="executed",type="order.create"} 2`) {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if res, body := send(t, user, http.MethodGet, s.url+"/readyz", "", nil); res.StatusCode != http.StatusOK || !strings.Contains(body, `"degraded"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestSettingsReachTheRoutes(t *testing.T) {
	t.Parallel()
	t.Run("IDEM_WAIT=0: a duplicate does not wait", func(t *testing.T) {
		t.Parallel()
		environ := map[string]string{"IDEM_WAIT": "0"}
		s, user := start(t, load(t, environ), open(t, environ, discard())), browser(t)
		token := s.token(t, user)
		first := s.order(t, user, token)
		testkit.Eventually(t, 10*time.Second, "the work has begun", func() bool { return s.worked.Load() == 1 })
		second := s.order(t, user, token)
		<-second.done
		if second.err != nil || second.status != http.StatusConflict || !strings.Contains(second.body, `"code":"in_progress"`) {
			t.Errorf("%+v", second)
		}
		s.free()
		<-first.done
		if first.status != http.StatusCreated {
			t.Errorf("%+v", first)
		}
	})
	t.Run("IDEM_TOKEN_TTL: expiresIn", func(t *testing.T) {
		t.Parallel()
		host, _ := guarded(t, map[string]string{"IDEM_TOKEN_TTL": "1h"})
		_, body := send(t, client(t), http.MethodPost, host+"/idem/token", "", nil)
		if !strings.Contains(body, `"expiresIn":3600`) && !strings.Contains(body, `"expiresIn":3601`) {
			t.Error(body)
		}
	})
	for public, want := range map[string]string{"": "idem=", "http://shop.example": "idem=", "https://shop.example": "__Host-idem="} {
		t.Run("IDEM_PUBLIC_URL="+public, func(t *testing.T) {
			t.Parallel()
			host, _ := guarded(t, map[string]string{"IDEM_PUBLIC_URL": public})
			res, _ := send(t, client(t), http.MethodPost, host+"/idem/token", "", nil)
			cookie := res.Header.Get("Set-Cookie")
			if !strings.HasPrefix(cookie, want) || strings.Contains(cookie, "; Secure") != strings.HasPrefix(public, "https") {
				t.Error(cookie)
			}
		})
	}
}

// A proxy that changes Host must not make the site's own pages another origin's.
func TestPublicOriginIsOurOwn(t *testing.T) {
	t.Parallel()
	host, _ := guarded(t, map[string]string{"IDEM_PUBLIC_URL": "https://Shop.example"})
	for origin, status := range map[string]int{
		"https://shop.example": http.StatusCreated, "https://evil.example": http.StatusForbidden, "http://shop.example": http.StatusForbidden, "": http.StatusCreated,
	} {
		t.Run(strconv.Quote(origin), func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			if res, body := send(t, client(t), http.MethodPost, host+"/idem/token", "", header); res.StatusCode != status {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		})
	}
}

// A browser's idle connections do not hold the stop up.
func TestServeStopsBesideIdleConnections(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, nil), open(t, nil, discard()))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	user := client(t)
	user.Jar = jar
	for range 3 {
		s.token(t, user)
	}
	u, err := url.Parse(s.url)
	if err != nil || len(jar.Cookies(u)) != 1 {
		t.Errorf("%v, %v", jar.Cookies(u), err)
	}
	begun := time.Now()
	s.stop()
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
}
