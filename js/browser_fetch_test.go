package js_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

func keys(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), text)
}

const sendForm = `(() => { const form = new FormData(); form.append('item', 'tea'); form.append('file', new File(['\r\n\0'], 'a.bin', { lastModified: 1 }));
	return idem.fetch('/post', { method: 'POST', body: form, idem: { backoff: 1 } }).then((r) => r.url.endsWith('/done')); })()`

func TestFetchSendsEqualBytes(t *testing.T) {
	s := newShop(t, "")
	s.release()
	b := open(t, s)
	testkit.Check(b, sendForm, true)
	if s.count() != 2 || s.posts[0] != s.posts[1] || !strings.Contains(s.posts[0], "a.bin") {
		t.Errorf("posts: %q", s.posts)
	}
	if a, b := s.headers[0].Get("Idempotent-Request-Id"), s.headers[1].Get("Idempotent-Request-Id"); a != b || a == "" {
		t.Errorf("request ids %q and %q", a, b)
	}
}

func TestFetchAfterReload(t *testing.T) {
	s := newShop(t, "")
	b := open(t, s)
	testkit.Eval[bool](b, `void `+sendForm+` || true`)
	s.reached(t, 1)
	b.Do(chromedp.Reload())
	s.release()
	testkit.Check(b, sendForm, true)
	if a, b := s.headers[0].Get("Idempotent-Request-Id"), s.headers[1].Get("Idempotent-Request-Id"); a != b {
		t.Errorf("the same again after a reload has request id %q, the first had %q", b, a)
	}
	testkit.Check(b, `sessionStorage.length`, 0)
}

func TestImportForEffect(t *testing.T) {
	s := newShop(t, "")
	b := open(t, s)
	testkit.Check(b, `(async () => { const before = window.idem; await import('/idem-client.js'); return before === window.idem && typeof idem.fetch })()`, "function")
}
