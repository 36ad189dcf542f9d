package js_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/idemkit/idem/js"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	asset := js.Load()
	onDisk, err := os.ReadFile("idem-client.js")
	if err != nil {
		t.Fatal(err)
	}
	if string(asset.Source) != string(onDisk) {
		t.Error("the embedded client differs from idem-client.js")
	}
	for name, pattern := range map[string]string{
		asset.Name:       `^idem-client\.js$`,
		asset.HashedName: `^idem-client\.[0-9a-f]{12}\.js$`,
		asset.Integrity:  `^sha384-[A-Za-z0-9+/]{64}$`,
		asset.ETag:       `^"[0-9a-f]{32}"$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(name) {
			t.Errorf("%q does not match %s", name, pattern)
		}
	}
}

func TestLoadHandsOutItsOwnCopy(t *testing.T) {
	t.Parallel()
	js.Load().Source[0] = 'X'
	if js.Load().Source[0] == 'X' {
		t.Error("a change of one copy shows in the next")
	}
}

func TestNewAsset(t *testing.T) {
	t.Parallel()
	// Sums of "alert(1)\n" by sha256sum, and by openssl dgst -sha384 -binary | base64.
	const source = "alert(1)\n"
	got := js.NewAsset("a.b.js", source)
	want := js.Asset{
		Name:       "a.b.js",
		HashedName: "a.b.31a783eed424.js",
		Integrity:  "sha384-Vak0Zcr3bxd8tq03epnMvktUZupI6KlqYOa+TS7L9/HvJHvuB6S2m74oday+ttbz",
		ETag:       `"31a783eed424fd837277a3e6f49d7644"`,
	}
	if string(got.Source) != source {
		t.Errorf("source %q", got.Source)
	}
	if got.Name != want.Name || got.HashedName != want.HashedName || got.Integrity != want.Integrity || got.ETag != want.ETag {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if other := js.NewAsset("a.b.js", source+" "); other.HashedName == got.HashedName || other.Integrity == got.Integrity || other.ETag == got.ETag {
		t.Error("another content under the same hash")
	}
}

// A strict Content-Security-Policy runs neither of these.
func TestClientIsSafeUnderStrictPolicy(t *testing.T) {
	t.Parallel()
	source := string(js.Load().Source)
	for _, forbidden := range []string{"eval(", "new Function", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "javascript:", ".style"} {
		if strings.Contains(source, forbidden) {
			t.Errorf("the client uses %s", forbidden)
		}
	}
}
