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
		`[...document.querySelectorAll('[data-side=unguarded] dd')].map(l => l.textContent).join()`:        "2,2,2",
		`[...document.querySelectorAll('[data-side=guarded] dd')].map(l => l.textContent).join()`:          "1,2,1",
		`[...document.querySelectorAll('[data-side=guarded] [data-log] li')].map(l => l.className).join()`: "new,same",
		`document.getElementById('verdict').textContent`: "2 clicks without a guard made 2 orders; " +
			"2 clicks with idem made 1 order, and every click got its receipt.",
	} {
		if got := testkit.Eval[string](b, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	b.Click("#through")
	b.DoubleClick("[data-side=guarded] button") // after it was done, and with nobody to hold it back: replays
	b.Until(`document.querySelectorAll('[data-side=guarded] li.same').length === 3`)
	testkit.Check(b, `[...document.querySelectorAll('[data-side=guarded] li')].filter((l) => l.textContent.includes('sent, 201, replayed')).length`, 2)
	if _, guarded := counts(t, b, s); guarded != 1 {
		t.Errorf("%d guarded orders after four clicks", guarded)
	}
}

// Each click may be let through: then it is the server alone that makes one order of them.
func TestDoubleClickLetThrough(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	b.Visit(s.url + "/double-click")
	b.Click("#through")
	b.DoubleClick("[data-side=guarded] button")
	b.Until(`document.querySelectorAll('[data-side=guarded] :is(li.same, li.new)').length === 2 && !document.querySelector('.waiting')`)
	if _, guarded := counts(t, b, s); guarded != 1 {
		t.Errorf("%d guarded orders", guarded)
	}
	testkit.Check(b, `[...document.querySelectorAll('[data-side=guarded] dd')].map(l => l.textContent).join()`, "1,2,2")
	testkit.Check(b, `[...document.querySelectorAll('[data-side=guarded] li')].filter((l) => l.textContent.includes('replayed')).length`, 1)
}

// Without scripts the shop itself says what it made of the clicks. What the unguarded button makes of them depends on whether the browser gets the
// first one out before it gives it up for the second.
func TestDoubleClickWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	b.Visit("about:blank")
	b.WithoutScripts()
	b.Visit(s.url + "/double-click")
	said := func(side, want string) {
		t.Helper()
		b.Until(`document.querySelector('[data-side=` + side + `] [data-log] a') !== null`)
		testkit.Check(b, `document.querySelector('[data-side=`+side+`] [data-count=order]').textContent`, want)
	}
	b.Click("[data-side=unguarded] button")
	said("unguarded", "1")
	b.DoubleClick("[data-side=guarded] button")
	said("guarded", "1")
	testkit.Check(b, `document.getElementById('verdict').textContent.trim()`, "The button without a guard made 1 order, the one with idem 1 order.")
	loaded := testkit.Eval[float64](b, `performance.timeOrigin`)
	b.Click("[data-side=guarded] button") // the page that came back goes on with the same intention
	b.Until(fmt.Sprintf(`performance.timeOrigin > %v && document.readyState === 'complete'`, loaded))
	said("guarded", "1")
	b.Click("[data-side=unguarded] button")
	b.Until(`document.querySelector('[data-side=unguarded].many') !== null`)
	if unguarded, guarded := counts(t, b, s); unguarded != 2 || guarded != 1 {
		t.Errorf("%d unguarded orders, %d guarded ones; want 2 and 1", unguarded, guarded)
	}
	b.Visit(s.url + testkit.Eval[string](b, `document.querySelector('[data-side=guarded] [data-log] a').getAttribute('href')`))
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
	press("button.primary") // the first attempt fails, the client sends it again
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

// query#6238: a reload lost the call that ran. Here the same again, on the page that was loaded anew, is the same order.
func TestSinglePageReloaded(t *testing.T) {
	t.Parallel()
	s, b := open(t, onSQLite(t)), testkit.Chromium(t)
	wanted := item()
	order := func() {
		t.Helper()
		testkit.Eval[string](b, fmt.Sprintf(`(document.getElementById('trouble').value = '?delay=5s', document.getElementById('item').value = %q)`, wanted))
		press(t, b, "button.primary")
		b.Until(`document.getElementById('request').textContent !== 'not known yet'`)
	}
	b.Visit(s.url + "/spa")
	order()
	first := testkit.Eval[string](b, `document.getElementById('request').textContent`)
	b.Visit(s.url + "/spa")
	order()
	testkit.Check(b, `document.getElementById('request').textContent`, first)
	b.Until(`document.getElementById('pill').textContent.startsWith('Done')`)
	s.wantOrders(wanted, 1)
	testkit.Check(b, `sessionStorage.order === undefined`, true)
}
