package js_test

import (
	"os"
	"strings"
	"testing"

	"github.com/idemkit/idem/js"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	for file, asset := range map[string]js.Asset{"htmx.js": js.HTMX(), "turbo.js": js.Turbo()} {
		onDisk, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(asset.Source) != string(onDisk) || asset.Name != "idem-"+file {
			t.Errorf("%s differs from %s", asset.Name, file)
		}
		if lines := strings.Count(string(onDisk), "\n"); lines > 80 {
			t.Errorf("%s has %d lines; a hook is a few", file, lines)
		}
	}
}
