package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

const formToken = `document.querySelector('#main [name=idempotent_token]').value`

// backToTheForm orders, and goes back to a form that the browser has kept as it was left.
func backToTheForm(t *testing.T) (p *person, item string) {
	t.Helper()
	p = sits(t, start(t, embedded(t)), true)
	l := through(t, p.demo, nil)
	l.keeps.Store(true)
	item = p.item()
	p.Visit(l.URL + "/form")
	testkit.Eval[bool](p.Browser, `window.kept = true`)
	old := testkit.Eval[string](p.Browser, formToken)
	p.enter("item", item)
	p.enter("note", "the first")
	p.Click("button.primary")
	p.until(receipt)
	p.back()
	p.until(`window.kept === true && ` + formToken + fmt.Sprintf(` !== %q`, old)) // a fresh one, by the script
	testkit.Check(p.Browser, `document.querySelector("[role=status][data-idem-sent]").textContent.startsWith("You have sent this form already.")`, true)
	testkit.Check(p.Browser, `document.querySelector("button.primary").textContent`, "Place order")
	testkit.Check(p.Browser, `document.querySelectorAll("[aria-busy], [aria-disabled], [readonly]").length`, 0)
	p.holds("item", item)
	return p, item
}

// sure#3338: Back, another entry, and it was silently dropped. The person is told, keeps what was typed, and sends it as something new.
func TestBackToAKeptFormAndChanged(t *testing.T) {
	t.Parallel()
	p, item := backToTheForm(t)
	other := p.item()
	p.enter("item", other)
	p.enter("note", "a second one,\nif you please")
	p.Click("button.primary")
	p.until(`document.querySelector("[data-code=payload_mismatch]") !== null`)
	p.holds("item", other)
	p.holds("note", "a second one,\nif you please")
	p.Click(".idem-problem button[type=submit]")
	p.until(receipt)
	p.wantOrders(item, 1)
	p.wantOrders(other, 1)
}

// The same once more is the same order, and its receipt.
func TestBackToAKeptFormAndAgain(t *testing.T) {
	t.Parallel()
	p, item := backToTheForm(t)
	p.Click("button.primary")
	p.until(receipt)
	p.wantOrders(item, 1)
}

// gitea#17850: the token expired, and the text was lost. With the client the token is renewed while somebody types; without it the values return.
func TestTypedForLongerThanATokenLives(t *testing.T) {
	t.Parallel()
	for how, scripts := range map[string]bool{"with JavaScript": true, "without JavaScript": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := sits(t, start(t, embedded(t), "IDEM_TOKEN_TTL=5s"), scripts)
			item, note, typed := p.item(), "", time.Now()
			p.open("/form")
			p.enter("item", item)
			testkit.Eventually(t, 20*time.Second, "it takes longer to type than the token lives", func() bool {
				note = strings.Repeat("a line\nand ", int(time.Since(typed)/time.Second))
				p.enter("note", note)
				return time.Since(typed) > 8*time.Second
			})
			p.Click("button.primary")
			if !scripts {
				p.until(`document.querySelector("[data-code=token_expired]") !== null`)
				p.holds("item", item)
				p.holds("note", note)
				p.Click(".idem-problem button[type=submit]")
			}
			p.until(receipt)
			p.arrived("/form", map[bool]int{true: 1, false: 2}[scripts])
			p.wantOrders(item, 1)
		})
	}
}
