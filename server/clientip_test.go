package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestClientIP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		public, remote string
		forwarded      []string
		want           string
	}{
		"nothing in front":                  {"", "192.0.2.1:9", nil, "192.0.2.1"},
		"nothing in front, header forged":   {"", "192.0.2.1:9", []string{"203.0.113.9"}, "192.0.2.1"},
		"nothing in front, from loopback":   {"", "127.0.0.1:9", []string{"203.0.113.9"}, "127.0.0.1"},
		"a proxy on this host":              {"https://shop.example", "127.0.0.1:9", []string{"203.0.113.9"}, "203.0.113.9"},
		"a proxy in the private network":    {"http://shop.example", "10.1.2.3:9", []string{"203.0.113.9"}, "203.0.113.9"},
		"a proxy by IPv6":                   {"https://shop.example", "[fd00::1]:9", []string{"2001:db8:0:7::9"}, "2001:db8:0:7::"},
		"what the client wrote before":      {"https://shop.example", "127.0.0.1:9", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"in a line of its own":              {"https://shop.example", "127.0.0.1:9", []string{"198.51.100.1", "203.0.113.9"}, "203.0.113.9"},
		"past the proxy, header forged":     {"https://shop.example", "192.0.2.1:9", []string{"203.0.113.9"}, "192.0.2.1"},
		"proxy without the header":          {"https://shop.example", "127.0.0.1:9", nil, "127.0.0.1"},
		"proxy with something else in it":   {"https://shop.example", "127.0.0.1:9", []string{"unknown"}, "127.0.0.1"},
		"IPv4 as a dual-stack listener has": {"", "[::ffff:192.0.2.1]:9", nil, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			handler := Config{PublicURL: c.public}.ClientIP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = address(r) }))
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			if c.forwarded != nil {
				r.Header["X-Forwarded-For"] = c.forwarded
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
