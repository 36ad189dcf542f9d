package shop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
)

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
		`document.querySelector('[role=alert] a').textContent`:                 "Quantity must be a whole number from 1 to 99",
		`document.activeElement.getAttribute('role')`:                          "alert",
		`document.title`: "Error: Order · idem",
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
