package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/server"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	handler := server.Headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/own" {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	for name, c := range map[string]struct{ path, header, want string }{
		"policy":                {"/", "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
		"a handler's own":       {"/own", "Content-Security-Policy", "default-src 'self'"},
		"no sniffing":           {"/", "X-Content-Type-Options", "nosniff"},
		"forms keep the origin": {"/", "Referrer-Policy", "same-origin"},
		"no opener":             {"/", "Cross-Origin-Opener-Policy", "same-origin"},
		"no embedding":          {"/", "Cross-Origin-Resource-Policy", "same-origin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
			if got := w.Header().Get(c.header); got != c.want || w.Code != http.StatusTeapot {
				t.Errorf("%d %s: %s", w.Code, c.header, got)
			}
			if strings.Contains(w.Header().Get("Content-Security-Policy"), "unsafe") {
				t.Error("the policy has an exception")
			}
		})
	}
}
