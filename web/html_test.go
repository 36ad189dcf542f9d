package web_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// htmlForm is a form of an answer, as a browser would send it.
type htmlForm struct {
	action, enctype string
	fields          []htmlField
	confirm         bool
}

type htmlField struct{ name, kind, value string }

// parseForms reads the forms of a page that templ has written.
func parseForms(t *testing.T, text string) []htmlForm {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var forms []htmlForm
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return forms
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		if start.Name.Local == "form" {
			forms = append(forms, htmlForm{action: attributes["action"], enctype: attributes["enctype"]})
			continue
		}
		if len(forms) == 0 {
			continue
		}
		form := &forms[len(forms)-1]
		switch {
		case start.Name.Local == "input" && attributes["name"] != "":
			form.fields = append(form.fields, htmlField{attributes["name"], attributes["type"], attributes["value"]})
		case start.Name.Local == "input" && attributes["type"] == "checkbox":
			form.confirm = true
		case start.Name.Local == "textarea":
			content, _ := decoder.Token()
			chars, _ := content.(xml.CharData)
			form.fields = append(form.fields, htmlField{attributes["name"], "textarea", strings.TrimPrefix(string(chars), "\n")})
		}
	}
}

func (form htmlForm) value(name string) string {
	for _, field := range form.fields {
		if field.name == name {
			return field.value
		}
	}
	return ""
}

// A browser sends a file input that was left empty as a part without name and content; the page offers a file input again, not a text box.
func TestEmptyFileInputStaysOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	f.clock.advance(time.Hour)
	body := "--b\r\nContent-Disposition: form-data; name=\"idempotent_token\"\r\n\r\n" + token +
		"\r\n--b\r\nContent-Disposition: form-data; name=\"attachment\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--b--\r\n"
	r := f.request("/orders", "multipart/form-data; boundary=b", body)
	asBrowser(r)
	rec := f.do(f.orderForm(nil), r)
	f.offered(rec, 409, web.TokenExpired)
	if text := rec.Body.String(); !strings.Contains(text, `<input type="file" name="attachment"`) || strings.Contains(text, `type="text"`) {
		t.Errorf("the page is %s", text)
	}
}

// A layout links the kit's own style sheet and script, wherever the refusal comes from.
func TestLayoutLinksTheAssets(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *web.Config) {
		c.ErrorPage = func(_ *http.Request, _ web.Problem, content templ.Component) templ.Component {
			return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
				return errors.Join(templates.Style().Render(ctx, w), templates.Script("").Render(ctx, w), content.Render(ctx, w))
			})
		}
	})
	routes := f.guard.Routes()
	explained := httptest.NewRequest(http.MethodGet, "/idem/problems/token_used", nil)
	refused := f.request("/idem/token", "application/json", "[]")
	asBrowser(refused)
	for name, r := range map[string]*http.Request{"explained": explained, "refused": refused} {
		if text := f.do(routes, r).Body.String(); !strings.HasPrefix(text, `<link rel="stylesheet" href="/idem/idem.`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
