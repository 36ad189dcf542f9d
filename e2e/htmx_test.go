package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/internal/testkit"
)

// eachHTMX has one browser for all pages of a library's.
func eachHTMX(t *testing.T, test func(t *testing.T, b testkit.Browser, l library)) {
	t.Helper()
	for name, l := range htmxes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, testkit.Chromium(t), l)
		})
	}
}

func anew(_ *rows, w http.ResponseWriter, r *http.Request, row string) {
	w.WriteHeader(http.StatusOK) // before the form, which is then another intention
	_ = rowForm(row, htmxes()["htmx 2"].sends("outerHTML")(row)).Render(r.Context(), w)
}

func elsewhere(p *rows, w http.ResponseWriter, _ *http.Request, _ string) {
	fmt.Fprintf(w, `<output id="total" hx-swap-oob="true">%d</output>`, p.total())
}

// TestHTMXRows: each of ten forms is double-clicked while the others run. What stays in the page, or comes anew, can be sent again.
func TestHTMXRows(t *testing.T) {
	t.Parallel()
	eachHTMX(t, func(t *testing.T, b testkit.Browser, l library) {
		for _, c := range []struct {
			swap   string
			answer answering
			stays  bool // the form, or a new one in its place
			oob    bool
		}{{"none", silent, true, false}, {"delete", silent, false, false}, {"outerHTML", anew, true, false}, {"none", elsewhere, true, true}} {
			t.Run(fmt.Sprintf("%s, out of band %v", c.swap, c.oob), func(t *testing.T) {
				names := rowNames(10)
				p := rowsAt(t, b, l, rowForms(names, l.sends(c.swap)), c.answer)
				p.gate = make(chan struct{})
				var first, both []string
				tokens := map[string]bool{}
				for _, row := range names {
					tokens[p.token(row)] = true
					p.DoubleClick("#row-" + row + " button")
					first, both = append(first, row+"="+row), append(both, row+"="+row, row+"="+row)
				}
				close(p.gate)
				p.want(first...)
				if !c.stays {
					p.Until(`document.forms.length === 0`)
					return
				}
				for _, row := range names {
					p.free(row)
					tokens[p.token(row)] = true
					p.insist(row, 2)
				}
				p.want(both...)
				p.until(`(document.getElementById("total").textContent !== "") === %v`, c.oob)
				if len(tokens) != 20 {
					t.Errorf("%d tokens, want two for each form", len(tokens))
				}
			})
		}
	})
}

// TestHTMXRedirect: until the page that the answer leads to is there, the form is being sent (htmx#3483).
func TestHTMXRedirect(t *testing.T) {
	t.Parallel()
	eachHTMX(t, func(t *testing.T, b testkit.Browser, l library) {
		t.Helper()
		p := rowsAt(t, b, l, rowForms(rowNames(1), l.sends("none")), func(_ *rows, w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("HX-Redirect", "/slow")
		})
		testkit.Eval[bool](b, `setInterval(() => document.querySelector("#row-a button").click(), 20), true`)
		p.until(`document.getElementById("landed") !== null`)
		p.want("a=a")
	})
}

// TestHTMXFailure: nothing was done, and the same is sent again under the same token.
func TestHTMXFailure(t *testing.T) {
	t.Parallel()
	eachHTMX(t, func(t *testing.T, b testkit.Browser, l library) {
		t.Helper()
		p := rowsAt(t, b, l, rowForms(rowNames(1), l.sends("none")), func(p *rows, w http.ResponseWriter, _ *http.Request, _ string) {
			if p.total() == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		old := p.token("a")
		p.click("a")
		p.want("a=a")
		p.free("a")
		if p.token("a") != old {
			t.Error("the token of what failed is gone")
		}
		p.click("a")
		p.want("a=a", "a=a")
		p.until(`document.querySelector("#row-a [name=idempotent_token]").value !== %q`, old)
	})
}

// TestHTMXDelete: htmx writes the fields of a DELETE into the URL, where a token does not belong.
func TestHTMXDelete(t *testing.T) {
	t.Parallel()
	eachHTMX(t, func(t *testing.T, b testkit.Browser, l library) {
		for from, form := range map[string]templ.Component{
			"form":   rowForm("a", templ.Attributes{"hx-delete": "/rows/a", "hx-swap": "delete", "hx-target": "closest div"}),
			"button": rowForm("a", nil, templ.Raw(`<button id="away" hx-delete="/rows/a" hx-target="closest div" hx-swap="delete">Delete</button>`)),
		} {
			t.Run(from, func(t *testing.T) {
				sent := make(chan string, 2)
				p := rowsAt(t, b, l, form, func(_ *rows, _ http.ResponseWriter, r *http.Request, _ string) {
					sent <- r.Method + " " + r.URL.RawQuery
				})
				p.DoubleClick("#row-a button:last-of-type")
				p.until(`document.forms.length === 0`)
				if got := <-sent; !strings.HasPrefix(got, "DELETE ") || strings.Contains(got, "token") {
					t.Errorf("sent %q", got)
				}
				if p.arrived("a") != 1 || p.total() != 1 {
					t.Errorf("%d submissions, %d savings", p.arrived("a"), p.total())
				}
			})
		}
	})
}

// TestHTMXOtherRequests: what a form's fields ask for meanwhile is no submission.
func TestHTMXOtherRequests(t *testing.T) {
	t.Parallel()
	eachHTMX(t, func(t *testing.T, b testkit.Browser, l library) {
		t.Helper()
		asking := templ.Raw(`<input name="code" hx-get="/slow" hx-trigger="input" hx-target="#total" hx-swap="innerHTML">`)
		p := rowsAt(t, b, l, rowForm("a", l.sends("none")("a"), asking), silent)
		p.keys("#row-a [name=code]", "x")
		testkit.Check(b, `document.querySelector("#row-a[aria-busy]") === null`, true)
		p.click("a")
		p.want("a=a")
		p.until(`document.querySelector("#total #landed") !== null`)
	})
}
