package templates_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/js"
	"github.com/idemkit/idem/templates"
)

// Run with -update after a change that is meant, and read the difference.
var update = flag.Bool("update", false, "write testdata/*.golden")

// ring is an issuer that counts.
type ring struct {
	mu    sync.Mutex
	asked []string
	fails error
}

func (r *ring) Token(_ context.Context, action, requestID string) (templates.Token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails != nil {
		return templates.Token{}, r.fails
	}
	r.asked = append(r.asked, action+"/"+requestID)
	n := len(r.asked)
	if requestID == "" {
		requestID = fmt.Sprintf("request-%d", n)
	}
	return templates.Token{Value: fmt.Sprintf("token-%d", n), RequestID: requestID, Action: action, ExpiresAt: time.Unix(1800000000, 0)}, nil
}

// assets do not change with the client or the style sheet, so that the golden files do not either.
func assets() templates.Assets {
	return templates.Assets{Prefix: "/idem", Script: js.NewAsset("idem-client.js", "client"), Style: js.NewAsset("idem.css", "style")}
}

func onPage(t *testing.T, issuer templates.Issuer) context.Context {
	t.Helper()
	return templates.WithPage(t.Context(), templates.Page{Issuer: issuer, Assets: assets()})
}

func render(ctx context.Context, t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(ctx, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// with renders children inside a component, as a templ block does.
func with(c templ.Component, children ...templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return c.Render(templ.WithChildren(ctx, templ.Join(children...)), w)
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", path, got, want)
	}
}
