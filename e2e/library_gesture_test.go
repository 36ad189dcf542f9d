package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// rowGestures are what people do to one form while its submission takes 1.6 s.
func rowGestures() map[string]func(p *rows) {
	const save, more, value = "#row-a button", "#row-a [value=more]", "#row-a [name=value]"
	return map[string]func(p *rows){
		"double click":                      func(p *rows) { p.DoubleClick(save) },
		"click again after 1.1 s":           func(p *rows) { p.Click(save); p.Do(chromedp.Sleep(1100 * time.Millisecond)); p.Click(save) },
		"Enter twice":                       func(p *rows) { p.keys(value, "\r"); p.keys(value, "\r") },
		"a button, then Enter on the other": func(p *rows) { p.Click(save); p.keys(more, "\r") },
	}
}

// TestGesturesWithLibraries: one POST each. Without a hook htmx sends two of each, Turbo two of the last.
func TestGesturesWithLibraries(t *testing.T) {
	t.Parallel()
	for name, l := range libraries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testkit.Chromium(t)
			for gesture, made := range rowGestures() {
				t.Run(gesture, func(t *testing.T) {
					p := rowsAt(t, b, l, rowForms(rowNames(2), l.sends("none")), l.stays)
					p.delay = 1600 * time.Millisecond
					old := p.token("a")
					made(p)
					p.want("a=a")
					p.until(`document.querySelector("#row-a [name=idempotent_token]").value !== %q`, old)
					p.free("a")
					p.want("a=a")
				})
			}
		})
	}
}

// TestRest: who goes on clicking after a success sends nothing for half a second, and then another row, be the form the same or a new one.
func TestRest(t *testing.T) {
	t.Parallel()
	for name, l := range libraries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testkit.Chromium(t)
			for swap, answer := range map[string]answering{"none": l.stays, "outerHTML": anew} {
				if !l.hx && swap != "none" {
					continue
				}
				t.Run(swap, func(t *testing.T) {
					p := rowsAt(t, b, l, rowForms(rowNames(2), l.sends(swap)), answer)
					other := p.token("b")
					p.clicksOn()
					if rest := testkit.Eval[float64](b, `window.rest`); rest < 400 || rest > 5000 { // counted from a moment after
						t.Errorf("after %.0f ms the next submission goes", rest)
					}
					p.want("a=a", "a=a")
					if p.token("b") != other {
						t.Error("the other form has a token of this one's") // gowebapp#7, rails#32930
					}
				})
			}
		})
	}
}

// clicksOn clicks without an end. How long after the first answer the second submission goes is the promise window.rest, in ms.
func (p *rows) clicksOn() {
	p.Helper()
	testkit.Eval[bool](p.Browser, fmt.Sprintf(`window.rest = new Promise((resolve) => {
		const clicking = setInterval(() => document.querySelector("#row-a button").click(), 5);
		let ended = Infinity, starts = 0;
		addEventListener(%q, () => { ended = performance.now(); }, { once: true });
		addEventListener(%q, (event) => {
			if (event.defaultPrevented || ++starts < 2) return;
			clearInterval(clicking);
			resolve(performance.now() - ended);
		}); }), true`, p.library.ended, p.library.started))
}

// TestOnlyOwnChangesAreTakenBack: what was disabled before still is (htmx#3437).
func TestOnlyOwnChangesAreTakenBack(t *testing.T) {
	t.Parallel()
	for name, l := range libraries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := rowsAt(t, testkit.Chromium(t), l, rowForms(rowNames(1), l.sends("none")), l.stays)
			testkit.Eval[bool](p.Browser, `document.querySelector("#row-a [value=more]").disabled = true`)
			p.click("a")
			p.until(`document.querySelector("#row-a[aria-busy]")?.textContent.includes("Saving") === true`)
			p.free("a")
			testkit.Check(p.Browser, `document.querySelectorAll("[aria-disabled], [readonly]").length`, 0)
			testkit.Check(p.Browser, `document.querySelector("#row-a").innerText`, "SaveMore")
			testkit.Check(p.Browser, `document.querySelector("#row-a [value=more]").disabled`, true)
			p.want("a=a")
		})
	}
}

// TestLogInElsewhere: the session changes in another tab. What was typed is kept, the person is asked, and it goes through.
func TestLogInElsewhere(t *testing.T) {
	t.Parallel()
	for name, l := range libraries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testkit.Chromium(t)
			for _, swap := range []string{"none", "outerHTML", "delete"} {
				t.Run(swap, func(t *testing.T) {
					p := rowsAt(t, b, l, rowForms(rowNames(2), l.sends(swap)), l.stays)
					testkit.Eval[string](b, `document.cookie = "user=for-`+swap+`"`)
					p.keys("#row-a [name=value]", "as typed: ")
					p.click("a")
					p.until(`document.querySelector("[data-code=token_wrong_subject]") !== null`)
					const value = `document.querySelector(".idem-problem [name=value]").value`
					testkit.Check(b, value, "as typed: a")
					if l.hx {
						p.free("a")
						testkit.Check(b, `document.querySelector("#row-a [name=value]").value`, "as typed: a")
						testkit.Check(b, `document.querySelector("#row-a").previousElementSibling.matches(".idem-problem")`, true)
						p.click("a") // is refused again, and told once
						p.free("a")
						testkit.Check(b, `document.querySelectorAll(".idem-problem").length`, 1)
					}
					p.Click(".idem-problem [type=checkbox]")
					p.Click(".idem-problem [type=submit]")
					p.saves("a=as typed: a")
					if l.hx { // the next page comes when this one is there
						p.until(`location.pathname === "/rows/a" && document.readyState === "complete"`)
					}
				})
			}
		})
	}
}
