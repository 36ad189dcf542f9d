package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// gesture is a way in which people submit twice, begun on the form's page.
type gesture struct {
	name string
	make func(p *person)
}

func formGestures() []gesture {
	const impatience = 1100 * time.Millisecond // longer than a second of debounce
	press := func(keys string) chromedp.Action[chromedp.Void] { return chromedp.KeyEvent(keys) }
	return []gesture{
		{"double click", func(p *person) { p.twice("button.primary") }},
		{"click again after 1.1 s", func(p *person) {
			at := testkit.Eval[[]float64](p.Browser, `(() => { const e = document.querySelector("button.primary"); e.scrollIntoView();
				const { x, y } = e.getBoundingClientRect(); return [x + 9, y + 9] })()`)
			p.Do(chromedp.MouseClickXY(at[0], at[1]), chromedp.Sleep(impatience), chromedp.MouseClickXY(at[0], at[1]))
		}},
		{"Enter twice", func(p *person) {
			p.Click("#quantity")
			p.Do(press("\r"), chromedp.Sleep(pace), press("\r"))
		}},
		{"one button, Enter on another", func(p *person) {
			p.Click("button.primary")
			p.Do(chromedp.Sleep(pace), press("\t"), press("\r"))
		}},
	}
}

// TestGestures: whatever people do while the shop works for 1.6 s, the client sends one POST, and one order is made without the client too. It prints
// the table.
func TestGestures(t *testing.T) {
	t.Parallel()
	table := [3]string{"|             |", "| no script   |", "| with script |"}
	for _, g := range formGestures() {
		table[0] += fmt.Sprintf(" %-28s |", g.name)
	}
	for posts, row := range map[int]int{2: 1, 1: 2} {
		p := sits(t, start(t, embedded(t)), posts == 1)
		for _, g := range formGestures() {
			table[row] += fmt.Sprintf(" %-28s |", p.gestured(g, posts))
		}
	}
	t.Log("\n" + strings.Join(table[:], "\n"))
}

// gestured is what came of a gesture that makes so many POSTs.
func (p *person) gestured(g gesture, want int) string {
	p.Helper()
	item := p.item()
	p.open("/form?delay=1600ms")
	p.Until(`document.readyState === "complete"`)
	p.enter("item", item)
	before := p.posts("/form")
	g.make(p)
	p.until(receipt)
	testkit.Eventually(p.visitor, 10*time.Second, g.name+" is logged", func() bool { return p.posts("/form")-before >= want })
	posts, orders := p.posts("/form")-before, p.ordered(item)
	if posts != want || orders != 1 {
		p.visitor.Errorf("%s: %d POSTs and %d orders, want %d and 1", g.name, posts, orders, want)
	}
	return fmt.Sprintf("%d POST, %d order", posts, orders)
}
