package web_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/idemkit/idem/web"
)

const urlencoded = "application/x-www-form-urlencoded"

// part is one part of a multipart body, in the order in which it is sent.
type part struct{ name, file, content, encoding string }

// multiparts makes a multipart body; the boundary is random, as a browser's.
func multiparts(parts ...part) (contentType, text string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range parts {
		head := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p.file)
		}
		head.Set("Content-Disposition", disposition)
		if p.encoding != "" {
			head.Set("Content-Transfer-Encoding", p.encoding)
		}
		body, _ := w.CreatePart(head)
		_, _ = body.Write([]byte(p.content))
	}
	_ = w.Close()
	return w.FormDataContentType(), out.String()
}

type sent struct{ method, path, contentType, body string }

func mp(parts ...part) sent {
	contentType, text := multiparts(parts...)
	return sent{contentType: contentType, body: text}
}

func (s sent) request(f *fixture, token string) *http.Request {
	if s.path == "" {
		s.path = "/orders"
	}
	r := f.request(s.path, s.contentType, s.body)
	if s.method != "" {
		r.Method = s.method
	}
	r.Header.Set(tokenHeader, token)
	return r
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	form := func(text string) sent { return sent{contentType: urlencoded, body: text} }
	json := func(text string) sent { return sent{contentType: "application/json", body: text} }
	for name, c := range map[string]struct {
		a, b sent
		same bool
	}{
		"equal":                        {a: json(`{"a":1}`), b: json(`{"a":1}`), same: true},
		"JSON counts by its bytes":     {a: json(`{"a":1}`), b: json(`{"a": 1}`)},
		"JSON member order":            {a: json(`{"a":1,"b":2}`), b: json(`{"b":2,"a":1}`)},
		"empty and none":               {a: sent{}, b: sent{}, same: true},
		"method":                       {a: sent{method: "POST"}, b: sent{method: "PUT"}},
		"path":                         {a: sent{path: "/orders/1"}, b: sent{path: "/orders/2"}},
		"path as sent":                 {a: sent{path: "/orders/a%2Fb"}, b: sent{path: "/orders/a/b"}},
		"query":                        {a: sent{path: "/orders?a=1"}, b: sent{path: "/orders?a=2"}},
		"query, order of names":        {a: sent{path: "/orders?a=1&b=2"}, b: sent{path: "/orders?b=2&a=1"}, same: true},
		"query, order of values":       {a: sent{path: "/orders?a=1&a=2"}, b: sent{path: "/orders?a=2&a=1"}},
		"query, ignored":               {a: sent{path: "/orders?delay=1s&a=1"}, b: sent{path: "/orders?a=1"}, same: true},
		"query, malformed":             {a: sent{path: "/orders?a=%zz"}, b: sent{path: "/orders?a=%yy"}},
		"query or form":                {a: sent{path: "/orders?a=1", contentType: urlencoded}, b: form("a=1")},
		"media type":                   {a: json("{}"), b: sent{contentType: "text/plain", body: "{}"}},
		"media type, its case":         {a: json("{}"), b: sent{contentType: "Application/JSON", body: "{}"}, same: true},
		"media type, its parameters":   {a: json("{}"), b: sent{contentType: "application/json; charset=utf-8", body: "{}"}, same: true},
		"media type, odd parameters":   {a: form("a=1"), b: sent{contentType: urlencoded + "; charset", body: "a=1"}, same: true},
		"form, order of names":         {a: form("a=1&b=2"), b: form("b=2&a=1"), same: true},
		"form, order of values":        {a: form("a=1&a=2"), b: form("a=2&a=1")},
		"form, escapes":                {a: form("a=%31&b=x+y"), b: form("a=1&b=x%20y"), same: true},
		"form, ignored":                {a: form("a=1&then=x"), b: form("a=1&then=y"), same: true},
		"form, the kit's fields":       {a: form("a=1&idempotent_token="), b: form("a=1"), same: true},
		"form, empty value or no name": {a: form("a=&b=1"), b: form("b=1")},
		"form, lengths keep apart":     {a: form("a=1%26b%3D2"), b: form("a=1&b=2")},
		"form, name or value":          {a: form("ab=c"), b: form("a=bc")},
		"form, malformed":              {a: form("a=1&b=%zz"), b: form("a=1&b=%yy")},
		"form, malformed and equal":    {a: form("a=1&b=%zz"), b: form("a=1&b=%zz"), same: true},
		"multipart, other boundary":    {a: mp(part{name: "a", content: "1"}), b: mp(part{name: "a", content: "1"}), same: true},
		"multipart, value":             {a: mp(part{name: "a", content: "1"}), b: mp(part{name: "a", content: "2"})},
		"multipart, order of names":    {a: mp(part{name: "a"}, part{name: "b"}), b: mp(part{name: "b"}, part{name: "a"}), same: true},
		"multipart, order of values":   {a: mp(part{name: "a", content: "1"}, part{name: "a", content: "2"}), b: mp(part{name: "a", content: "2"}, part{name: "a", content: "1"})},
		"multipart, same file":         {a: mp(part{name: "a", file: "x", content: "1"}), b: mp(part{name: "a", file: "x", content: "1"}), same: true},
		"multipart, file content":      {a: mp(part{name: "a", file: "x", content: "1"}), b: mp(part{name: "a", file: "x", content: "2"})},
		"multipart, file name":         {a: mp(part{name: "a", file: "x", content: "1"}), b: mp(part{name: "a", file: "y", content: "1"})},
		"multipart, file's directory":  {a: mp(part{name: "a", file: "d/x", content: "1"}), b: mp(part{name: "a", file: "e/x", content: "1"})},
		"multipart, file or text":      {a: mp(part{name: "a", file: "x", content: "1"}), b: mp(part{name: "a", content: "1"})},
		"multipart, order of files": {
			a: mp(part{name: "a", file: "x", content: "1"}, part{name: "a", file: "y", content: "2"}),
			b: mp(part{name: "a", file: "y", content: "2"}, part{name: "a", file: "x", content: "1"}),
		},
		"multipart, ignored file": {a: mp(part{name: "then", file: "x", content: "1"}), b: mp(), same: true},
		"multipart, quoted-printable": {
			a: mp(part{name: "a", content: "=31", encoding: "quoted-printable"}),
			b: mp(part{name: "a", content: "1", encoding: "quoted-printable"}),
		},
		"multipart or urlencoded": {a: mp(part{name: "a", content: "1"}), b: form("a=1")},
		"large bodies": {
			a: json(`"` + strings.Repeat("x", 2<<20) + `a"`), b: json(`"` + strings.Repeat("x", 2<<20) + `b"`),
		},
		"large and equal": {
			a: mp(part{name: "a", file: "x", content: strings.Repeat("x", 2<<20)}), b: mp(part{name: "a", file: "x", content: strings.Repeat("x", 2<<20)}), same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{}
			guarded := f.guard.Token("order.create", web.Ignore("then", "delay"))(h)
			first := f.do(guarded, c.a.request(f, token))
			executed(t, first, 201)
			second := f.do(guarded, c.b.request(f, token))
			if c.same {
				repeats(t, second, first)
				return
			}
			if p := refused(t, second, 422, web.PayloadMismatch); p.RetryAfter != 0 {
				t.Errorf("problem %+v", p)
			}
		})
	}
}

// A running claim holds its fingerprint, on every path: the entrance, the ledger, the waiter.
func TestMismatchWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			token := f.token("order.create").Token
			h := held()
			guarded := f.guard.Token("order.create")(h)
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- f.do(guarded, f.order(token)) }()
			<-h.started
			refused(t, f.do(guarded, f.order(token, body(`{"item":"coffee"}`))), 422, web.PayloadMismatch)
			if stores == "both" {
				f.store.real.Forget()
				refused(t, f.do(guarded, f.order(token, body(`{"item":"coffee"}`))), 422, web.PayloadMismatch)
			}
			close(h.release)
			executed(t, <-first, 201)
			h.ran(t, 1)
		})
	}
}
