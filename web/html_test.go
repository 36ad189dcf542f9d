package web_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
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
