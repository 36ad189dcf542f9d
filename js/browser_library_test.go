package js_test

import (
	"testing"

	"github.com/idemkit/idem/internal/testkit"
)

// library sends forms by fetch, as htmx and Turbo do. A failure it shows in a summary of errors.
const library = `(window.calls = 0, addEventListener('submit', async (event) => {
	event.preventDefault();
	const { target: form, submitter } = event;
	if (!idem.forms.take(form, submitter)) return;
	calls++;
	const body = new URLSearchParams(new FormData(form, submitter));
	const { ok } = await fetch(window.fails ? '/nowhere' : '/nothing', { method: 'POST', body });
	if (!ok) document.querySelector('#errors').innerHTML = '<div id=summary role=alert tabindex=-1>Too little tea</div>';
	window.answered ??= performance.now();
	window.given = idem.forms.give(form, ok).then(() => performance.now());
}), true)`

// After a failure the form is as it was, and what is said of the failure has the focus.
func TestFormThatALibrarySendsInVain(t *testing.T) {
	s := newShop(t, `<div id=errors></div>`+tokenForm("f"))
	s.life = 3600
	b := open(t, s)
	testkit.Eval[bool](b, library)
	testkit.Eval[bool](b, `window.fails = true`)
	old := testkit.Eval[string](b, tokenOf("f"))
	b.Do(keys("[name=item]", "tea"))
	const whole = `document.querySelector('#f').outerHTML`
	before := testkit.Eval[string](b, whole)
	b.Click("button")
	b.Until(status + ` === 'Failed'`)
	testkit.Check(b, whole, before)
	testkit.Check(b, `document.activeElement.id`, "summary")
	testkit.Check(b, `document.querySelector('[name=item]').value`, "tea")
	testkit.Eval[bool](b, `!(window.fails = false)`)
	b.Click("button")
	if again := s.sent(t, 1); again.Get("idempotent_token") != old || again.Get("item") != "tea" {
		t.Errorf("sent %v, want the token %s", again, old)
	}
}

// After a success a click that was a double click's is swallowed; then the form is for a new intention.
func TestFormThatALibraryHasSent(t *testing.T) {
	s := newShop(t, tokenForm("f"))
	s.life = 3600
	b := open(t, s)
	testkit.Eval[bool](b, library)
	old := testkit.Eval[string](b, tokenOf("f"))
	b.Click("button")
	b.Until(`window.given !== undefined`)
	b.Click("button")
	testkit.Check(b, `given.then((at) => at - answered >= 499)`, true)
	testkit.Check(b, status, "Done")
	testkit.Check(b, `document.querySelectorAll('[aria-busy], [aria-disabled], [readonly]').length`, 0)
	testkit.Check(b, `window.calls`, 1)
	b.Click("button")
	first, second := s.sent(t, 1).Get("idempotent_token"), s.sent(t, 2).Get("idempotent_token")
	if first != old || claimsOf(second).Rid == claimsOf(first).Rid || claimsOf(second).Act != claimsOf(first).Act {
		t.Errorf("sent with %v, then with %v", claimsOf(first), claimsOf(second))
	}
	b.Until(`window.calls === 2 && document.querySelector('[aria-busy]') === null`)
	signed := s.signs()
	testkit.Check(b, `(async () => { const f = document.querySelector('#f'); f.remove(); await idem.forms.give(f, true); return true; })()`, true)
	if again := s.signs(); again != signed {
		t.Errorf("a form that is gone was given %d tokens", again-signed)
	}
}
