package templates_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/templates"
)

func TestGoldenForms(t *testing.T) {
	t.Parallel()
	quantity := templ.Raw(`<input name="quantity">`)
	for name, c := range map[string]templ.Component{
		"field":            templates.Field(templates.TokenField{Action: "order.create"}),
		"field-request-id": templates.Field(templates.TokenField{Action: "order.create", RequestID: "request-kept", ShowRequestID: true}),
		"field-issued":     templates.Field(templates.TokenField{Value: "issued", RequestID: "request-issued", ShowRequestID: true}),
		"form":             templates.Form(templates.FormProps{Action: "order.create"}),
		"form-upload": with(templates.Form(templates.FormProps{
			Action: "order.create", URL: "/form?delay=1s", Enctype: "multipart/form-data", RequestID: "request-kept", ID: "order", Class: "wide",
			Attributes: templ.Attributes{"data-idem-timeout": "20000"},
		}), templ.Raw(`<input type="file" name="attachment">`), quantity, templates.Submit(templates.SubmitProps{Label: "Order"})),
		"submit": templates.Submit(templates.SubmitProps{
			Name: "then", Value: "receipt", Label: "Order", Busy: "Ordering…", Class: "main", Attributes: templ.Attributes{"formnovalidate": true},
		}),
		"submit-children": with(templates.Submit(templates.SubmitProps{}), templ.Raw("<b>Order</b>")),
		"submit-empty":    templates.Submit(templates.SubmitProps{}),
		"script":          templates.Script(""),
		"script-nonce":    templates.Script("bm9uY2U="),
		"style":           templates.Style(),
		"meta":            templates.Meta(templates.MetaProps{Action: "order.create"}),
		"hostile": with(templates.Form(templates.FormProps{
			Action: `"><script>alert(1)</script>`, URL: "javascript:alert(1)", Enctype: `"onsubmit="x`, RequestID: `'"><b>`, ID: `"a`, Class: `"b`,
		}), templates.Submit(templates.SubmitProps{Name: `"n`, Value: `"v`, Label: "<i>", Busy: `"><i>`})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, render(onPage(t, &ring{}), t, c))
		})
	}
}

func TestTokenComesBeforeEveryOtherField(t *testing.T) {
	t.Parallel()
	form := with(templates.Form(templates.FormProps{Action: "a"}), templ.Raw(`<input type="file" name="big">`))
	html := render(onPage(t, &ring{}), t, form)
	if token, file := strings.Index(html, templates.TokenName), strings.Index(html, "big"); token < 0 || token > file {
		t.Errorf("the token does not come first: %s", html)
	}
}

func TestEveryFormHasItsOwnToken(t *testing.T) {
	t.Parallel()
	issuer := &ring{}
	form := func(action, requestID string) templ.Component {
		return templates.Form(templates.FormProps{Action: action, RequestID: requestID})
	}
	html := render(onPage(t, issuer), t, templ.Join(form("row.save", ""), form("row.save", ""), form("row.drop", "request-kept")))
	if got, want := strings.Join(issuer.asked, " "), "row.save/ row.save/ row.drop/request-kept"; got != want {
		t.Errorf("issuer asked for %q, want %q", got, want)
	}
	for _, token := range []string{"token-1", "token-2", "token-3"} {
		if strings.Count(html, token) != 1 {
			t.Errorf("%s is not there once", token)
		}
	}
}

func TestFormShownAgainKeepsItsRequestID(t *testing.T) {
	t.Parallel()
	came := func(action string) string {
		return map[string]string{"order.create": "request-came"}[action]
	}
	form := func(action, requestID string) templ.Component {
		return templates.Form(templates.FormProps{Action: action, RequestID: requestID})
	}
	for name, tc := range map[string]struct {
		forms []templ.Component
		want  string
	}{
		"the form of its action":       {[]templ.Component{form("other", ""), form("order.create", "")}, "other/ order.create/request-came"},
		"only one of several":          {[]templ.Component{form("order.create", ""), form("order.create", "")}, "order.create/request-came order.create/"},
		"preset goes first":            {[]templ.Component{form("order.create", "mine")}, "order.create/mine"},
		"preset by hand is not reused": {[]templ.Component{form("order.create", "request-came"), form("order.create", "")}, "order.create/request-came order.create/"},
		"a meta too":                   {[]templ.Component{templates.Meta(templates.MetaProps{Action: "order.create"})}, "order.create/request-came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := &ring{}
			ctx := templates.WithPage(t.Context(), templates.Page{Issuer: issuer, Assets: assets(), RequestID: came})
			render(ctx, t, templ.Join(tc.forms...))
			if got := strings.Join(issuer.asked, " "); got != tc.want {
				t.Errorf("issuer asked for %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOutsideOfAPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]templ.Component{
		"field":  templates.Field(templates.TokenField{Action: "a"}),
		"form":   templates.Form(templates.FormProps{Action: "a"}),
		"script": templates.Script(""),
		"style":  templates.Style(),
		"meta":   templates.Meta(templates.MetaProps{Action: "a"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Render(t.Context(), &strings.Builder{})
			if !errors.Is(err, templates.ErrNoPage) || !strings.Contains(err.Error(), "idem: page is not behind guard.Forms") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestPageWithoutIssuer(t *testing.T) {
	t.Parallel()
	ctx := templates.WithPage(t.Context(), templates.Page{Assets: assets()})
	if err := templates.Field(templates.TokenField{Action: "a"}).Render(ctx, &strings.Builder{}); !errors.Is(err, templates.ErrNoPage) {
		t.Errorf("error %v", err)
	}
	render(ctx, t, templates.Script(""))
	page, err := templates.PageFrom(ctx)
	if err != nil || page.Assets.Prefix != "/idem" {
		t.Errorf("page %+v, error %v", page, err)
	}
}

func TestIssuerError(t *testing.T) {
	t.Parallel()
	cause := errors.New("no key signs")
	for name, c := range map[string]templ.Component{
		"form": templates.Form(templates.FormProps{Action: "order.create"}),
		"meta": templates.Meta(templates.MetaProps{Action: "order.create"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Render(onPage(t, &ring{fails: cause}), &strings.Builder{})
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), "order.create") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNonceFromTheContext(t *testing.T) {
	t.Parallel()
	page := templates.Page{Assets: assets()}
	for name, tc := range map[string]struct{ argument, page, templ, want string }{
		"argument first": {"a", "p", "t", `nonce="a"`},
		"then the page":  {"", "p", "t", `nonce="p"`},
		"then templ's":   {"", "", "t", `nonce="t"`},
		"none":           {"", "", "", `"></script>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := page
			page.Nonce = tc.page
			ctx := templates.WithPage(templ.WithNonce(t.Context(), tc.templ), page)
			if html := render(ctx, t, templates.Script(tc.argument)); !strings.Contains(html, tc.want) || (tc.want[0] == '"' && strings.Contains(html, "nonce")) {
				t.Errorf("%s has no %s", html, tc.want)
			}
		})
	}
}

func TestConcurrentRendering(t *testing.T) {
	t.Parallel()
	issuer := &ring{}
	ctx := templates.WithPage(t.Context(), templates.Page{Issuer: issuer, RequestID: func(string) string { return "request-came" }})
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if err := templates.Form(templates.FormProps{Action: "a"}).Render(ctx, &strings.Builder{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := strings.Count(strings.Join(issuer.asked, " "), "request-came"); n != 1 || len(issuer.asked) != 32 {
		t.Errorf("%d of %d forms have the request id that came, want one of 32", n, len(issuer.asked))
	}
}
