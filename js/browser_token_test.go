package js_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// tokenForm is a form as the templates make it.
func tokenForm(id string) string {
	return fmt.Sprintf(`<form id=%s method=post action=/post data-idem=/idem/token><input type=hidden name=idempotent_token value="{token}" autocomplete=off>
		<input name=item><button name=then value=receipt data-idem-busy=Ordering><b>Order</b></button></form>`, id) + says
}

func tokenOf(form string) string {
	return fmt.Sprintf(`document.querySelector('#%s [name=idempotent_token]').value`, form)
}

// sent is the n-th submission, from 1.
func (s *shop) sent(t *testing.T, n int) url.Values {
	t.Helper()
	s.reached(t, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	values, err := url.ParseQuery(s.posts[n-1])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// back is the browser's button; chromedp's own waits for a load that never comes where the page was kept.
func back(b testkit.Browser) {
	b.Helper()
	testkit.Eval[bool](b, `(setTimeout(() => history.back()), true)`)
	b.Until(`location.pathname === '/' && document.readyState === 'complete'`)
}

// rails#26366, mushroom-observer#5144: a dead button under its old label after Back. sure#3338: the old token with it. The page that the browser has
// kept gets a fresh token for what was sent, so that the same again is a duplicate and the server can tell of other content.
func TestFormThatBackBroughtOutOfTheCache(t *testing.T) {
	s := newShop(t, tokenForm("f"))
	s.life = 3600
	b := open(t, s)
	const whole = `document.querySelector('#f').outerHTML.replace(/value="e30[^"]*"/, '')`
	before := testkit.Eval[string](b, whole)
	old := testkit.Eval[string](b, tokenOf("f"))
	testkit.Eval[bool](b, `window.kept = true`)
	b.Do(keys("[name=item]", "tea for two"))
	b.Click("button")
	s.release()
	b.Until(`location.pathname === '/done'`)
	back(b)
	testkit.Check(b, `window.kept`, true)
	b.Until(tokenOf("f") + fmt.Sprintf(` !== %q`, old))
	testkit.Check(b, whole, before)
	testkit.Check(b, status, "Sent")
	fresh := testkit.Eval[string](b, tokenOf("f"))
	testkit.Check(b, `document.querySelector('[name=item]').value`, "tea for two")
	testkit.Eval[string](b, `document.querySelector('[name=item]').value += ', please'`)
	b.Click("button")
	first, second := s.sent(t, 1), s.sent(t, 2)
	if second.Get("item") != "tea for two, please" || second.Get("then") != "receipt" || second.Get("idempotent_token") != fresh {
		t.Errorf("sent %v, want the token %s", second, fresh)
	}
	if a, b := claimsOf(first.Get("idempotent_token")), claimsOf(fresh); a.Rid != b.Rid || a.Act != b.Act || a.Rid == "" {
		t.Errorf("the fresh token is for %v, the first one was for %v", b, a)
	}
}

// rails#32930, gowebapp#7: all forms of a page had one token. Each has its own, and its own after renewals.
func TestFormsKeepTheirTokensApart(t *testing.T) {
	s := newShop(t, tokenForm("f")+tokenForm("g"))
	s.life = 2
	b := open(t, s)
	ids := map[string]string{}
	for _, form := range []string{"f", "g"} {
		ids[form] = claimsOf(testkit.Eval[string](b, tokenOf(form))).Rid
	}
	testkit.Eval[bool](b, `(window.seen = new Set(), new MutationObserver((all) => all.forEach((one) => seen.add(one.target.form.id)))
		.observe(document, { subtree: true, attributeFilter: ['value'] }), true)`)
	b.Until(`seen.size === 2`)
	for form, id := range ids {
		if now := claimsOf(testkit.Eval[string](b, tokenOf(form))).Rid; now != id || ids["f"] == ids["g"] {
			t.Errorf("form %s was for %s, and its fresh token is for %s", form, id, now)
		}
	}
}

// A person types for much longer than a token lives: what is sent is good, and typing is not disturbed.
func TestFormTypedForLong(t *testing.T) {
	s := newShop(t, tokenForm("f"))
	s.life = 1
	b := open(t, s)
	first := claimsOf(testkit.Eval[string](b, tokenOf("f")))
	const text = "tea for two, with a lid and a spout"
	began := time.Now()
	for _, letter := range text {
		b.Do(keys("[name=item]", string(letter)), chromedp.Sleep(100*time.Millisecond))
	}
	b.Click("button")
	last := s.sent(t, 1)
	if last.Get("item") != text {
		t.Errorf("typed %q", last.Get("item"))
	}
	now := claimsOf(last.Get("idempotent_token"))
	if typed := time.Since(began); now.Rid != first.Rid || now.Exp < first.Exp+int64(typed/time.Second)-1 {
		t.Errorf("after %v the token %v, at first %v", typed, now, first)
	}
}

// Somebody else has logged in while one typed: the form keeps its token, about which the server asks, and is not made the other's in silence.
func TestFormTypedByAnother(t *testing.T) {
	s := newShop(t, tokenForm("f"))
	b := open(t, s)
	old := testkit.Eval[string](b, tokenOf("f"))
	s.mu.Lock()
	s.subject = "bob"
	s.mu.Unlock()
	b.Click("#f [name=item]")
	b.Until(`performance.getEntriesByName(new URL('/idem/token', location).href).some((token) => token.responseEnd > 0)`)
	testkit.Check(b, `fetch('/done').then((answer) => answer.ok)`, true) // by now the page has the token
	b.Click("button")
	if got := s.sent(t, 1).Get("idempotent_token"); got != old {
		t.Errorf("sent with %v, want %v", claimsOf(got), claimsOf(old))
	}
}

// A form that came into the page later is looked after from when it is entered.
func TestFormThatCameLater(t *testing.T) {
	s := newShop(t, `<template>`+tokenForm("f")+`</template>`)
	b := open(t, s)
	testkit.Eval[bool](b, `(document.body.append(document.querySelector('template').content), true)`)
	old := testkit.Eval[string](b, tokenOf("f"))
	b.Click("#f [name=item]")
	b.Until(tokenOf("f") + fmt.Sprintf(` !== %q`, old))
}

// rails#43280: a reload brought an old hidden value back. The server's token wins, in hand-made forms too.
func TestFormReloaded(t *testing.T) {
	for name, form := range map[string]string{
		"as the templates make it": tokenForm("f"),
		"by hand":                  `<form id=f method=post action=/post data-idem><input type=hidden name=idempotent_token value="{token}"><input name=item></form>`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, form)
			s.life = 1
			b := open(t, s)
			old := testkit.Eval[string](b, tokenOf("f"))
			b.Until(tokenOf("f") + fmt.Sprintf(` !== %q`, old)) // by the script, which is what browsers remember
			b.Do(keys("[name=item]", "tea"), chromedp.Reload())
			newest := testkit.Eval[string](b, `document.querySelector('[name=idempotent_token]').defaultValue`)
			if now := testkit.Eval[string](b, tokenOf("f")); now != newest || claimsOf(now).Rid == claimsOf(old).Rid {
				t.Errorf("after a reload the token is for %v, before it was for %v", claimsOf(now), claimsOf(old))
			}
		})
	}
}
