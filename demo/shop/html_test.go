package shop_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// element is one of a page. The pages are written well enough for the forgiving mode of encoding/xml.
type element struct {
	name  string
	attrs map[string]string
	text  string // its own, and that of the elements within
}

// page parses HTML. A page that is not well-formed fails the test.
func page(t *testing.T, html string) []*element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(html))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var all, open []*element
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v in %s", err, html)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text += string(token)
			}
		}
	}
}

// find returns the first element of a page with this name and these attributes.
func find(t *testing.T, html, name string, attrs ...string) *element {
	t.Helper()
	for _, e := range page(t, html) {
		if e.name == name && e.has(attrs) {
			return e
		}
	}
	t.Fatalf("no <%s %v> in %s", name, attrs, html)
	return nil
}

func (e *element) has(attrs []string) bool {
	for i := 0; i < len(attrs); i += 2 {
		if e.attrs[attrs[i]] != attrs[i+1] {
			return false
		}
	}
	return true
}

// value of a form's field.
func value(t *testing.T, html, field string) string {
	t.Helper()
	if field == "note" {
		return strings.TrimPrefix(find(t, html, "textarea", "name", field).text, "\n")
	}
	return find(t, html, "input", "name", field).attrs["value"]
}

// requestID is what a token names.
func requestID(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %q", token)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var claims struct {
		RequestID string `json:"rid"`
	}
	must(t, json.Unmarshal(payload, &claims))
	return claims.RequestID
}
