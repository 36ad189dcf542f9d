package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

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
			stays  bool
		}{{"none", silent, true}, {"delete", silent, false}, {"outerHTML", anew, true}, {"none", elsewhere, true}} {
			t.Run(c.swap, func(t *testing.T) {
				names := rowNames(10)
				p := rowsAt(t, b, l, rowForms(names, l.sends(c.swap)), c.answer)
				var first, both []string
				tokens := map[string]bool{}
				for _, row := range names {
					tokens[p.token(row)] = true
					p.DoubleClick("#row-" + row + " button")
					first, both = append(first, row+"="+row), append(both, row+"="+row, row+"="+row)
				}
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
				if len(tokens) != 20 {
					t.Errorf("%d tokens, want two for each form", len(tokens))
				}
			})
		}
	})
}
