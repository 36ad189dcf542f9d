package js_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// says is a status region as the templates make it.
const says = `<div role=status data-idem-sending=Sending data-idem-working=Working data-idem-done=Done data-idem-failed=Failed data-idem-sent=Sent></div>`

const status = `document.querySelector('[role=status]').textContent`

// everyField has what a form can hold, in the states that an application may have left it in.
const everyField = `<form id=f method=post action=/nothing data-idem data-idem-timeout=1500>
	<input id=i name=elements value=tea><input name=getAttribute2 readonly value=fixed><textarea name=note>with a lid</textarea>
	<select name=size><option>big</select><input type=checkbox name=gift checked><input name=gone disabled value=x>
	<button id=a name=then value=receipt data-idem-busy=Ordering>  <b>Order</b>
		now </button><button aria-disabled=true>No</button><button aria-disabled=false>Yes</button><button type=button id=t>Help</button>
	<input type=image alt=Picture></form>` + says + `<button form=f id=out>Outside</button>`

// name is what a screen reader calls an element.
func name(b testkit.Browser, selector string) (found string) {
	b.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		object, err := cdp.Call(ctx, target, runtime.Evaluate, runtime.EvaluateParams{Expression: fmt.Sprintf("document.querySelector(%q)", selector)})
		if err != nil {
			return err
		}
		tree, err := cdp.Call(ctx, target, accessibility.GetPartialAXTree, accessibility.GetPartialAXTreeParams{ObjectID: object.Result.ObjectID})
		if err == nil {
			found = fmt.Sprintf("%s %s", tree.Nodes[0].Role.Value, tree.Nodes[0].Name.Value)
		}
		return err
	}))
	return found
}

// htmx#3437: a control that had been disabled before was enabled. What is changed is taken back, and nothing else.
func TestFormIsPending(t *testing.T) {
	s := newShop(t, everyField)
	b := open(t, s)
	const whole = `document.body.innerHTML`
	before := testkit.Eval[string](b, whole)
	called := name(b, "#a")
	b.Click("#a")
	b.Until(status + ` === 'Sending'`)
	for expression, want := range map[string]string{
		`document.getElementById('f').getAttribute('aria-busy')`: "true",
		`document.getElementById('a').textContent`:               "Ordering",
		`document.activeElement.id`:                              "a",
		`[...document.querySelectorAll('[aria-disabled=true]')].map((e) => e.id || e.alt || e.textContent).join()`: "a,No,Yes,Picture,out",
		`[...document.querySelectorAll(':disabled')].map((e) => e.name).join()`:                                    "gone",
		`[...document.querySelectorAll('[readonly]')].map((e) => e.name).join()`:                                   "elements,getAttribute2,note",
	} {
		testkit.Check(b, expression, want)
	}
	if got := name(b, "#a"); got != called || called != `"button" "Order now"` {
		t.Errorf("the button was called %s, and is called %s while its form is sent", called, got)
	}
	b.Until(status + ` === 'Working'`)
	b.Until(status + ` === ''`)
	testkit.Check(b, whole, before)
	if s.count() != 1 || s.posts[0] != "elements=tea&getAttribute2=fixed&note=with+a+lid&size=big&gift=on&then=receipt" {
		t.Errorf("posts: %q", s.posts)
	}
}

// What a person hears while the answer takes long, and when the form is given back: by the browser's clock, put forward.
func TestFormThatTakesLong(t *testing.T) {
	s := newShop(t, framed(orderForm)+says)
	b := open(t, s)
	b.Click("#a")
	b.Until(status + ` === 'Sending'`)
	expired := make(chan struct{}, 1)
	b.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		return chromedp.Listen(ctx, func(event any) {
			if _, ok := event.(*emulation.EventVirtualTimeBudgetExpired); ok {
				expired <- struct{}{}
			}
		})
	}))
	for _, step := range []struct {
		seconds float64
		says    string
	}{{14, "Sending"}, {2, "Working"}, {12, "Working"}, {3, ""}} {
		b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			milliseconds := step.seconds * 1000
			_, err := cdp.Call(ctx, target, emulation.SetVirtualTimePolicy,
				emulation.SetVirtualTimePolicyParams{Policy: emulation.VirtualTimePolicyAdvance, Budget: &milliseconds})
			select {
			case <-expired:
			case <-time.After(30 * time.Second):
				err = errors.New("the clock does not go forward")
			}
			return err
		}))
		testkit.Check(b, status, step.says)
	}
	testkit.Check(b, `document.querySelectorAll('[aria-busy], [aria-disabled]').length`, 0)
}
