package js_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
)

// bundle is an application with a client of its own, made by esbuild.
func bundle(t *testing.T, flags ...string) []byte {
	t.Helper()
	arguments := append([]string{"tool", "-modfile=../tools/go.mod", "esbuild", "--bundle", "--target=es2022"}, flags...)
	cmd := exec.Command("go", arguments...)
	cmd.Stdin = strings.NewReader(`import { createClient, idem } from './idem-client.js';
		globalThis.app = createClient({ action: 'order.create' }); globalThis.mine = idem;`)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	made, err := cmd.Output()
	if err != nil {
		t.Fatalf("esbuild: %v: %s", err, complaints.String())
	}
	return made
}

// TestBundled: a classic script or a module, before the page's own copy of the client, under a policy that allows nothing inline.
func TestBundled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		tag   string
	}{
		"classic script": {[]string{"--format=iife", "--minify"}, `<script defer src="/app.js"></script>`},
		"module":         {[]string{"--format=esm"}, `<script type="module" src="/app.js"></script>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := bundle(t, tc.flags...)
			a := newAPI(t, away("0"))
			a.head = tc.tag
			page := a.Config.Handler
			a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/app.js" {
					page.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write(made)
			})
			b := a.open()
			testkit.Check(b, `mine === idem`, true)
			testkit.Check(b, `Promise.all([1, 2].map(() => app.fetch('/orders', { json: { item: 'tea' } }))).then((all) => all.map((r) => r.status).join())`, "201,201")
			same(t, a.reached(2)...)
			if asked := a.asked[0]["action"]; asked != "order.create" {
				t.Errorf("asked for a token for %v", asked)
			}
		})
	}
}
