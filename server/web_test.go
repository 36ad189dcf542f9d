package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/web"
)

func TestWebConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ map[string]string
		holds   func(web.Config) bool
	}{
		"defaults": {nil, func(w web.Config) bool {
			return w.Lease == 15*time.Second && w.Wait == 10*time.Second && w.Retention == 720*time.Hour && w.ResultRetention == 24*time.Hour &&
				!w.TLS && w.Origins == nil && w.TokenLimit != nil && w.Tokens.TTL() == 30*time.Minute
		}},
		"no waiting":      {map[string]string{"IDEM_WAIT": "0"}, func(w web.Config) bool { return w.Wait < 0 }},
		"no rate":         {map[string]string{"IDEM_TOKEN_RATE": "off"}, func(w web.Config) bool { return w.TokenLimit == nil }},
		"life of a token": {map[string]string{"IDEM_TOKEN_TTL": "1m"}, func(w web.Config) bool { return w.Tokens.TTL() == time.Minute }},
		"no service key":  {nil, func(w web.Config) bool { return w.ServiceKeys == nil }},
		"service key": {map[string]string{"IDEM_SERVICE_KEY": "tea"}, func(w web.Config) bool {
			return len(w.ServiceKeys) == 1 && w.ServiceKeys[0] == "tea"
		}},
		"TLS in front": {map[string]string{"IDEM_PUBLIC_URL": "HTTPS://Shop.example:443/"}, func(w web.Config) bool {
			return w.TLS && fmt.Sprint(w.Origins) == "[https://shop.example]"
		}},
		"plain HTTP in front": {map[string]string{"IDEM_PUBLIC_URL": "http://shop.example:8080"}, func(w web.Config) bool {
			return !w.TLS && fmt.Sprint(w.Origins) == "[http://shop.example:8080]"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := load(t, c.environ).Web(open(t, c.environ, discard()), server.NewMetrics(), discard())
			if !c.holds(w) {
				t.Errorf("%+v", w)
			}
			if _, err := web.New(w); err != nil {
				t.Error(err)
			}
		})
	}
}

// guarded serves the token service and one guarded route by the settings.
func guarded(t *testing.T, environ map[string]string) (url string, metrics *server.Metrics) {
	t.Helper()
	c, metrics := load(t, environ), server.NewMetrics()
	guard, err := web.New(c.Web(open(t, environ, discard()), metrics, discard()))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/idem/", guard.Routes())
	mux.Handle("/orders", guard.Token("order.create")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("fail") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})))
	host := httptest.NewServer(c.ClientIP(mux))
	t.Cleanup(func() {
		host.Close()
		if err := guard.Drain(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return host.URL, metrics
}

func TestTokenRateOverHTTP(t *testing.T) {
	t.Parallel()
	url, _ := guarded(t, map[string]string{"IDEM_TOKEN_RATE": "10/1h", "IDEM_PUBLIC_URL": "http://shop.example"})
	user := browser(t)
	for i, c := range []struct {
		client *http.Client
		from   string
		count  int
		status int
	}{
		{user, "192.0.2.1", 1, 201},              // gets its cookie
		{user, "192.0.2.1", 9, 201},              // nobody's subject counted the first
		{user, "192.0.2.1", 2, 429},              // 9 and 2 are over ten
		{user, "192.0.2.1", 1, 201},              // 10
		{user, "192.0.2.9", 1, 429},              // the subject is over, whatever its address
		{browser(t), "192.0.2.1", 32, 201},       // a browser without a cookie: the address alone counts, 43
		{browser(t), "192.0.2.1", 32, 201},       // 75
		{browser(t), "192.0.2.1", 32, 429},       // over a hundred
		{browser(t), "192.0.2.2", 32, 201},       // another address
		{browser(t), "x, 192.0.2.1", 32, 429},    // what a client claims in front of the proxy's entry changes nothing
		{browser(t), "192.0.2.2, 1.1.1", 1, 201}, // garbage from the proxy: the connection's address
	} {
		res, body := send(t, c.client, http.MethodPost, url+"/idem/token", fmt.Sprintf(`{"count":%d}`, c.count), http.Header{"X-Forwarded-For": {c.from}})
		if res.StatusCode != c.status {
			t.Errorf("call %d: %d %s", i+1, res.StatusCode, body)
		}
		if limited := c.status == 429; limited && (!strings.Contains(body, `"code":"rate_limited"`) || res.Header.Get("Retry-After") != "3600") {
			t.Errorf("call %d: Retry-After %s, %s", i+1, res.Header.Get("Retry-After"), body)
		}
	}
}

func TestMetricsOfAGuardedRoute(t *testing.T) {
	t.Parallel()
	url, metrics := guarded(t, nil)
	s, user := &site{url: url}, browser(t)
	token := s.token(t, user)
	for _, query := range []string{"?fail=500", "", "", ""} {
		send(t, user, http.MethodPost, url+"/orders"+query, "", http.Header{"Idempotent-Token": {token}})
	}
	text := scrape(metrics)
	for _, want := range []string{
		`idem_calls_total{outcome="failed",type="order.create"} 1`,
		`idem_calls_total{outcome="executed",type="order.create"} 1`,
		`idem_calls_total{outcome="replayed",type="order.create"} 2`,
		`idem_call_duration_seconds_count{outcome="replayed"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, token) {
		t.Error("a token is in the metrics")
	}
}
