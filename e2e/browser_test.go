package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// person sits in front of a browser. The visitor beside it counts what was ordered.
type person struct {
	testkit.Browser
	*visitor
	scripts    bool
	mu         sync.Mutex
	complaints []string // of the browser, about a page's policy, and errors of scripts that nobody caught
}

func (p *person) Helper() { p.visitor.Helper() }

func sits(t *testing.T, d *demo, scripts bool) *person {
	t.Helper()
	p := &person{Browser: testkit.Chromium(t), visitor: visit(t, d), scripts: scripts}
	p.Visit("about:blank")
	p.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error { return chromedp.Listen(ctx, p.listen) }))
	t.Cleanup(func() {
		if found := p.complained(); len(found) > 0 {
			t.Errorf("the browser says: %q", found)
		}
	})
	if !scripts {
		off := emulation.SetScriptExecutionDisabledParams{Value: true}
		p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, off)
			return err
		}))
	}
	return p
}

func (p *person) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if strings.Contains(e.Entry.Text, "Content Security Policy") || strings.Contains(e.Entry.Text, "integrity") {
			p.complaints = append(p.complaints, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	}
}

// complained is what was said since it was last asked for.
func (p *person) complained() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.complaints
	p.complaints = nil
	return found
}

// until polls an expression. While one page goes and another comes there is nothing to ask.
func (p *person) until(expression string) {
	p.Helper()
	testkit.Eventually(p.visitor, 30*time.Second, expression, func() bool {
		holds := false
		p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			value, err := chromedp.Evaluate[bool](expression)(ctx, target)
			holds = err == nil && value
			return nil
		}))
		return holds
	})
}

// back is the browser's button. chromedp's own waits for a load that never comes where the page was kept.
func (p *person) back() { testkit.Eval[int](p.Browser, `(history.back(), 1)`) }

func (p *person) open(path string) { p.Visit(p.demo.url() + path) }

// pace of a person's double click. At a machine's, the browser gives the first submission up before it has sent it.
const pace = 300 * time.Millisecond

// twice is a person's double click, by the mouse.
func (p *person) twice(selector string) {
	p.Helper()
	at := testkit.Eval[[]float64](p.Browser, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector))
	p.Do(chromedp.MouseClickXY(at[0], at[1]), chromedp.Sleep(pace), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
}

// enter replaces what a field holds.
func (p *person) enter(id, text string) {
	p.Helper()
	testkit.Eval[string](p.Browser, fmt.Sprintf(`document.getElementById(%q).value = %q`, id, text))
}

// holds compares the value of a field of this name.
func (p *person) holds(name, want string) {
	p.Helper()
	testkit.Check(p.Browser, fmt.Sprintf(`document.querySelector('[name=%q]').value`, name), want)
}

// receipt of the only order of an item.
const receipt = `document.querySelector('.receipt .total')?.textContent.endsWith("by everybody: 1.") === true`

// posts counts the submissions that have reached the shop.
func (p *person) posts(path string) int {
	return strings.Count(p.demo.process.Output(), "method=POST path="+path+" ")
}

// eachPerson has scripts on or off, and a shop of their own.
func eachPerson(t *testing.T, test func(p *person)) {
	t.Helper()
	for name, made := range map[string]func(t *testing.T) *backend{"memory and SQLite": embedded, "Redis and Postgres": redisAndPostgres} {
		for scripts, how := range map[bool]string{true: "with JavaScript", false: "without JavaScript"} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				test(sits(t, start(t, made(t)), scripts))
			})
		}
	}
}

func TestFormDoubleClicked(t *testing.T) {
	t.Parallel()
	eachPerson(t, func(p *person) {
		item := p.item()
		p.open("/form?delay=2s")
		p.enter("item", item)
		p.enter("note", "with a lid\nand a spout")
		p.twice("button.primary")
		p.until(receipt)
		p.wantOrders(item, 1)
		// The client holds the second click back; without it the server does.
		sent := map[bool]int{true: 1, false: 2}[p.scripts]
		testkit.Eventually(p.visitor, 10*time.Second, "the submissions are logged", func() bool { return p.posts("/form") == sent })
	})
}

// TestBackAndChanged: the page that Back shows is the old one, with the token of the order that was placed. A changed entry is not dropped in silence.
func TestBackAndChanged(t *testing.T) {
	t.Parallel()
	eachPerson(t, func(p *person) {
		item, other := p.item(), p.item()
		p.open("/form")
		const token = `document.querySelector('[name=idempotent_token]').value`
		old := testkit.Eval[string](p.Browser, token)
		p.enter("item", item)
		p.enter("note", "the first")
		p.Click("button.primary")
		p.until(receipt)

		p.back()
		p.until(`document.getElementById("item") !== null`)
		testkit.Eval[string](p.Browser, fmt.Sprintf(`%s = %q`, token, old)) // as Chromium does, which keeps the page; others load it again
		p.enter("item", other)
		p.enter("quantity", "7")
		p.enter("note", "a second one,\nif you please")
		p.Click("button.primary")
		p.until(`document.querySelector("[data-code=payload_mismatch]") !== null`)
		p.wantOrders(other, 0)
		p.holds("item", other)
		p.holds("quantity", "7")
		p.holds("note", "a second one,\nif you please")
		testkit.Check(p.Browser, token+` !== ""`, true)
		testkit.Check(p.Browser, fmt.Sprintf(`%s !== %q`, token, old), true)
		testkit.Check(p.Browser, `document.querySelector(".idem-first a").pathname.startsWith("/orders/")`, true)

		p.Click(".idem-problem button[type=submit]")
		p.until(receipt)
		p.wantOrders(item, 1)
		p.wantOrders(other, 1)
	})
}

func TestDoubleClickPage(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	p.open("/double-click")
	side := func(name, expression string) string {
		return `document.querySelector("[data-side=` + name + `]` + expression
	}
	for _, name := range []string{"unguarded", "guarded"} {
		p.twice("[data-side=" + name + "] button")
	}
	p.until(side("unguarded", ` [data-orders]").textContent`) + ` === "2" && ` + side("guarded", ` [data-orders]").textContent`) + ` === "1"`)
	for name, want := range map[string]int{"unguarded": 2, "guarded": 1} {
		p.wantOrders(testkit.Eval[string](p.Browser, side(name, `").dataset.item`)), want)
	}
}

func TestSinglePage(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, redisAndPostgres(t)), true)
	item, other := p.item(), p.item()
	p.open("/spa")
	p.enter("item", item)
	p.twice("#order button.primary")
	p.until(`document.getElementById("pill").textContent.startsWith("Done")`)
	p.wantOrders(item, 1)
	p.Click("#order button.primary") // after it was done: the same receipt
	p.until(`document.getElementById("pill").textContent === "Done before"`)
	p.wantOrders(item, 1)
	p.Click("#next")
	p.enter("item", other)
	p.Click("#order button.primary")
	p.until(`document.getElementById("pill").textContent === "Done"`)
	p.wantOrders(other, 1)
	testkit.Check(p.Browser, `document.querySelector("#answer a").textContent`, "1 × "+other)
}

// TestPolicy: every page keeps to its own policy, which allows nothing inline. That the browser would tell is tried, too.
func TestPolicy(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	for _, path := range []string{"/", "/form", "/spa", "/double-click", "/nowhere", "/idem/problems/token_expired"} {
		p.open(path)
		testkit.Check(p.Browser, `document.querySelectorAll("h1").length`, 1)
		testkit.Check(p.Browser, `document.querySelectorAll("[style], script:not([src]), style").length`, 0)
		policy := p.get(path).Header.Get("Content-Security-Policy")
		if policy == "" || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
	if found := p.complained(); len(found) > 0 {
		t.Errorf("the browser says: %q", found)
	}
	testkit.Check(p.Browser, `new Promise((resolve) => {
		document.addEventListener("securitypolicyviolation", (e) => resolve(e.effectiveDirective));
		const image = document.createElement("img");
		image.src = "https://elsewhere.invalid/";
		document.body.append(image);
	})`, "img-src")
	testkit.Eventually(t, 10*time.Second, "the browser says what it has blocked", func() bool { return len(p.complained()) == 1 })
}
