package js_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// sends an order from the page and tells the answer's status, or the error's name.
func sends(init string) string {
	return fmt.Sprintf(`idem.fetch('/orders', %s).then((r) => String(r.status), (e) => e.name)`, init)
}

// axios-retry#66: a POST was sent again with nothing that holds the second back.
func TestNoTokenNoRetry(t *testing.T) {
	t.Parallel()
	t.Run("another origin", func(t *testing.T) {
		t.Parallel()
		here, there := newAPI(t), newAPI(t, away("0"), away("0"))
		b := here.open()
		post := `idem.fetch('` + there.URL + `/orders', { method: 'POST', body: 'tea'%s }).then((r) => r.status)`
		testkit.Check(b, fmt.Sprintf(post, ""), 503)
		if got := there.reached(1); got[0].token != "" || there.issued()+here.issued() != 0 {
			t.Errorf("a stranger got a token: %v", got[0].header)
		}
		testkit.Check(b, fmt.Sprintf(post, `, origins: ['`+there.URL+`']`), 201)
		same(t, there.reached(3)[1:]...)
	})
	t.Run("a redirect to another origin", func(t *testing.T) {
		t.Parallel()
		there := newAPI(t)
		here := newAPI(t, answer{status: http.StatusTemporaryRedirect, headers: map[string]string{"Location": there.URL + "/orders"}})
		testkit.Check(here.open(), sends(`{ json: 1, retry: { limit: 0 } }`), "TypeError")
		here.reached(1)
		there.reached(0)
	})
	t.Run("the token service refuses", func(t *testing.T) {
		t.Parallel()
		a := newAPI(t)
		a.refuse = true
		b := a.open()
		testkit.Check(b, `idem.fetch('/orders', { json: 1 }).catch((e) => e.response.status)`, 403)
		a.reached(0)
	})
}

// fetch-retry#99: a second attempt was sent with an empty body.
func TestEqualBytesOnEachAttempt(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"text": `{ body: 'tea \u2615\r\n' }`, "json": `{ json: { item: 'tea \u2615' } }`, "fields": `{ body: new URLSearchParams({ item: 'tea &' }) }`,
		"bytes": `{ body: new Uint8Array([0, 255, 13, 10]) }`, "blob": `{ body: new Blob(['tea'], { type: 'text/x' }) }`,
		"form with a file": `(() => { const f = new FormData(); f.append('item', 'tea'); f.append('file', new File(['\r\n\0'], 'a.bin')); return { body: f } })()`,
	}
	a := newAPI(t)
	b := a.open()
	for name, body := range bodies {
		a.mu.Lock()
		a.calls, a.script = nil, []answer{away("0"), {status: 500}}
		a.mu.Unlock()
		testkit.Check(b, sends(`{ method: 'POST', retry: { delay: () => 1 }, ...`+body+` }`), "201")
		got := a.reached(3)
		same(t, got...)
		if got[0].body == "" || got[0].header.Get("Content-Type") != got[2].header.Get("Content-Type") {
			t.Errorf("%s: %q as %s", name, got[0].body, got[0].header.Get("Content-Type"))
		}
	}
	testkit.Check(b, `idem.fetch(new Request('/orders', { method: 'POST', body: 'tea' })).then((r) => r.status)`, 201)
	testkit.Check(b, `idem.fetch('/orders', { method: 'POST', body: new Blob(['tea']).stream() }).catch((e) => e.message)`, "idem: a stream cannot be sent twice")
	a.reached(4)
}

// ky#390: who wanted to leave had to wait for the end of the wait.
func TestAbortEndsTheWait(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("20"))
	b := a.open()
	if took := testkit.Eval[float64](b, `(async () => {
		const control = new AbortController();
		let since;
		document.addEventListener('idem:retry', () => setTimeout(() => { since = performance.now(); control.abort(new Error('enough')); }, 20));
		await idem.fetch('/orders', { json: 1, signal: control.signal }).catch((error) => { if (error.message !== 'enough') throw error; });
		return performance.now() - since; })()`); took >= 50 {
		t.Errorf("it took %v ms", took)
	}
	a.reached(1)
}

// stripe-php#637: the caller's own key was overwritten.
func TestExplicitHeaderWins(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Idempotency-Key", "Idempotent-Token"} {
		a := newAPI(t, away("0"))
		b := a.open()
		testkit.Check(b, sends(`{ json: 1, headers: { '`+header+`': 'mine' } }`), "201")
		for _, call := range a.reached(2) {
			if call.header.Get(header) != "mine" || (header != "Idempotent-Token" && call.token != "") || a.issued() != 0 {
				t.Errorf("%v", call.header)
			}
		}
	}
}

// Tusky#2152: each click had a key of its own, and what had failed on its way back was posted twice.
func TestFailsAndIsClickedAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("0"), answer{never: true}, answer{}, answer{})
	b := a.open()
	testkit.Eval[bool](b, `document.querySelector('button').addEventListener('click', () => {
		window.said = undefined;
		`+sends(`{ json: { text: 'toot' }, retry: { limit: 0 }, timeout: 2000 }`)+`.then((said) => { window.said = said; });
	}), true`)
	for _, want := range []string{"503", "TimeoutError", "201", "201"} {
		b.Click("button")
		b.Until(`window.said === '` + want + `'`)
	}
	got := a.reached(4)
	same(t, got[:3]...)
	if got[3].request == got[0].request {
		t.Error("the same again, after a success, is not a new intention")
	}
}

// react#30691: the second call waited for the first and was then sent too.
func TestSecondCallJoins(t *testing.T) {
	t.Parallel()
	s := newShop(t, "<button>Go</button>")
	b := open(t, s)
	testkit.Eval[bool](b, `window.answers = [], document.querySelector('button').addEventListener('click', () => {
		answers.push(idem.fetch('/post', { json: 1 }).then((r) => r.text())) }), true`)
	b.DoubleClick("button")
	s.reached(t, 1)
	b.Click("button")
	s.release()
	testkit.Check(b, `Promise.all(answers).then((all) => all.length + ' ' + new Set(all).size)`, "3 1")
	if s.count() != 2 { // the first attempt was answered 503
		t.Errorf("%d posts", s.count())
	}
}

// query#9769: a call without a network was pending for ever, and nobody could tell.
func TestOffline(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	b := a.open()
	testkit.Eval[bool](b, `document.addEventListener('idem:offline', ({ detail }) => { document.title = 'offline'; window.cancel = detail.cancel; }), true`)
	send := `document.title = '', ` + sends(`{ json: 1 }`) + `.then((said) => { document.title = said; }), true`
	b.Offline(true)
	testkit.Eval[bool](b, send)
	b.Until(`document.title === 'offline'`)
	testkit.Eval[bool](b, `cancel(), true`)
	b.Until(`document.title === 'AbortError'`)
	testkit.Eval[bool](b, send)
	b.Until(`document.title === 'offline'`)
	b.Offline(false)
	b.Until(`document.title === '201'`)
	a.reached(1)
}

// A page that was left sends nothing more, whether it is kept for Back or not.
func TestNoRetriesAfterTheEnd(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("1"))
	b := a.open()
	testkit.Eval[bool](b, `document.addEventListener('idem:retry', () => { window.waits = true; }), `+sends(`{ json: 1 }`)+`.then((said) => { window.said = said; }), true`)
	b.Until(`window.waits === true`)
	b.Visit(a.URL + "/done")
	testkit.Eval[bool](b, `setTimeout(() => history.back()), true`)
	b.Until(`location.pathname === '/' && document.readyState === 'complete'`)
	testkit.Check(b, `window.said`, "AbortError")
	testkit.Check(b, sends(`{ json: 1 }`), "201")
	same(t, a.reached(2)...)
}

// What is meant to outlive the page is not ended with it.
func TestKeepaliveOutlivesThePage(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	b := a.open()
	testkit.Eval[bool](b, `(async () => {
		const { token } = await idem.token();
		idem.fetch('/orders', { json: 1, keepalive: true, headers: { 'Idempotent-Token': token } });
		await Promise.resolve();
		setTimeout(() => { location = '/elsewhere'; }); })(), true`)
	a.reached(1)
}

// There is no crypto.randomUUID, no crypto.subtle and no navigator.locks on plain http.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("0"), answer{status: 409, code: "token_expired"})
	b := testkit.Chromium(t, chromedp.Flag("host-resolver-rules", "MAP shop.test 127.0.0.1"))
	b.Visit(strings.Replace(a.URL, "127.0.0.1", "shop.test", 1))
	testkit.Check(b, `isSecureContext || 'randomUUID' in crypto || 'subtle' in crypto || 'locks' in navigator`, false)
	testkit.Check(b, sends(`{ json: 1 }`), "201")
	a.reached(3)
}
