package js_test

import (
	"strings"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
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
	b := open(t, s)
	b.Click("#b")
	s.reached(t, 1)
	b.Click("#b")
	b.Click("#a")
	b.Do(keys("#a", "\r"), keys("#a", " "), keys("#i", "\r"))
	testkit.Check(b, `document.querySelector('#a').getAttribute('aria-disabled') + document.querySelector('#b').getAttribute('aria-disabled')`, "truetrue")
	testkit.Check(b, `document.querySelector('#a').disabled`, false)
	s.release()
	b.Until(`document.querySelector('iframe').contentDocument.querySelector('#done') !== null`)
	if s.count() != 1 || s.posts[0] != "item=tea&then=another" {
		t.Errorf("posts: %q", s.posts)
	}
}

func TestFormAfterBack(t *testing.T) {
	s := newShop(t, orderForm)
	b := open(t, s)
	testkit.Eval[bool](b, `new MutationObserver(() => { window.seen ??= document.querySelector('#a').textContent })
		.observe(document.querySelector('#f'), { subtree: true, childList: true }), true`)
	b.Click("#a")
	s.reached(t, 1)
	s.release()
	b.Until(`location.pathname === '/done'`)
	testkit.Eval[bool](b, `setTimeout(() => history.back()), true`)
	b.Until(`location.pathname === '/'`)
	testkit.Check(b, `window.seen`, "Ordering") // and the page came out of the back-forward cache
	b.Until(`document.querySelector('#a').innerHTML === '<b>Order</b>'`)
	testkit.Check(b, `document.querySelectorAll('[aria-disabled]').length`, 0)
	b.Click("#a")
	s.reached(t, 2)
}

func TestFormCancelled(t *testing.T) {
	s := newShop(t, framed(orderForm))
	b := open(t, s)
	testkit.Eval[bool](b, `document.addEventListener('submit', (e) => { if (!window.sure) e.preventDefault(); }), true`)
	b.Click("#a")
	testkit.Check(b, `new Promise((r) => setTimeout(() => r(document.querySelectorAll('[aria-disabled]').length), 20))`, 0)
	testkit.Check(b, `document.querySelector('#a').textContent`, "Order")
	testkit.Eval[bool](b, `window.sure = true`)
	b.Click("#a")
	s.reached(t, 1)
}

func TestFormSubmittedByItsHandlerAfterACheck(t *testing.T) {
	s := newShop(t, framed(orderForm))
	b := open(t, s)
	testkit.Eval[bool](b, `document.querySelector('#f').addEventListener('submit', (e) => {
		if (window.checked) return;
		e.preventDefault(); window.checked = true; setTimeout(() => e.target.requestSubmit(e.submitter)); }), true`)
	b.Click("#a")
	s.reached(t, 1)
	testkit.Check(b, `document.querySelector('#a').getAttribute('aria-disabled')`, "true")
}

func TestFormsAreIndependent(t *testing.T) {
	s := newShop(t, strings.Repeat(`<form method=post action=/nothing data-idem><button>Go</button></form>`, 3))
	b := open(t, s)
	for i, form := range []string{"1", "2", "3"} {
		b.Click("form:nth-of-type(" + form + ") button")
		s.reached(t, i+1)
		b.Click("form:nth-of-type(" + form + ") button")
	}
	testkit.Check(b, `document.querySelectorAll('[aria-disabled=true]').length`, 3)
	if s.count() != 3 {
		t.Errorf("%d posts, want one of each form", s.count())
	}
}

func TestFormGivenBackAfterDeadSubmission(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing data-idem data-idem-timeout=80><input type=submit value=Go data-idem-busy=Going></form>`)
	b := open(t, s)
	b.Click("input")
	b.Until(`document.querySelector('input').value === 'Going'`)
	b.Until(`document.querySelector('input').value === 'Go' && !document.querySelector('input').hasAttribute('aria-disabled')`)
	b.Click("input")
	s.reached(t, 2)
}

func TestFormRestoresOnlyItsOwnChanges(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing data-idem data-idem-timeout=80>
		<button id=a data-idem-busy=Going>Go</button><button id=b aria-disabled=true>No</button></form>`)
	b := open(t, s)
	b.Click("#b")
	b.Click("#a")
	b.Until(`document.querySelector('#a').textContent === 'Going'`)
	testkit.Eval[string](b, `document.querySelector('#a').textContent = 'Sold out'`)
	b.Until(`!document.querySelector('#a').hasAttribute('aria-disabled')`)
	testkit.Check(b, `document.querySelector('#a').textContent + document.querySelector('#b').getAttribute('aria-disabled')`, "Sold outtrue")
	if s.count() != 1 {
		t.Errorf("%d posts; a button that is aria-disabled submits nothing", s.count())
	}
}

func TestFormThatIsNotMarked(t *testing.T) {
	s := newShop(t, `<form method=post action=/nothing><button>Go</button></form>`)
	b := open(t, s)
	b.Click("button")
	s.reached(t, 1)
	testkit.Check(b, `document.querySelectorAll('[aria-disabled]').length`, 0)
	b.Click("button")
	s.reached(t, 2)
}
