package js_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

const secret = `{ json: { card: 'secret' }, retry: { limit: 0 } }`

// query#6238: a reload lost the call that ran. That the server replays is tested with the demo.
func TestReloadKeepsTheIntention(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]answer{"running": {never: true}, "failed": away("0")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, first, answer{}, answer{})
			b := a.open()
			testkit.Eval[bool](b, `void `+sends(secret)+` || true`)
			a.reached(1)
			b.Do(chromedp.Reload())
			testkit.Check(b, sends(secret), "201")
			same(t, a.reached(2)...)
			b.Do(chromedp.Reload())
			testkit.Check(b, sends(secret), "201")
			if got := a.reached(3); got[2].request == got[1].request {
				t.Error("what was done is still remembered")
			}
		})
	}
}

func TestStorageHasNoContent(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("0"))
	b := a.open()
	testkit.Check(b, sends(secret), "503")
	testkit.Check(b, `sessionStorage.length`, 0)
	b.Visit(a.URL + "/elsewhere")
	stored := testkit.Eval[string](b, `JSON.stringify({ ...sessionStorage })`)
	if strings.Contains(stored, "secret") || !strings.Contains(stored, "request-1") || !strings.Contains(stored, "token-1") {
		t.Errorf("stored: %s", stored)
	}
}

// A duplicate of a tab begins with a copy of the storage. Both can send the same: two people's wishes, or two of one.
func TestDuplicatedTabHasItsOwn(t *testing.T) {
	t.Parallel()
	a := newAPI(t, away("0"))
	b := a.open()
	testkit.Check(b, sends(secret), "503")
	testkit.Check(b, `(async () => {
		sessionStorage.copied = 'yes';
		const tab = open('/');
		await new Promise((resolve) => tab.addEventListener('load', resolve));
		return tab.sessionStorage.copied + (await tab.idem.fetch('/orders', `+secret+`)).status; })()`, "yes201")
	got := a.reached(2)
	if got[0].request == got[1].request {
		t.Error("the duplicate sends under the first tab's request id")
	}
	b.Do(chromedp.Reload())
	testkit.Check(b, sends(secret), "201")
	got = a.reached(3)
	same(t, got[0], got[2])
}

// Phones end the pages that nobody looks at, without a word: what is begun is kept from then on, and what is done meanwhile is not.
func TestHiddenPageIsReadyForItsEnd(t *testing.T) {
	t.Parallel()
	b := newAPI(t, away("0")).open()
	testkit.Check(b, sends(secret), "503")
	testkit.Eval[bool](b, `window.tab = open('/elsewhere'), true`)
	b.Until(`document.hidden && sessionStorage['idem/'].includes('request-1')`)
	testkit.Check(b, sends(secret), "201")
	testkit.Check(b, `sessionStorage['idem/']`, "{}")
	testkit.Eval[bool](b, `tab.close(), true`)
	b.Until(`!document.hidden && sessionStorage.length === 0`)
}

func TestEmbeddedToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t, answer{status: 409, code: "token_expired"})
	a.head = `<meta name=idem-token content=embedded><meta name=idem-request-id content=request-embedded><meta name=idem-action content=order.create>`
	b := a.open()
	testkit.Check(b, sends(`{ json: 1, action: 'refund' }`), "201") // another action: left alone, and so is token_expired unnoticed
	testkit.Check(b, sends(`{ json: 1, requestId: 'another-one' }`), "201")
	testkit.Check(b, sends(`{ json: 1 }`), "201")
	testkit.Check(b, sends(`{ json: 2 }`), "201")
	var seen []string
	for _, call := range a.reached(5) {
		seen = append(seen, call.token+" "+call.request)
	}
	want := "token-1 request-1, token-2 request-1, token-3 another-one, embedded request-embedded, token-4 request-4"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	replayed := answer{headers: map[string]string{"Idempotent-Replayed": "true"}}
	for name, tc := range map[string]struct {
		script     []answer
		init, want string
	}{
		"success": {nil, `{ json: 1 }`, "start, success request-1 201"},
		"retry":   {[]answer{away("0")}, `{ json: 1 }`, "start, retry request-1 503 1, success request-1 201"},
		"replay":  {[]answer{replayed}, `{ json: 1 }`, "start, replay request-1 201, success request-1 201"},
		"refusal": {[]answer{{status: 409, code: "already_done"}}, `{ json: 1 }`, "start, error request-1 409 already_done"},
		"abort":   {[]answer{{never: true}}, `{ json: 1, signal: AbortSignal.timeout(1000) }`, "start, error request-1 TimeoutError"},
		"failure": {[]answer{{never: true}}, `{ json: 1, timeout: 100, retry: { limit: 0 } }`, "start, error request-1 TimeoutError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, tc.script...)
			b := a.open()
			testkit.Eval[bool](b, `window.told = [], ['start', 'retry', 'replay', 'offline', 'success', 'error'].forEach((name) =>
				addEventListener('idem:' + name, ({ detail: { action, requestId, response, code, error, delay, retryCount } }) => told.push(
					[name, requestId, response?.status, code, error?.name, delay >= 0 && retryCount].filter(Boolean).join(' ')))), true`)
			testkit.Eval[string](b, sends(tc.init))
			testkit.Check(b, `told.join(', ')`, tc.want)
		})
	}
}

// An application that bundles the client, on a page whose forms load it too.
func TestSecondCopyIsTheFirst(t *testing.T) {
	t.Parallel()
	b := newAPI(t).open()
	testkit.Check(b, `(async () => { const first = idem; const copy = await import('/idem-client.js?copy');
		return idem === first && copy.idem === first && copy.createClient === first.createClient && typeof first.fetch })()`, "function")
}
