package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// look is a window and the colours that its owner likes.
type look struct {
	name          string
	width, height int64
	scheme        string
}

func looks() []look {
	return []look{
		{"phone-light", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"}, {"desk-light", 1280, 800, "light"}, {"desk-dark", 1280, 800, "dark"},
	}
}

// audit is axe-core's, by all its rules for WCAG 2.2 A and AA and for good practice, with the size of targets, which it leaves out by itself.
const audit = `axe.run({ resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }).then(({ violations }) =>
	violations.map(({ id, nodes }) => id + ": " + nodes.map((n) => n.html.slice(0, 120) + " " + n.failureSummary).join("; ")).join("\n"))`

// audit is what axe-core has against the page as it is now; empty: nothing.
func (p *person) audit() string {
	p.Helper()
	source, err := os.ReadFile("../js/node_modules/axe-core/axe.min.js") // make components
	must(p.T, err)
	if !p.scripts {
		p.switchScripts(true) // axe-core is one
		defer p.switchScripts(false)
	}
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := chromedp.Evaluate[bool]("globalThis.axe ? true : (() => {"+string(source)+"\nreturn true })()")(ctx, target)
		return err
	}))
	return testkit.Eval[string](p.Browser, audit)
}

// TestAuditFinds: that axe-core would find something is tried, too.
func TestAuditFinds(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	p.open("/nothing")
	if found := p.audit(); found != "" {
		t.Errorf("found %s", found)
	}
	testkit.Eval[string](p.Browser, `document.querySelector("main").innerHTML += "<input name=nameless>"`)
	if found := p.audit(); !strings.HasPrefix(found, "label: ") {
		t.Errorf("found %q, want the input without a label", found)
	}
}

// fits: nothing is wider than the window, buttons are as large as a finger (WCAG 2.5.5), and every style sheet is there.
func (p *person) fits(name string) {
	p.Helper()
	for _, expression := range []string{
		`document.documentElement.scrollWidth <= innerWidth`,
		`[...document.querySelectorAll("button")].every((b) => b.hidden || b.offsetHeight >= 44)`,
		`document.styleSheets.length > 0 && [...document.styleSheets].every((sheet) => sheet.cssRules.length > 0)`,
		`document.querySelectorAll("h1").length === 1`,
	} {
		if !testkit.Eval[bool](p.Browser, expression) {
			p.T.Errorf("%s: not %s", name, expression)
		}
	}
}

// TestReflow: a page that is magnified four times is 320 pixels wide, and still needs no scrolling to the side (WCAG 2.2, 1.4.10).
func TestReflow(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	p.Look(320, 640, "light")
	for _, s := range append(plainStates(), at("problem", "/idem/problems/duplicate_in_window")) {
		s.reach(p)
		p.fits(s.name)
	}
}

// shoot keeps a picture of the page, for people to look at, where SCREENSHOTS names a folder: see make screenshots.
func (p *person) shoot(name string) {
	p.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	must(p.T, os.MkdirAll(folder, 0o755))
	must(p.T, os.WriteFile(filepath.Join(folder, name+".png"), p.Picture(), 0o644))
}
