package js_test

import (
	"context"
	"strings"
	"testing"
	"time"

	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// asm3#897: disabling in the click handler stopped the submission. Whatever sends the form, it arrives, once, with what belongs to it.
func TestFormArrives(t *testing.T) {
	const form = `<form id=f method=post action=/post target=out data-idem><input id=i name=item value=tea>
		<button id=a name=then value=receipt>Order</button><button id=e name=then value=letter formaction=/post?letter formenctype=text/plain>Write</button>
		<input type=image id=p name=at alt=There><button id=g name=q value=1 formmethod=get formaction=/done>Look</button></form>
		<button id=o form=f name=then value=outside>Out</button><iframe name=out></iframe>`
	const f = `document.getElementById('f')`
	b := testkit.Chromium(t)
	for name, c := range map[string]struct {
		twice string // an expression that is evaluated twice
		want  string
	}{
		"click":                           {`document.getElementById('a').click()`, "item=tea&then=receipt"},
		"click outside of the form":       {`document.getElementById('o').click()`, "item=tea&then=outside"},
		"another address and type":        {`document.getElementById('e').click()`, "item=tea\r\nthen=letter\r\n"},
		"picture":                         {`document.getElementById('p').click()`, "item=tea&at.x=0&at.y=0"},
		"requestSubmit":                   {f + `.requestSubmit()`, "item=tea"},
		"requestSubmit with a button":     {f + `.requestSubmit(document.getElementById('a'))`, "item=tea&then=receipt"},
		"submit":                          {f + `.submit()`, "item=tea"},
		"submit, then requestSubmit":      {f + `[window.then ? 'requestSubmit' : (window.then = 'submit')]()`, "item=tea"},
		"requestSubmit, then submit":      {f + `[window.then ? 'submit' : (window.then = 'requestSubmit')]()`, "item=tea"},
		"submit by a click's handler":     {`(document.getElementById('a').onclick ??= () => f.submit(), document.getElementById('a').click())`, "item=tea"},
		"submit by a submit's handler":    {`(f.onsubmit ??= (e) => { e.preventDefault(); f.submit(); }, f.requestSubmit())`, "item=tea"},
		"submitted first, then cancelled": {`(f.onsubmit ??= (e) => { f.submit(); e.preventDefault(); }, f.requestSubmit())`, "item=tea"},
		"submitted, and not cancelled":    {`(f.onsubmit ??= () => { f.submit(); }, document.getElementById('a').click())`, "item=tea&then=receipt"},
		"disabled by a submit's handler":  {`(f.onsubmit ??= (e) => setTimeout(() => { e.submitter.disabled = true; }), document.getElementById('a').click())`, "item=tea&then=receipt"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, form)
			b.TB = t
			b.Visit(s.URL)
			testkit.Eval[bool](b, `(`+c.twice+`, true)`)
			testkit.Eval[bool](b, `(`+c.twice+`, true)`)
			s.reached(t, 1)
			testkit.Eval[bool](b, `(`+c.twice+`, true)`)
			s.release()
			b.Until(`document.querySelector('iframe').contentDocument.querySelector('#done') !== null`)
			if s.count() != 1 || s.posts[0] != c.want {
				t.Errorf("posts: %q", s.posts)
			}
		})
	}
}

func TestFormByGet(t *testing.T) {
	s := newShop(t, `<form method=post action=/post data-idem><button name=q value=1 formmethod=get formaction=/done>Look</button></form>`)
	b := open(t, s)
	b.Click("button")
	b.Until(`location.pathname + location.search === '/done?q=1'`)
}

// react-spectrum#6197: a button that is aria-disabled still submitted.
func TestFormWhoseButtonIsAriaDisabled(t *testing.T) {
	s := newShop(t, `<form method=post action=/post data-idem><input id=i name=item value=tea><button id=a aria-disabled=true>Order</button></form>`)
	b := open(t, s)
	b.Do(keys("#a", "\r"), keys("#a", " "), keys("#i", "\r"))
	b.Click("#a")
	testkit.Check(b, `document.querySelector('form').hasAttribute('aria-busy')`, false)
	testkit.Eval[bool](b, `(document.querySelector('#a').removeAttribute('aria-disabled'), true)`)
	b.Do(keys("#a", " "))
	s.reached(t, 1)
	if s.count() != 1 {
		t.Errorf("%d posts", s.count())
	}
}

// django-oscar#1207: a form that failed its validation stayed locked.
func TestFormThatFailedItsValidation(t *testing.T) {
	s := newShop(t, framed(strings.Replace(orderForm, "value=tea", "required", 1)))
	b := open(t, s)
	b.Click("#a")
	testkit.Check(b, `document.activeElement.id`, "i")
	b.Do(keys("#i", "tea"))
	b.Click("#a")
	s.reached(t, 1)
	if s.posts[0] != "item=tea&then=receipt" {
		t.Errorf("posts: %q", s.posts)
	}
}

func TestFormWhoseConfirmationIsCancelled(t *testing.T) {
	s := newShop(t, framed(orderForm))
	b := open(t, s)
	answers := make(chan bool, 2)
	b.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		return chromedp.Listen(ctx, func(event any) {
			if _, asked := event.(*cdpage.EventJavascriptDialogOpening); asked {
				go func() { // the browser waits for the answer
					_, _ = chromedp.Call(ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: <-answers})
				}()
			}
		})
	}))
	testkit.Eval[bool](b, `(document.querySelector('#f').onsubmit = () => { const sure = confirm('Sure?'); window.asked = (window.asked ?? 0) + 1; return sure; }, true)`)
	answers <- false
	b.Click("#a")
	b.Until(`window.asked === 1`)
	b.Until(`!document.querySelector('#f').hasAttribute('aria-busy')`)
	answers <- true
	b.Click("#a")
	s.reached(t, 1)
	b.Click("#b") // is not asked any more: the form is being sent
	testkit.Check(b, `window.asked`, 2)
	if s.count() != 1 {
		t.Errorf("%d posts", s.count())
	}
}

// A page that stays where it is, and nobody tells it of the answer.
func TestFormInAPageThatStays(t *testing.T) {
	b := testkit.Chromium(t)
	for name, form := range map[string]string{
		"another window": `<form method=post action=/nothing target=_blank data-idem data-idem-timeout=400><button>Go</button></form>`,
		"a download":     `<form method=post action=/download data-idem data-idem-timeout=400><button>Go</button></form>`,
		"no content":     `<form method=post action=/nothing data-idem data-idem-timeout=400><button>Go</button></form>`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, form)
			b.TB = t
			b.Visit(s.URL)
			for n := range 2 {
				testkit.Eval[bool](b, `(document.querySelector('button').click(), document.querySelector('button').click(), true)`)
				s.reached(t, n+1)
				b.Until(`document.querySelector('form').hasAttribute('aria-busy')`)
				b.Until(`!document.querySelector('form').hasAttribute('aria-busy')`)
			}
			if s.count() != 2 {
				t.Errorf("%d posts", s.count())
			}
		})
	}
}

// govuk-frontend#2498: one second of debounce was too short. Until there is an answer no click is another one.
func TestFormClickedAgainAndAgain(t *testing.T) {
	s := newShop(t, framed(orderForm))
	b := open(t, s)
	const pause = 1100 * time.Millisecond
	b.Click("#a")
	b.Do(chromedp.Sleep(pause))
	b.Click("#a")
	b.Do(chromedp.Sleep(pause))
	b.Click("#a")
	s.release()
	b.Until(`document.querySelector('iframe').contentDocument.querySelector('#done') !== null`)
	if s.count() != 1 {
		t.Errorf("%d posts", s.count())
	}
}
