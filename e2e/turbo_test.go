package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/internal/testkit"
)

// TestTurboRows: Turbo gives a submission up for the next one, of whatever form (turbo-rails#310). Here all finish, and all answers are shown.
func TestTurboRows(t *testing.T) {
	t.Parallel()
	l := turbo()
	p := rowsAt(t, testkit.Chromium(t), l, rowForms(rowNames(3), l.sends("")), func(_ *rows, w http.ResponseWriter, _ *http.Request, row string) {
		w.Header().Set("Content-Type", "text/vnd.turbo-stream.html")
		fmt.Fprintf(w, `<turbo-stream action="append" target="total"><template>%s.</template></turbo-stream>`, row)
	})
	p.delay = time.Second
	for _, row := range rowNames(3) {
		p.DoubleClick("#row-" + row + " button")
	}
	p.want("a=a", "b=b", "c=c")
	p.until(`document.getElementById("total").textContent.split("").sort().join("") === "...abc"`)
	for _, row := range rowNames(3) {
		p.free(row)
		p.insist(row, 2)
	}
	p.want("a=a", "a=a", "b=b", "b=b", "c=c", "c=c")
}

// TestTurboRedirect: the page that an answer leads to takes its time. Then it has a form of its own, and Back shows none that was sent already.
func TestTurboRedirect(t *testing.T) {
	t.Parallel()
	l := turbo()
	p := rowsAt(t, testkit.Chromium(t), l, rowForms(rowNames(2), l.sends("")), func(_ *rows, w http.ResponseWriter, r *http.Request, _ string) {
		http.Redirect(w, r, "/?after", http.StatusSeeOther)
	})
	old := p.token("a")
	testkit.Eval[bool](p.Browser, `window.clicking = setInterval(() => document.querySelector("#row-a button").click(), 20),
		addEventListener("turbo:render", () => setTimeout(() => clearInterval(clicking), 300)), true`)
	p.until(`location.search === "?after" && document.querySelector("[aria-busy]") === null`)
	p.want("a=a")
	testkit.Eval[bool](p.Browser, `setTimeout(() => history.back()), true`)
	p.until(`location.search === "" && document.documentElement.getAttribute("aria-busy") === null`)
	p.until(`![%q, ""].includes(document.querySelector("#row-a [name=idempotent_token]").value)`, old)
	p.free("a")
	p.insist("a", 2)
	p.want("a=a", "a=a")
}

// TestTurboFrame: a refusal is not for the frame and takes the page. What was typed is in it.
func TestTurboFrame(t *testing.T) {
	t.Parallel()
	l := turbo()
	framed := func(row string) templ.Component {
		return templ.Join(templ.Raw(`<turbo-frame id="frame-`+row+`">`), rowForm(row, nil), templ.Raw(`</turbo-frame>`))
	}
	p := rowsAt(t, testkit.Chromium(t), l, templ.Join(framed("a"), framed("b")), func(_ *rows, w http.ResponseWriter, r *http.Request, row string) {
		w.WriteHeader(http.StatusOK)
		_ = framed(row).Render(r.Context(), w)
	})
	for _, row := range rowNames(2) {
		p.DoubleClick("#row-" + row + " button")
	}
	p.want("a=a", "b=b")
	p.free("a")
	p.free("b")
	testkit.Eval[string](p.Browser, `document.cookie = "user=somebody"`)
	p.keys("#row-a [name=value]", "as typed: ")
	p.insist("a", 2)
	p.until(`document.querySelector("[data-code=token_wrong_subject]") !== null`)
	testkit.Check(p.Browser, `document.querySelector(".idem-problem [name=value]").value`, "as typed: a")
}

// TestTurboLeft: a page that was left while its form was being sent comes back as it was before.
func TestTurboLeft(t *testing.T) {
	t.Parallel()
	l := turbo()
	page := templ.Join(rowForm("a", nil), templ.Raw(`<a id="away" href="/?away">away</a>`))
	p := rowsAt(t, testkit.Chromium(t), l, page, l.stays)
	p.delay = 3 * time.Second
	p.click("a")
	p.until(`document.querySelector("#row-a [aria-disabled]") !== null`)
	p.Click("#away")
	p.until(`location.search === "?away"`)
	testkit.Eval[bool](p.Browser, `setTimeout(() => history.back()), true`)
	p.until(`location.search === ""`)
	p.free("a")
	testkit.Check(p.Browser, `document.querySelector("#row-a").innerText`, "SaveMore")
	p.want("a=a")
}
