package js_test

import (
	"strings"
	"testing"
)

const orderForm = `<form id=f method=post action=/post data-idem><input id=i name=item value=tea>
	<button id=a name=then value=receipt data-idem-busy="Ordering"><b>Order</b></button>
	<button id=b name=then value=another>More</button></form>`

// framed sends the form to a frame: a page that is being left cannot be asked anything.
func framed(form string) string {
	return strings.Replace(form, " data-idem>", " target=out data-idem>", 1) + "<iframe name=out></iframe>"
}

func TestFormIsSentOnce(t *testing.T) {
	s := newShop(t, framed(orderForm))
	ctx := open(t, s)
	click(t, ctx, "#b")
	s.reached(t, 1)
	click(t, ctx, "#b")
	click(t, ctx, "#a")
	do(t, ctx, keys("#a", "\r"), keys("#a", " "), keys("#i", "\r"))
	check(t, ctx, `document.querySelector('#a').getAttribute('aria-disabled') + document.querySelector('#b').getAttribute('aria-disabled')`, "truetrue")
	check(t, ctx, `document.querySelector('#a').disabled`, false)
	s.release()
	until(t, ctx, `document.querySelector('iframe').contentDocument.querySelector('#done') !== null`)
	if s.count() != 1 || s.posts[0] != "item=tea&then=another" {
		t.Errorf("posts: %q", s.posts)
	}
}

func TestFormAfterBack(t *testing.T) {
	s := newShop(t, orderForm)
	ctx := open(t, s)
	eval[bool](t, ctx, `new MutationObserver(() => { window.seen ??= document.querySelector('#a').textContent })
		.observe(document.querySelector('#f'), { subtree: true, childList: true }), true`)
	click(t, ctx, "#a")
	s.reached(t, 1)
	s.release()
	until(t, ctx, `location.pathname === '/done'`)
	eval[bool](t, ctx, `setTimeout(() => history.back()), true`)
	until(t, ctx, `location.pathname === '/'`)
	check(t, ctx, `window.seen`, "Ordering") // and the page came out of the back-forward cache
	until(t, ctx, `document.querySelector('#a').innerHTML === '<b>Order</b>'`)
	check(t, ctx, `document.querySelectorAll('[aria-disabled]').length`, 0)
	click(t, ctx, "#a")
	s.reached(t, 2)
}

func TestFormCancelled(t *testing.T) {
	s := newShop(t, framed(orderForm))
	ctx := open(t, s)
	eval[bool](t, ctx, `document.addEventListener('submit', (e) => { if (!window.sure) e.preventDefault(); }), true`)
	click(t, ctx, "#a")
	check(t, ctx, `new Promise((r) => setTimeout(() => r(document.querySelectorAll('[aria-disabled]').length), 20))`, 0)
	check(t, ctx, `document.querySelector('#a').textContent`, "Order")
	eval[bool](t, ctx, `window.sure = true`)
	click(t, ctx, "#a")
	s.reached(t, 1)
}

func TestFormSubmittedByItsHandlerAfterACheck(t *testing.T) {
	s := newShop(t, framed(orderForm))
	ctx := open(t, s)
	eval[bool](t, ctx, `document.querySelector('#f').addEventListener('submit', (e) => {
		if (window.checked) return;
		e.preventDefault(); window.checked = true; setTimeout(() => e.target.requestSubmit(e.submitter)); }), true`)
	click(t, ctx, "#a")
	s.reached(t, 1)
	check(t, ctx, `document.querySelector('#a').getAttribute('aria-disabled')`, "true")
}

func TestFormsAreIndependent(t *testing.T) {
	s := newShop(t, strings.Repeat(`<form method=post action=/nothing data-idem><button>Go</button></form>`, 3))
	ctx := open(t, s)
	for i, form := range []string{"1", "2", "3"} {
		click(t, ctx, "form:nth-of-type("+form+") button")
		s.reached(t, i+1)
		click(t, ctx, "form:nth-of-type("+form+") button")
	}
	check(t, ctx, `document.querySelectorAll('[aria-disabled=true]').length`, 3)
	if s.count() != 3 {
		t.Errorf("%d posts, want one of each form", s.count())
	}
}

func TestFormGivenBackAfterDeadSubmission(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing data-idem data-idem-timeout=80><input type=submit value=Go data-idem-busy=Going></form>`)
	ctx := open(t, s)
	click(t, ctx, "input")
	until(t, ctx, `document.querySelector('input').value === 'Going'`)
	until(t, ctx, `document.querySelector('input').value === 'Go' && !document.querySelector('input').hasAttribute('aria-disabled')`)
	click(t, ctx, "input")
	s.reached(t, 2)
}

func TestFormRestoresOnlyItsOwnChanges(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing data-idem data-idem-timeout=80>
		<button id=a data-idem-busy=Going>Go</button><button id=b aria-disabled=true>No</button></form>`)
	ctx := open(t, s)
	click(t, ctx, "#b")
	click(t, ctx, "#a")
	until(t, ctx, `document.querySelector('#a').textContent === 'Going'`)
	eval[string](t, ctx, `document.querySelector('#a').textContent = 'Sold out'`)
	until(t, ctx, `!document.querySelector('#a').hasAttribute('aria-disabled')`)
	check(t, ctx, `document.querySelector('#a').textContent + document.querySelector('#b').getAttribute('aria-disabled')`, "Sold outtrue")
	if s.count() != 1 {
		t.Errorf("%d posts; a button that is aria-disabled submits nothing", s.count())
	}
}

func TestFormThatIsNotMarked(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing><button>Go</button></form>`)
	ctx := open(t, s)
	click(t, ctx, "button")
	s.reached(t, 1)
	check(t, ctx, `document.querySelectorAll('[aria-disabled]').length`, 0)
	click(t, ctx, "button")
	s.reached(t, 2)
}
