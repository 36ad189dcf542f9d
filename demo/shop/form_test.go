package shop_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// sent is one submission of the form.
type sent struct {
	token    string
	fields   map[string]string
	fileName string
	file     string
	query    string
}

// asked is the form as a browser first sees it, filled in.
func (s *site) asked(item string) sent {
	s.Helper()
	a := s.get("/form")
	s.want(a, http.StatusOK)
	return sent{token: value(s.T, a.body, "idempotent_token"), fields: map[string]string{"item": item, "quantity": "2", "note": ""}}
}

func (f sent) with(name, value string) sent {
	fields := map[string]string{name: value}
	for other, text := range f.fields {
		if other != name {
			fields[other] = text
		}
	}
	f.fields = fields
	return f
}

// request is what a browser sends: with another boundary each time.
func (f sent) request(s *site) *http.Request {
	s.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	must(s.T, form.WriteField("idempotent_token", f.token))
	for _, name := range []string{"item", "quantity", "note", "then"} {
		if text, ok := f.fields[name]; ok {
			must(s.T, form.WriteField(name, text))
		}
	}
	file, err := form.CreateFormFile("attachment", f.fileName)
	must(s.T, err)
	_, err = file.Write([]byte(f.file))
	must(s.T, err)
	must(s.T, form.Close())
	return s.request(http.MethodPost, "/form"+f.query, body.String(), "Content-Type", form.FormDataContentType(), "Accept", "text/html,*/*;q=0.8")
}

func (s *site) submit(f sent) answer {
	s.Helper()
	return s.do(f.request(s))
}

// wantReceipt follows a redirect to a receipt.
func (s *site) wantReceipt(a answer) string {
	s.Helper()
	s.want(a, http.StatusSeeOther)
	location := a.Header.Get("Location")
	if !strings.HasPrefix(location, "/orders/o-") {
		s.Fatalf("Location %q", location)
	}
	receipt := s.get(location)
	s.want(receipt, http.StatusOK)
	return receipt.body
}

func TestForm(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted := item()
		f := s.asked(wanted).with("note", "two lines\r\n<b>of text</b>").with("then", "receipt")
		f.fileName, f.file = "drawing.png", "twelve bytes"
		receipt := s.wantReceipt(s.submit(f))
		for name, want := range map[string]string{"h1": "2 × " + wanted, "dl": "drawing.png 12 bytes"} {
			if got := find(s.T, receipt, name).text; !strings.Contains(got, want) {
				s.Errorf("<%s> says %q, want %q", name, got, want)
			}
		}
		if got := find(s.T, receipt, "dd", "class", "prose").text; got != "two lines\n<b>of text</b>" && got != "two lines\r\n<b>of text</b>" {
			s.Errorf("note %q", got)
		}
		if got := find(s.T, receipt, "p", "class", "total plain").text; got != "Orders of “"+wanted+"” so far, by everybody: 1." {
			s.Errorf("receipt says %q", got)
		}
		s.wantOrders(wanted, 1)
	})
}

func TestFormAsItIsFirstShown(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct{ query, action string }{
		"plain":           {"", "/form"},
		"slow":            {"?delay=1600ms", "/form?delay=1600ms"},
		"failing":         {"?fail=500", "/form?fail=500"},
		"slow, failing":   {"?fail=422&delay=1s", "/form?delay=1s&fail=422"},
		"nothing ordered": {"?ordered=o-nothing", "/form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.in(t).get("/form" + c.query)
			s.want(a, http.StatusOK)
			form := find(t, a.body, "form")
			if form.attrs["action"] != c.action || form.attrs["method"] != "post" || form.attrs["enctype"] != "multipart/form-data" {
				t.Errorf("form %v", form.attrs)
			}
			var fields []string
			for _, e := range page(t, a.body) {
				if n := e.attrs["name"]; n != "" && (e.name == "input" || e.name == "textarea" || e.name == "button") {
					fields = append(fields, n+"="+e.attrs["value"])
				}
			}
			fields[0] = strings.SplitAfter(fields[0], "=")[0]
			if got := strings.Join(fields, " "); got != "idempotent_token= item= quantity=1 note= attachment= then=receipt then=another" {
				t.Errorf("fields %s", got)
			}
			if a.Header.Get("Cache-Control") != "no-store" {
				t.Error("a page with a token must not be cached")
			}
			if strings.Contains(a.body, `role="status"`) {
				t.Error("it says that something was ordered")
			}
		})
	}
}

func TestOrderAnother(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		f := s.asked(item()).with("then", "another")
		f.query = "?delay=1ms"
		first := s.submit(f)
		s.want(first, http.StatusSeeOther)
		location, err := url.Parse(first.Header.Get("Location"))
		must(s.T, err)
		if location.Path != "/form" || location.Query().Get("delay") != "1ms" {
			s.Fatalf("Location %s", location)
		}
		again := s.get(location.String())
		if got := find(s.T, again.body, "p", "role", "status").text; !strings.Contains(got, location.Query().Get("ordered")) {
			s.Errorf("the form says %q", got)
		}
		if requestID(s.T, value(s.T, again.body, "idempotent_token")) == requestID(s.T, f.token) {
			s.Error("the next order has the request id of the last one")
		}
		s.wantReplay(s.submit(f.with("then", "receipt")), first) // the button is not part of the order
	})
}

func TestFormSubmittedTogether(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted := item()
		f := s.asked(wanted).with("then", "receipt")
		f.query = "?delay=100ms"
		answers := s.together(4, func() *http.Request { return f.request(s) })
		for _, a := range answers {
			s.want(a, http.StatusSeeOther)
			if a.Header.Get("Location") != answers[0].Header.Get("Location") {
				s.Errorf("redirected to %s and to %s", a.Header.Get("Location"), answers[0].Header.Get("Location"))
			}
		}
		s.wantOrders(wanted, 1)
	})
}

// What is wrong is said next to its field, what was typed stays, and so does the intention.
func TestFormShownAgain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 501)
	for name, c := range map[string]struct{ field, value, says string }{
		"no item":             {"item", "", "Item is required."},
		"blank item":          {"item", "   ", "Item is required."},
		"no quantity":         {"quantity", "", "Quantity must be a whole number from 1 to 99."},
		"quantity too large":  {"quantity", "100", "Quantity must be a whole number from 1 to 99."},
		"quantity too small":  {"quantity", "0", "Quantity must be a whole number from 1 to 99."},
		"quantity a word":     {"quantity", "two", "Quantity must be a whole number from 1 to 99."},
		"quantity a fraction": {"quantity", "1.5", "Quantity must be a whole number from 1 to 99."},
		"note too long":       {"note", long, "Note must be at most 500 characters long."},
		"note with NUL":       {"note", "a\x01b", "Note must not contain control characters."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, onSQLite(t))
			wanted := item()
			f := s.asked(wanted)
			a := s.submit(f.with(c.field, c.value))
			s.want(a, http.StatusUnprocessableEntity)
			if got := find(t, strings.ReplaceAll(a.body, "\x01", ""), "p", "id", c.field+"-wrong").text; got != c.says {
				t.Errorf("it says %q, want %q", got, c.says)
			}
			if c.field != "item" {
				if got := value(t, strings.ReplaceAll(a.body, "\x01", ""), "item"); got != wanted {
					t.Errorf("item %q was not kept", got)
				}
			}
			token := value(t, strings.ReplaceAll(a.body, "\x01", ""), "idempotent_token")
			if requestID(t, token) != requestID(t, f.token) {
				t.Error("the request id was not kept")
			}
			s.wantOrders(wanted, 0)
			f.token = token
			receipt := s.wantReceipt(s.submit(f))
			if got := find(t, receipt, "dl").text; !strings.Contains(got, "number 2") {
				t.Errorf("receipt says %q, want the second attempt", got)
			}
			s.wantOrders(wanted, 1)
		})
	}
}

func TestFormThatFails(t *testing.T) {
	t.Parallel()
	for fail, status := range map[string]int{"500": http.StatusInternalServerError, "422": http.StatusUnprocessableEntity} {
		t.Run(fail, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(s *site) {
				wanted := item()
				f := s.asked(wanted).with("note", "kept")
				f.query = "?fail=" + fail
				a := s.submit(f)
				s.want(a, status)
				if got := find(s.T, a.body, "p", "role", "alert").text; !strings.Contains(got, "Nothing was written") {
					s.Errorf("it says %q", got)
				}
				if value(s.T, a.body, "item") != wanted || value(s.T, a.body, "note") != "kept" {
					s.Error("what was typed was not kept")
				}
				if got := find(s.T, a.body, "form").attrs["action"]; got != "/form?fail="+fail {
					s.Errorf("it is sent to %q next", got)
				}
				f.token = value(s.T, a.body, "idempotent_token")
				s.wantReceipt(s.submit(f))
				s.wantOrders(wanted, 1)
			})
		})
	}
}

// The refusals of the guard have the shop's layout, with what was typed.
func TestAnotherFormUnderOneToken(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	wanted, other := item(), item()
	f := s.asked(wanted)
	first := s.submit(f)
	s.wantReceipt(first)
	a := s.submit(f.with("item", other))
	s.want(a, http.StatusUnprocessableEntity)
	find(t, a.body, "a", "class", "mark")
	find(t, a.body, "a", "href", first.Header.Get("Location"))
	if got := value(t, a.body, "item"); got != other {
		t.Errorf("item %q, want %q", got, other)
	}
	f.token = value(t, a.body, "idempotent_token")
	s.wantReceipt(s.submit(f.with("item", other)))
	s.wantOrders(wanted, 1)
	s.wantOrders(other, 1)
}
