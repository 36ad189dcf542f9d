package templates_test

import (
	"strings"
	"testing"

	"github.com/idemkit/idem/templates"
)

// What the client says comes with the page, in its language, and stands outside of the form that it is said of.
func TestStatus(t *testing.T) {
	t.Parallel()
	own := templates.English()
	own.Sending = "Wird gesendet…"
	for name, c := range map[string]struct {
		page templates.Page
		form string
		want string
	}{
		"nothing said":            {templates.Page{}, "", `lang="en" data-idem-sending="Sending…"`},
		"the page's":              {templates.Page{Lang: "zh-CN"}, "", `lang="zh-CN" data-idem-sending="正在发送…"`},
		"the page's own words":    {templates.Page{Lang: "de", Texts: own}, "", `lang="de" data-idem-sending="Wird gesendet…"`},
		"the form's":              {templates.Page{Lang: "de", Texts: own}, "zh", `lang="zh" data-idem-sending="正在发送…"`},
		"the form's, as the page": {templates.Page{Lang: "de", Texts: own}, "de", `lang="de" data-idem-sending="Wird gesendet…"`},
		"one without words":       {templates.Page{Lang: "fr"}, "", `lang="en" data-idem-sending="Sending…"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.page.Issuer, c.page.Assets = &ring{}, assets()
			ctx := templates.WithPage(t.Context(), c.page)
			html := render(ctx, t, templates.Form(templates.FormProps{Action: "a", Lang: c.form}))
			_, behind, _ := strings.Cut(html, "</form>")
			if !strings.Contains(behind, c.want) || !strings.Contains(behind, `role="status"`) {
				t.Errorf("want %s behind the form in %s", c.want, html)
			}
			if one := render(ctx, t, templates.Status(c.form)); !strings.Contains(one, c.want) {
				t.Errorf("want %s in %s", c.want, one)
			}
		})
	}
}
