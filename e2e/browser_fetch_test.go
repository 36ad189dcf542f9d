package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// orders is what a page's script sends; the answer is its status, and whether it is a replay.
func orders(client, item, query, more string) string {
	return fmt.Sprintf(`%s.fetch('/api/orders?%s', { action: 'order.create', json: { item: %q, quantity: 1 }%s }).then((r) => r.status + ' ' + r.headers.get('Idempotent-Replayed'))`,
		client, query, item, more)
}

// watched is an option of a call: window.sent tells when it has left the page.
const watched = `, fetch: (request) => { window.sent = request.url.includes('orders'); return fetch(request); }`

// query#6238: a reload lost the running call, and the next one did the work again.
func TestFetchAfterReload(t *testing.T) {
	t.Parallel()
	for name, b := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sits(t, start(t, b(t)), true)
			item := p.item()
			p.open("/form")
			order := orders("idem", item, "delay=1500ms", "")
			testkit.Eval[bool](p.Browser, `void `+orders("idem", item, "delay=1500ms", watched)+` || true`)
			p.until(`window.sent === true`)
			testkit.Check(p.Browser, `fetch('/healthz').then((r) => r.ok)`, true) // what was sent before this has arrived
			p.Do(chromedp.Reload())
			testkit.Check(p.Browser, order, "201 true")
			testkit.Check(p.Browser, order, "201 null") // that was done; the same again is another order
			p.wantOrders(item, 2)
		})
	}
}

// A token that ends while a page is open is renewed, and the person does not notice.
func TestFetchOutlivesItsToken(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t), "IDEM_TOKEN_TTL=1s"), true)
	item := p.item()
	p.open("/form")
	testkit.Eval[bool](p.Browser, `window.ahead = idem.createClient({ pool: 2 }), true`)
	testkit.Check(p.Browser, orders("ahead", item, "", ""), "201 null")
	p.until(`performance.now() > 3000`) // the second token's end
	testkit.Check(p.Browser, orders("ahead", item, "", ""), "201 null")
	p.arrived("/api/orders", 3)
	p.wantOrders(item, 2)
}

// One call for many tokens, and each is good for an order.
func TestFetchFromAPool(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	item := p.item()
	p.open("/form")
	testkit.Eval[bool](p.Browser, `window.ahead = idem.createClient({ pool: 3 }), true`)
	for range 2 {
		testkit.Check(p.Browser, orders("ahead", item, "", ""), "201 null")
	}
	p.arrived("/idem/token", 1)
	p.wantOrders(item, 2)
}

// A call that times out is not undone: the next one, by another client of the page too, gets its answer.
func TestFetchAfterATimeout(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	item := p.item()
	p.open("/form")
	testkit.Check(p.Browser, orders("idem", item, "delay=2s", `, timeout: 500, retry: { limit: 0 }`)+`.catch((e) => e.name)`, "TimeoutError")
	testkit.Check(p.Browser, orders("idem", item, "delay=2s", ""), fmt.Sprint(http.StatusCreated, " true"))
	p.wantOrders(item, 1)
}

// The same client in another browser: a failure is sent again, a reload loses nothing.
func TestFirefoxFetch(t *testing.T) {
	t.Parallel()
	f := drive(t).at(t, start(t, embedded(t)))
	says := func(expression, want string) {
		t.Helper()
		if got := f.text(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	f.do("goto", f.demo.url()+"/form")
	item := f.item()
	says(orders("idem", item, "fail=500", ""), "201 null")
	f.wantOrders(item, 1)

	item = f.item()
	f.do("eval", `void `+orders("idem", item, "delay=1500ms", watched))
	f.until(`window.sent === true`)
	says(`fetch('/healthz').then((r) => String(r.status))`, "200")
	f.do("reload")
	says(orders("idem", item, "delay=1500ms", ""), "201 true")
	f.wantOrders(item, 1)
}
