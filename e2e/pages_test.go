package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// state is a page as a person may meet it, and the way there.
type state struct {
	name  string
	reach func(p *person)
}

// group of states that one browser goes through, one after the other, at a demo with these settings.
type group struct {
	states  []state
	scripts bool
	env     []string
}

func groups() map[string]group {
	return map[string]group{
		"plain":     {states: plainStates(), scripts: true},
		"explained": {states: explainedStates(), scripts: true},
		"working":   {states: workingStates(), scripts: true},
		"refusals":  {states: refusalStates(), scripts: true, env: []string{"IDEM_WAIT=0s"}},
		"no script": {states: []state{{"double-click-no-script", doubleClickWithoutScripts}}},
		"expired":   {states: []state{{"refusal-expired", expire}}, env: []string{"IDEM_TOKEN_TTL=1s"}},
	}
}

// TestEveryPage: every page in every state, on a phone and on a desk, light and dark, fits its window and is accessible to everybody, as far as
// axe-core can tell.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	for _, l := range looks() {
		for name, g := range groups() {
			if name == "explained" && l.name != "phone-light" && l.name != "desk-dark" {
				continue
			}
			t.Run(l.name+", "+name, func(t *testing.T) {
				t.Parallel()
				p := sits(t, start(t, embedded(t), g.env...), g.scripts)
				p.Look(l.width, l.height, l.scheme)
				for _, s := range g.states {
					s.reach(p)
					p.fits(s.name)
					if found := p.audit(); found != "" {
						t.Errorf("%s: %s", s.name, found)
					}
					p.shoot(s.name + "-" + l.name)
				}
			})
		}
	}
}

func at(name, path string) state { return state{name, func(p *person) { p.open(path) }} }

func plainStates() []state {
	return []state{
		at("index", "/"), at("form", "/form"), at("spa", "/spa"), at("double-click-before", "/double-click"), at("missing", "/nothing"),
		{"form-errors", func(p *person) {
			p.open("/form")
			p.enter("quantity", "100")
			p.enter("item", "teapot")
			p.Click("button.primary")
			p.until(`document.querySelector(".says") !== null`)
		}},
		{"form-failed", func(p *person) { p.order("/form?fail=422", p.item(), `document.querySelector(".note.wrong") !== null`) }},
		{"form-another", func(p *person) {
			p.open("/form")
			p.enter("item", p.item())
			p.Click("button[value=another]")
			p.until(`document.querySelector(".note.done") !== null`)
		}},
		{"receipt", func(p *person) {
			p.order("/form", strings.Repeat("averylongword", 12), `document.querySelector(".receipt") !== null`)
		}},
	}
}

// explainedStates are the pages of all codes. They differ in their words only.
func explainedStates() []state {
	var states []state
	for _, code := range codes() {
		states = append(states, at("problem-"+code, "/idem/problems/"+code))
	}
	return states
}

// order fills the order form in and sends it, and waits for what comes.
func (p *person) order(path, item, until string) {
	p.Helper()
	p.open(path)
	p.enter("item", item)
	p.enter("note", "with a lid\nand a spout")
	p.Click("button.primary")
	p.until(until)
}

// workingStates are those of pages that wait, and of what the scripts say.
func workingStates() []state {
	pill := func(text string) string {
		return fmt.Sprintf(`document.getElementById("pill").textContent.startsWith(%q)`, text)
	}
	return []state{
		{"form-pending", func(p *person) { // not by a submission: a browser paints no more while the next page is under way
			p.open("/form")
			p.enter("item", p.item())
			testkit.Check(p.Browser, `idem.forms.take(document.querySelector("form"), document.querySelector("button.primary"))`, true)
		}},
		{"spa-sending", func(p *person) { p.orderOverFetch("?delay=5s", pill("Sending")) }},
		{"spa-stopped", func(p *person) {
			p.orderOverFetch("?delay=5s", pill("Sending"))
			p.Click("#stop")
			p.until(pill("No answer"))
		}},
		{"spa-done", func(p *person) { p.orderOverFetch("?delay=800ms", pill("Done")) }},
		{"spa-replayed", func(p *person) {
			p.Click("#order .primary")
			p.until(pill("Done before"))
		}},
		{"spa-refused", func(p *person) { p.orderOverFetch("?fail=422", pill("Refused")) }},
		{"spa-offline", func(p *person) {
			p.Offline(true)
			p.enter("item", p.item())
			p.Click("#order .primary")
			p.until(pill("Waiting for a network"))
		}},
		{"spa-online-again", func(p *person) {
			p.Offline(false)
			p.until(pill("Done"))
		}},
		{"double-click-waiting", func(p *person) {
			p.open("/double-click")
			p.twice("[data-side=unguarded] button")
			p.twice("[data-side=guarded] button")
			p.until(`document.querySelector("[data-side=guarded] [data-log] li") !== null`)
		}},
		{"double-click-after", func(p *person) { p.until(clicked(4)) }},
		{"double-click-through", func(p *person) {
			p.Click("#through")
			p.twice("[data-side=guarded] button")
			p.until(clicked(6))
		}},
		{"receipt-twice", func(p *person) {
			p.Click("[data-side=unguarded] [data-log] a")
			p.until(`document.querySelector(".total.many") !== null`)
		}},
		{"receipt-once", func(p *person) {
			p.Click(".after a:last-child")
			p.until(`document.querySelector("[data-side=guarded] [data-log] a") !== null`)
			p.Click("[data-side=guarded] [data-log] a")
			p.until(`document.querySelector(".total:not(.many)") !== null`)
		}},
	}
}

// clicked: this many clicks have their answer.
func clicked(n int) string {
	return fmt.Sprintf(`document.querySelectorAll("li.new, li.same").length === %d && !document.querySelector(".waiting")`, n)
}

func (p *person) orderOverFetch(trouble, until string) {
	p.Helper()
	p.open("/spa")
	p.Click("#next") // one that was under way would go on
	p.enter("item", p.item())
	p.enter("trouble", trouble)
	p.Click("#order .primary")
	p.until(until)
}

// refusalStates are the pages that give a submission back.
func refusalStates() []state {
	refused := func(code string) string { return `document.querySelector("[data-code=` + code + `]") !== null` }
	return []state{
		{"refusal-mismatch", func(p *person) {
			p.order("/form", p.item(), `document.querySelector(".receipt") !== null`)
			p.back()
			p.until(`document.getElementById("item") !== null`)
			p.enter("item", p.item())
			p.Click("button.primary")
			p.until(refused("payload_mismatch"))
		}},
		{"refusal-wrong-subject", func(p *person) {
			p.open("/form")
			p.forgetCookies()
			p.enter("item", p.item())
			p.enter("note", "with a lid\nand a spout")
			p.Click("button.primary")
			p.until(refused("token_wrong_subject"))
		}},
		{"refusal-invalid", func(p *person) {
			p.open("/form")
			p.enter("item", p.item())
			testkit.Eval[string](p.Browser, `document.querySelector("[name=idempotent_token]").value = "forged"`)
			p.Click("button.primary")
			p.until(refused("token_invalid"))
		}},
		{"refusal-in-progress", func(p *person) {
			p.open("/form?delay=3s")
			p.enter("item", p.item())
			testkit.Eval[int](p.Browser, `(fetch(location, { method: "POST", body: new FormData(document.querySelector("form[data-idem]"), document.querySelector("button.primary")) }), 1)`)
			p.demo.backend.running(p.T, "order.create")
			p.Click("button.primary")
			p.until(refused("in_progress"))
		}},
		{"refusal-fragment", func(p *person) {
			p.open("/idem/problems/token_expired") // for the kit's style sheet
			testkit.Eval[bool](p.Browser, `fetch("/form", { method: "POST", headers: { "HX-Request": "true" }, body: new URLSearchParams({ item: "tea", idempotent_token: "forged" }) })
				.then((answer) => answer.text()).then((text) => { document.querySelector("main > *").insertAdjacentHTML("beforeend", text); return true; })`)
			p.until(refused("token_invalid"))
		}},
	}
}

// codes of every refusal.
func codes() []string {
	return strings.Fields(`token_missing token_in_url request_id_invalid key_missing key_invalid bad_request unauthorized subject_missing token_invalid
		token_wrong_subject token_wrong_action cross_origin token_expired request_id_mismatch token_used already_done in_progress key_taken cancelled
		claim_lost body_too_large payload_mismatch duplicate_in_window rate_limited store_unavailable outcome_unknown`)
}

func doubleClickWithoutScripts(p *person) {
	p.open("/double-click")
	for _, side := range []string{"unguarded", "guarded"} {
		p.Click("[data-side=" + side + "] button")
		p.until(`document.querySelector("[data-side=` + side + `].one") !== null`)
	}
}

// expire sends the order form when its token is past its life. With scripts it would have been renewed.
func expire(p *person) {
	p.open("/form")
	shown := time.Now()
	p.enter("item", p.item())
	p.enter("note", "with a lid\nand a spout")
	testkit.Eventually(p.visitor, 10*time.Second, "the token is past its life", func() bool { return time.Since(shown) > 2*time.Second })
	p.Click("button.primary")
	p.until(`document.querySelector("[data-code=token_expired]") !== null`)
}

// forgetCookies: the session has ended, or somebody else logged in.
func (p *person) forgetCookies() {
	p.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
}
