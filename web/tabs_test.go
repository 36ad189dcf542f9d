package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// tab is a page with two forms, opened by the fixture's browser.
func (f *fixture) tab(t *testing.T) []htmlForm {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/cart", nil)
	if f.cookie != nil {
		r.AddCookie(f.cookie)
	}
	rec := f.do(f.guard.Forms(page(2, "order.create")), r)
	for _, cookie := range rec.Result().Cookies() {
		f.cookie = cookie
	}
	return parseForms(t, rec.Body.String())
}

// phalcon forum#194: opening another tab killed the first tab's token. Every form of every tab is good, in whatever order they are sent, and a
// tab that is opened or sent in between changes none.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			guarded := f.guard.Token("order.create")(f.handler)
			var open []string
			for range 20 {
				for _, form := range f.tab(t) {
					open = append(open, form.value("idempotent_token"))
				}
			}
			slices.Reverse(open[:20]) // some backwards, some forwards
			firsts := map[string]*httptest.ResponseRecorder{}
			for i, token := range open {
				f.tab(t)
				firsts[token] = f.do(guarded, f.typed("/orders", token, fmt.Sprintf("item=%d", i)))
				executed(t, firsts[token], 201)
			}
			for i, token := range open {
				repeats(t, f.do(guarded, f.typed("/orders", token, fmt.Sprintf("item=%d", i))), firsts[token])
			}
			f.handler.ran(t, len(open))
			if len(firsts) != 40 {
				t.Errorf("%d different tokens", len(firsts))
			}
		})
	}
}
