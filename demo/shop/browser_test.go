package shop_test

import (
	"fmt"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
)

// counts are the orders that each button of /double-click made, as the shop counts them.
func counts(t *testing.T, b testkit.Browser, s *site) (unguarded, guarded int) {
	t.Helper()
	item := func(side string) string {
		return testkit.Eval[string](b, `document.querySelector('[data-side=`+side+`]').dataset.item`)
	}
	return s.ordered(item("unguarded")), s.ordered(item("guarded"))
}

const settled = `document.querySelectorAll('li.new, li.same').length >= 4 && !document.querySelector('.waiting')`

func TestDoubleClick(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	b.Visit(s.url + "/double-click")
	b.DoubleClick("[data-side=unguarded] button")
	b.DoubleClick("[data-side=guarded] button")
	b.Until(settled)
	if unguarded, guarded := counts(t, b, s); unguarded != 2 || guarded != 1 {
		t.Errorf("%d unguarded orders, %d guarded ones; want 2 and 1", unguarded, guarded)
	}
	for expression, want := range map[string]string{
		`document.querySelector('[data-side=unguarded] [data-orders]').textContent`:                        "2",
		`document.querySelector('[data-side=guarded] [data-orders]').textContent`:                          "1",
		`[...document.querySelectorAll('[data-side=guarded] [data-log] li')].map(l => l.className).join()`: "new,same",
		`document.getElementById('verdict').textContent`: "2 clicks without a guard made 2 orders; " +
			"2 clicks with idem made 1 order, and every click got its receipt.",
	} {
		if got := testkit.Eval[string](b, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	b.DoubleClick("[data-side=guarded] button") // after it was done: replays
	b.Until(`document.querySelectorAll('[data-side=guarded] li.same').length === 3`)
	if _, guarded := counts(t, b, s); guarded != 1 {
		t.Errorf("%d guarded orders after four clicks", guarded)
	}
}

// What the unguarded button makes of it here depends on whether the browser gets the first one out before it gives it up for the second.
func TestDoubleClickWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	b.Visit("about:blank")
	b.WithoutScripts()
	b.Visit(s.url + "/double-click")
	b.DoubleClick("[data-side=guarded] button")
	b.Until(`document.querySelector('.total') !== null`)
	testkit.Check(b, `document.querySelector('.total b').textContent`, "once")
}

func TestSinglePage(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	says := func(text string) {
		t.Helper()
		b.Until(fmt.Sprintf(`document.getElementById('pill').textContent === %q`, text))
	}
	set := func(id, value string) {
		t.Helper()
		testkit.Eval[string](b, fmt.Sprintf(`document.getElementById(%q).value = %q`, id, value))
	}
	press := func(selector string) {
		t.Helper()
		press(t, b, selector)
	}
	wanted := item()
	b.Visit(s.url + "/spa")
	set("item", wanted)
	set("quantity", "100")
	press("button.primary")
	says("Refused: 422")
	set("quantity", "2")
	set("trouble", "?fail=500")
	press("button.primary") // attempt 2 already: the refusal was the first
	says("Done")
	press("button.primary")
	says("Done before")
	s.wantOrders(wanted, 1)
	set("quantity", "3")
	press("button.primary")
	says("Refused: 422")
	press("#next")
	press("button.primary")
	says("Refused: 500")
	press("button.primary")
	says("Done")
	s.wantOrders(wanted, 2)
	press("#next")
	set("trouble", "?delay=5s")
	press("button.primary")
	says("Sending…")
	press("#stop")
	says("No answer")
	press("button.primary") // the same intention: it meets the first, which goes on, if that has left the browser
	b.Until(`document.getElementById('pill').textContent.startsWith('Done')`)
	s.wantOrders(wanted, 3)
}
