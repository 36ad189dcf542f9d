//go:build browser

package shop_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look is a window and the colours that its owner likes.
type look struct {
	width, height int64
	scheme        string
}

func (l look) String() string { return fmt.Sprintf("%s-%d", l.scheme, l.width) }

func looks() []look {
	return []look{{390, 844, "light"}, {390, 844, "dark"}, {1280, 800, "light"}, {1280, 800, "dark"}}
}

func wear(t *testing.T, ctx context.Context, l look) {
	t.Helper()
	scheme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}}
	must(t, chromedp.Do(ctx, chromedp.EmulateViewport(l.width, l.height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, scheme)
		return err
	})))
}

// shoot keeps a picture of the page, for people to look at, where DEMO_SHOTS names a folder.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	folder := os.Getenv("DEMO_SHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}

// Every page fits its window, has its style and its scripts, and its text can be read against what is behind it.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	receipt := s.order(s.token(), "", `{"item":"`+strings.Repeat("averylongword", 12)+`","quantity":99}`).Header.Get("Location")
	for _, l := range looks() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			ctx := chromium(t)
			visit(t, ctx, "about:blank")
			wear(t, ctx, l)
			for name, path := range map[string]string{
				"index": "/", "form": "/form", "spa": "/spa", "double-click": "/double-click", "receipt": receipt, "missing": "/nothing",
				"problem": "/idem/problems/payload_mismatch",
			} {
				visit(t, ctx, s.url+path)
				for expression, want := range map[string]bool{
					`document.documentElement.scrollWidth <= innerWidth`:                                      true,
					`[...document.styleSheets].every((sheet) => sheet.cssRules.length > 0)`:                   true,
					`document.styleSheets.length > 0`:                                                         true,
					`document.querySelector('[src*=idem-client]') === null || window.idem !== undefined`:      true,
					`matchMedia('(prefers-color-scheme: dark)').matches`:                                      l.scheme == "dark",
					`[...document.querySelectorAll('button')].every((b) => b.hidden || b.offsetHeight >= 44)`: true,
				} {
					if got := eval[bool](t, ctx, expression); got != want {
						t.Errorf("%s: %s is %v", name, expression, got)
					}
				}
				if faint := eval[string](t, ctx, faintTexts); faint != "" {
					t.Errorf("%s: cannot be read well: %s", name, faint)
				}
				shoot(t, ctx, name+"-"+l.String())
			}
		})
	}
}

// faintTexts are those with a contrast below 4.5 : 1 (WCAG 2.2, 1.4.3).
const faintTexts = `(() => {
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parse(colour).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parse(colour)[3] ?? 1) > 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = [];
  for (const element of document.querySelectorAll('main *, header *')) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join('');
    if (!text || !element.checkVisibility() || element.closest('noscript')) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(text.slice(0, 30) + ' ' + contrast.toFixed(1));
  }
  return faint.join('; ');
})()`

// A person's double click on the form, with and without the scripts of the page, leads to one order and its receipt.
func TestDoubleClickOnTheForm(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{"quick": "/form", "slow": "/form?delay=800ms"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t, onSQLite(t)), chromium(t)
			wanted := item()
			visit(t, ctx, s.url+page)
			eval[string](t, ctx, fmt.Sprintf(`document.getElementById('item').value = %q`, wanted))
			doubleClick(t, ctx, "button.primary")
			until(t, ctx, `document.querySelector('.total') !== null`)
			if got := eval[string](t, ctx, `document.querySelector('.total b').textContent`); got != "once" {
				t.Errorf("ordered %s", got)
			}
			s.wantOrders(wanted, 1)
		})
	}
}

// The form that comes back with an error can be corrected in place; the browser's own checks are passed by.
func TestCorrectedInTheBrowser(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, onSQLite(t)), chromium(t)
	wanted := item()
	visit(t, ctx, s.url+"/form")
	eval[string](t, ctx, fmt.Sprintf(`(document.getElementById('quantity').value = '100', document.getElementById('item').value = %q)`, wanted))
	must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("button.primary"))))
	until(t, ctx, `document.querySelector('.says')?.textContent === 'Quantity must be a whole number from 1 to 99.'`)
	for expression, want := range map[string]string{
		`document.getElementById('quantity').value`:                            "100",
		`document.getElementById('item').value`:                                wanted,
		`document.getElementById('quantity').getAttribute('aria-describedby')`: "quantity-wrong",
		`document.querySelector('[role=alert]').textContent`:                   "Nothing was ordered yet. Please look at the fields marked below.",
	} {
		if got := eval[string](t, ctx, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	eval[string](t, ctx, `document.getElementById('quantity').value = '9'`)
	must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("button[value=another]"))))
	until(t, ctx, `document.querySelector('[role=status]')?.textContent.includes('is placed') ?? false`)
	s.wantOrders(wanted, 1)
}

// Back, and another text under the token that is spent: the guard says so in the shop's layout, and keeps what was typed.
func TestBackAndEdit(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, onSQLite(t)), chromium(t)
	wanted, other := item(), item()
	visit(t, ctx, s.url+"/form")
	eval[string](t, ctx, fmt.Sprintf(`document.getElementById('item').value = %q`, wanted))
	must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("button.primary"))))
	until(t, ctx, `document.querySelector('.total') !== null`)
	eval[int](t, ctx, `(history.back(), 1)`)
	until(t, ctx, `document.readyState === 'complete' && document.getElementById('item') !== null`)
	eval[string](t, ctx, fmt.Sprintf(`document.getElementById('item').value = %q`, other))
	must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("button.primary"))))
	until(t, ctx, `document.querySelector('.idem-problem, .receipt') !== null`)
	if eval[bool](t, ctx, `document.querySelector('.idem-problem') !== null`) { // the page came from the browser's cache, spent token and all
		wear(t, ctx, looks()[2])
		shoot(t, ctx, "refusal")
		must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(".idem-form button"))))
		until(t, ctx, `document.querySelector('.receipt') !== null`)
	}
	s.wantOrders(wanted, 1)
	s.wantOrders(other, 1)
}
