package shop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
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

// shoot keeps a picture of the page, for people to look at, where DEMO_SHOTS names a folder.
func shoot(t *testing.T, b testkit.Browser, name string) {
	t.Helper()
	folder := os.Getenv("DEMO_SHOTS")
	if folder == "" {
		return
	}
	must(t, os.WriteFile(filepath.Join(folder, name+".png"), b.Picture(), 0o644))
}

// Every page fits its window, has its style and its scripts, and its text can be read against what is behind it.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	receipt := s.order(s.token(), "", `{"item":"`+strings.Repeat("averylongword", 12)+`","quantity":99}`).Header.Get("Location")
	for _, l := range looks() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := testkit.Chromium(t)
			b.Visit("about:blank")
			b.Look(l.width, l.height, l.scheme)
			for name, path := range map[string]string{
				"index": "/", "form": "/form", "spa": "/spa", "double-click": "/double-click", "receipt": receipt, "missing": "/nothing",
				"problem": "/idem/problems/payload_mismatch",
			} {
				b.Visit(s.url + path)
				for expression, want := range map[string]bool{
					`document.documentElement.scrollWidth <= innerWidth`:                                      true,
					`[...document.styleSheets].every((sheet) => sheet.cssRules.length > 0)`:                   true,
					`document.styleSheets.length > 0`:                                                         true,
					`document.querySelector('[src*=idem-client]') === null || window.idem !== undefined`:      true,
					`matchMedia('(prefers-color-scheme: dark)').matches`:                                      l.scheme == "dark",
					`[...document.querySelectorAll('button')].every((b) => b.hidden || b.offsetHeight >= 44)`: true,
				} {
					if got := testkit.Eval[bool](b, expression); got != want {
						t.Errorf("%s: %s is %v", name, expression, got)
					}
				}
				if faint := testkit.Eval[string](b, faintTexts); faint != "" {
					t.Errorf("%s: cannot be read well: %s", name, faint)
				}
				shoot(t, b, name+"-"+l.String())
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
			s, b := open(t, onSQLite(t)), testkit.Chromium(t)
			wanted := item()
			b.Visit(s.url + page)
			testkit.Eval[string](b, fmt.Sprintf(`document.getElementById('item').value = %q`, wanted))
			b.DoubleClick("button.primary")
			b.Until(`document.querySelector('.total') !== null`)
			if got := testkit.Eval[string](b, `document.querySelector('.total').textContent`); !strings.HasSuffix(got, "by everybody: 1.") {
				t.Errorf("the receipt says %s", got)
			}
			s.wantOrders(wanted, 1)
		})
	}
}

// The form that comes back with an error can be corrected in place; the browser's own checks are passed by.
func TestCorrectedInTheBrowser(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	wanted := item()
	b.Visit(s.url + "/form")
	testkit.Eval[string](b, fmt.Sprintf(`(document.getElementById('quantity').value = '100', document.getElementById('item').value = %q)`, wanted))
	press(t, b, "button.primary")
	b.Until(`document.querySelector('.says')?.textContent === 'Quantity must be a whole number from 1 to 99.'`)
	for expression, want := range map[string]string{
		`document.getElementById('quantity').value`:                            "100",
		`document.getElementById('item').value`:                                wanted,
		`document.getElementById('quantity').getAttribute('aria-describedby')`: "quantity-wrong",
		`document.querySelector('[role=alert]').textContent`:                   "Nothing was ordered yet. Please look at the fields marked below.",
	} {
		if got := testkit.Eval[string](b, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	testkit.Eval[string](b, `document.getElementById('quantity').value = '9'`)
	press(t, b, "button[value=another]")
	b.Until(`document.querySelector('[role=status]')?.textContent.includes('is placed') ?? false`)
	s.wantOrders(wanted, 1)
}

// Back, and another text under the token that is spent: the guard says so in the shop's layout, and keeps what was typed.
func TestBackAndEdit(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	wanted, other := item(), item()
	b.Visit(s.url + "/form")
	testkit.Eval[string](b, fmt.Sprintf(`document.getElementById('item').value = %q`, wanted))
	press(t, b, "button.primary")
	b.Until(`document.querySelector('.total') !== null`)
	testkit.Eval[int](b, `(history.back(), 1)`)
	b.Until(`document.readyState === 'complete' && document.getElementById('item') !== null`)
	testkit.Eval[string](b, fmt.Sprintf(`document.getElementById('item').value = %q`, other))
	press(t, b, "button.primary")
	b.Until(`document.querySelector('.idem-problem, .receipt') !== null`)
	if testkit.Eval[bool](b, `document.querySelector('.idem-problem') !== null`) { // the page came from the browser's cache, spent token and all
		b.Look(1280, 800, "light")
		shoot(t, b, "refusal")
		press(t, b, ".idem-form button")
		b.Until(`document.querySelector('.receipt') !== null`)
	}
	s.wantOrders(wanted, 1)
	s.wantOrders(other, 1)
}

// press asks the page itself to click: chromedp's own waits for ever on a page that Back brought out of the cache.
func press(t *testing.T, b testkit.Browser, selector string) {
	t.Helper()
	testkit.Eval[int](b, fmt.Sprintf(`(document.querySelector(%q).click(), 1)`, selector))
}
