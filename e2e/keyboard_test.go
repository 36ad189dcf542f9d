package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person without mouse and screen: keys are all that goes in, and what a screen reader is told is all that comes out.

// press is one event for a key that goes down, as a browser makes it: what the page does then may swallow the character. chromedp's own would send it
// after the focus that the key has moved.
func (p *person) press(keys string) {
	p.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, key := range keys {
			down, up := press(key)
			for _, event := range []input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, event); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

func press(key rune) (down, up input.DispatchKeyEventParams) {
	events := kb.Encode(key)
	down, up = *events[0], *events[len(events)-1]
	if len(events) == 3 {
		down.Text = events[1].Text
	}
	return down, up
}

// tabTo presses Tab until the focus is on what is called so.
func (p *person) tabTo(begin string) {
	p.Helper()
	var met []string
	for range 30 {
		p.press("\t")
		lines := p.heard()
		at := slices.IndexFunc(lines, func(line string) bool {
			return strings.Contains(line, " focused") && !strings.HasPrefix(line, "RootWebArea")
		})
		if at >= 0 && strings.HasPrefix(lines[at], begin) {
			return
		}
		if at >= 0 {
			met = append(met, lines[at])
		}
	}
	p.T.Fatalf("Tab does not come to %s, but to:\n%s", begin, strings.Join(met, "\n"))
}

func TestFormByKeyboard(t *testing.T) {
	t.Parallel()
	eachPerson(t, func(p *person) {
		item := p.item()
		p.open("/form?delay=1s")
		p.tabTo(`textbox "Item"`)
		p.press(item)
		p.tabTo(`textbox "Quantity 1 to 99" = "1"`) // all of it is selected
		p.press("100")
		p.tabTo(`button "Place order"`)
		p.press("\r")
		p.hears(`alert "Nothing was ordered yet Quantity must be a whole number from 1 to 99" focused`)
		p.tabTo(`link "Quantity must be a whole number from 1 to 99"`)
		p.press("\r")
		p.hears(`textbox "Quantity 1 to 99" = "100" (Quantity must be a whole number from 1 to 99.) invalid focused`)
		p.press(kb.End + "\b")
		p.tabTo(`button "Place and order another"`)
		p.press("  ")
		p.hears(`status "Order o-`)
		p.tabTo(`link "o-`)
		p.press("\r")
		p.hears(`heading "10 × ` + item + `" 1`)
		p.wantOrders(item, 1)
	})
}

func TestSinglePageByKeyboard(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	item := p.item()
	p.open("/spa")
	p.tabTo(`textbox "Item" = "Teapot"`)
	p.press(item)
	p.tabTo(`button "Place order"`)
	p.press("\r\r")
	p.hears(`status "Done"`)
	p.wantOrders(item, 1)
	p.press(" ")
	p.hears(`status "Done before"`)
	p.tabTo(`link "1 × ` + item + `"`)
	p.press("\r")
	p.hears(`heading "1 × ` + item + `" 1`)
	p.wantOrders(item, 1)
}

func TestDoubleClickByKeyboard(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), true)
	p.open("/double-click")
	p.hears(`region "Without a guard"`)
	p.hears(`region "With idem"`)
	p.tabTo(`button "Order a teapot"`)
	p.press("\r\r")
	p.hears(`status "2 clicks without a guard made 2 orders. Now the other button."`)
	p.tabTo(`button "Order a teapot"`)
	p.press("  ")
	p.hears(`status "2 clicks without a guard made 2 orders; 2 clicks with idem made 1 order, and every click got its receipt."`)
	p.tabTo(`checkbox "Let every click through, and leave it to the server."`)
	p.press(" ")
	p.hears(`checkbox "Let every click through, and leave it to the server." focused checked=true`)
}

// Without scripts each press is a page of its own, and the shop says what it has.
func TestDoubleClickByKeyboardWithoutScripts(t *testing.T) {
	t.Parallel()
	p := sits(t, start(t, embedded(t)), false)
	p.open("/double-click")
	p.tabTo(`button "Order a teapot"`)
	p.tabTo(`button "Order a teapot"`)
	p.press("\r\r")
	p.hears(`status "The button without a guard made 0 orders, the one with idem 1 order."`)
	p.tabTo(`link "o-`)
	p.press("\r")
	p.hears(`paragraph "This item was ordered once ."`)
}
