package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// TestPlainHTTP: a shop without TLS under a name of its own, where browsers have no crypto.randomUUID, no crypto.subtle and no locks.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true, chromedp.Flag("host-resolver-rules", "MAP shop.test 127.0.0.1"))
	shop := strings.Replace(p.demo.url(), "127.0.0.1", "shop.test", 1)

	item := p.item()
	p.Visit(shop + "/form?delay=1s")
	testkit.Check(p.Browser, `isSecureContext || "randomUUID" in crypto || "subtle" in crypto || "locks" in navigator`, false)
	p.enter("item", item)
	p.twice("button.primary")
	p.until(receipt)
	p.wantOrders(item, 1)
	p.arrived("/form", 1)

	item = p.item()
	p.Visit(shop + "/spa")
	p.enter("item", item)
	p.twice("#order button.primary")
	p.until(`document.getElementById("pill").textContent.startsWith("Done")`)
	p.wantOrders(item, 1)
	p.arrived("/api/orders", 1)
}
