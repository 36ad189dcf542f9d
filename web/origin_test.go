package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/web"
)

// The cases of net/http's CrossOriginProtection, through the guard and through the token service.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		site, origin string
		allowed      []string
		refused      bool
		exposed      bool
	}{
		"same-origin":                 {site: "same-origin"},
		"none":                        {site: "none"},
		"cross-site":                  {site: "cross-site", refused: true},
		"same-site":                   {site: "same-site", refused: true},
		"neither header":              {},
		"origin of this host":         {origin: "https://example.com"},
		"origin of another host":      {origin: "https://attacker.example", refused: true},
		"origin of another port":      {origin: "https://example.com:8443", refused: true},
		"null origin":                 {origin: "null", refused: true},
		"same-origin, other origin":   {site: "same-origin", origin: "https://attacker.example"},
		"cross-site, same origin":     {site: "cross-site", origin: "https://example.com", refused: true},
		"trusted origin":              {site: "cross-site", origin: "https://shop.example", allowed: []string{"https://shop.example"}, exposed: true},
		"trusted origin, old browser": {origin: "https://shop.example", allowed: []string{"https://shop.example"}, exposed: true},
		"trusted, but another scheme": {site: "cross-site", origin: "http://shop.example", allowed: []string{"https://shop.example"}, refused: true},
		"trusted, but a longer name":  {site: "cross-site", origin: "https://shop.example.org", allowed: []string{"https://shop.example"}, refused: true},
		"second of two trusted":       {site: "cross-site", origin: "https://b.example", allowed: []string{"https://a.example", "https://b.example"}, exposed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *web.Config) { config.Origins = c.allowed })
			token := f.token("order.create").Token
			change := func(r *http.Request) {
				for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
			}
			guarded := f.guard.Token("order.create")(f.handler)
			service := f.request("/idem/token", "", "")
			change(service)
			for _, rec := range []*httptest.ResponseRecorder{f.do(guarded, f.order(token, change)), f.do(f.routes, service), f.do(guarded, f.order(token, change))} {
				if c.refused {
					refused(t, rec, 403, web.CrossOrigin)
				} else if rec.Code != 201 {
					t.Errorf("answered %d %s", rec.Code, rec.Body)
				}
				exposed := rec.Header().Get("Access-Control-Expose-Headers")
				if c.exposed && (rec.Header().Get("Access-Control-Allow-Origin") != c.origin || !strings.Contains(exposed, replayed) ||
					!strings.Contains(exposed, "Retry-After") || !strings.Contains(exposed, requestID)) {
					t.Errorf("header %v", rec.Header())
				}
				if !c.exposed && (exposed != "" || rec.Header().Get("Access-Control-Allow-Origin") != "") {
					t.Errorf("header %v", rec.Header())
				}
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *web.Config) { c.Origins = []string{"https://shop.example"} })
	for name, c := range map[string]struct {
		origin string
		status int
	}{
		"allowed":   {origin: "https://shop.example", status: 204},
		"another":   {origin: "https://attacker.example", status: 405},
		"no origin": {status: 405},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodOptions, "/idem/token", nil)
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
			rec := f.do(f.routes, r)
			if rec.Code != c.status {
				t.Fatalf("answered %d", rec.Code)
			}
			allowed := rec.Header().Get("Access-Control-Allow-Headers")
			if (c.status == 204) != (rec.Header().Get("Access-Control-Allow-Methods") == "POST" && strings.Contains(allowed, tokenHeader) &&
				strings.Contains(allowed, "Content-Type") && rec.Header().Get("Access-Control-Allow-Credentials") == "true") {
				t.Errorf("header %v", rec.Header())
			}
		})
	}
}
