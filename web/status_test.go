package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// What the client says of a form is in the language that the person asked for, where there are words in it.
func TestLanguageOfAFormsStatus(t *testing.T) {
	t.Parallel()
	german := func(c *web.Config) {
		c.Messages = map[string]web.Messages{"de": {web.TokenMissing: {Title: "Kein Token", Detail: "Neu laden."}}}
		c.Labels = map[string]templates.Texts{"de": {Sending: "Wird gesendet…"}}
	}
	for accept, want := range map[string]string{
		"":                  `lang="en" data-idem-sending="Sending…"`,
		"fr":                `lang="en" data-idem-sending="Sending…"`,
		"zh-CN,en;q=0.5":    `lang="zh" data-idem-sending="正在发送…"`,
		"de-AT":             `lang="de" data-idem-sending="Wird gesendet…" data-idem-working="Still`,
		"fr;q=0.9,de;q=0.8": `lang="de" data-idem-sending="Wird gesendet…"`,
	} {
		f := newFixture(t, german)
		r := httptest.NewRequest(http.MethodGet, "/cart", nil)
		r.Header.Set("Accept-Language", accept)
		if text := f.do(f.guard.Forms(page(1, "order.create")), r).Body.String(); !strings.Contains(text, want) {
			t.Errorf("Accept-Language %q: want %s in %s", accept, want, text)
		}
	}
}
