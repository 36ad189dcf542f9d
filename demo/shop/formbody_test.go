package shop_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestUnreadableForms(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	const cutOff = "--x\r\nContent-Disposition: form-data; name=\"item\"\r\n\r\ncup"
	for name, c := range map[string]struct {
		path, contentType, body string
		status                  int
	}{
		"multipart cut off":            {"/form", "multipart/form-data; boundary=x", cutOff, 400},
		"no boundary":                  {"/form", "multipart/form-data", cutOff, 400},
		"a bad escape":                 {"/form", "application/x-www-form-urlencoded", "item=%zz", 400},
		"JSON":                         {"/form", "application/json", one("cup"), 422},
		"nothing":                      {"/form", "", "", 422},
		"unguarded, multipart cut off": {"/unguarded/form", "multipart/form-data; boundary=x", cutOff, 400},
		"unguarded, nothing":           {"/unguarded/form", "", "", 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			a := s.do(s.request(http.MethodPost, c.path, c.body, "Content-Type", c.contentType, "Idempotent-Token", s.token()))
			s.want(a, c.status)
			if got := a.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

// The two forms of /double-click, as they work with JavaScript off.
func TestFormsOfDoubleClick(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		a := s.get("/double-click")
		for side, want := range map[string]string{"unguarded": "This item was ordered twice.", "guarded": "This item was ordered once."} {
			item := find(s.T, a.body, "section", "data-side", side).attrs["data-item"]
			path := map[string]string{"unguarded": "/unguarded/form", "guarded": "/form"}[side]
			form := url.Values{"idempotent_token": {value(s.T, a.body, "idempotent_token")}, "item": {item}, "quantity": {"1"}}
			var last answer
			for range 2 {
				last = s.do(s.request(http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded"))
			}
			if got := page(s.T, s.wantReceipt(last)); !says(got, want) {
				s.Errorf("%s: the receipt does not say %q", side, want)
			}
		}
	})
}

func says(elements []*element, text string) bool {
	for _, e := range elements {
		if e.name == "p" && e.text == text {
			return true
		}
	}
	return false
}
