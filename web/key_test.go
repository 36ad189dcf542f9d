package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/web"
)

// keyed is a request to a key-guarded route, with nobody's cookie.
func keyed(contentType, text string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/refunds", strings.NewReader(text))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// sameOperation tells whether the second request is taken for the first one's operation. Their payloads must not count: they are ignored.
func sameOperation(t *testing.T, key web.KeyFunc, a, b *http.Request) bool {
	t.Helper()
	f := newFixture(t)
	h := &work{}
	guarded := f.guard.Key("refund", key, web.Anonymous())(h)
	executed(t, f.do(guarded, a), 201)
	rec := f.do(guarded, b)
	switch {
	case rec.Code == 201 && h.runs.Load() == 2:
		return false
	case rec.Code == 201 && rec.Header().Get(replayed) == "true", rec.Code == 422:
		return true
	}
	t.Fatalf("answered %d %s", rec.Code, rec.Body)
	return false
}

func TestHeaderKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		key   string // as another bare one would say it; empty: refused
		code  string
	}{
		"bare":                         {lines: []string{"abc"}, key: "abc"},
		"quoted":                       {lines: []string{`"abc"`}, key: "abc"},
		"blanks around":                {lines: []string{"  abc\t"}, key: "abc"},
		"bare, parameters":             {lines: []string{"abc;a=1"}, key: "abc"},
		"bare, blank, parameters":      {lines: []string{"abc ; a=1"}, key: "abc"},
		"quoted, parameters":           {lines: []string{`"abc";a="x y"`}, key: "abc"},
		"quoted, blank, parameters":    {lines: []string{`"abc" ; a`}, key: "abc"},
		"escaped":                      {lines: []string{`"a\\c"`}, key: `a\c`},
		"punctuation":                  {lines: []string{"!#$%&'()*+,-./:<=>?@[]^_`{|}~"}, key: "!#$%&'()*+,-./:<=>?@[]^_`{|}~"},
		"one":                          {lines: []string{"a"}, key: "a"},
		"longest":                      {lines: []string{strings.Repeat("a", 255)}, key: strings.Repeat("a", 255)},
		"longest, quoted":              {lines: []string{`"` + strings.Repeat("a", 255) + `"`}, key: strings.Repeat("a", 255)},
		"none":                         {code: web.KeyMissing},
		"empty":                        {lines: []string{""}, code: web.KeyMissing},
		"blank":                        {lines: []string{" \t"}, code: web.KeyMissing},
		"too long":                     {lines: []string{strings.Repeat("a", 256)}, code: web.KeyInvalid},
		"empty string":                 {lines: []string{`""`}, code: web.KeyInvalid},
		"parameters alone":             {lines: []string{";a=1"}, code: web.KeyInvalid},
		"a blank that is none of HTTP": {lines: []string{"\u00a0abc"}, code: web.KeyInvalid},
		"blank inside":                 {lines: []string{"a b"}, code: web.KeyInvalid},
		"blank inside, quoted":         {lines: []string{`"a b"`}, code: web.KeyInvalid},
		"not ASCII":                    {lines: []string{"schlüssel"}, code: web.KeyInvalid},
		"not ASCII, quoted":            {lines: []string{`"schlüssel"`}, code: web.KeyInvalid},
		"control":                      {lines: []string{"a\x7fb"}, code: web.KeyInvalid},
		"not closed":                   {lines: []string{`"abc`}, code: web.KeyInvalid},
		"not closed behind escape":     {lines: []string{`"abc\`}, code: web.KeyInvalid},
		"odd escape":                   {lines: []string{`"a\bc"`}, code: web.KeyInvalid},
		"something behind":             {lines: []string{`"abc"d`}, code: web.KeyInvalid},
		"quote inside":                 {lines: []string{`a"b`}, code: web.KeyInvalid},
		"repeated":                     {lines: []string{"abc", "abd"}, code: web.KeyInvalid},
		"repeated and equal":           {lines: []string{"abc", "abc"}, code: web.KeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			h := &work{}
			guarded := f.guard.Key("transfer", web.HeaderKey("Idempotency-Key"), web.Anonymous())(h)
			send := func(lines ...string) *httptest.ResponseRecorder {
				return f.do(guarded, keyed("", "", func(r *http.Request) { r.Header["Idempotency-Key"] = lines }))
			}
			first := send(c.lines...)
			if c.code != "" {
				refused(t, first, 400, c.code)
				if n := f.ledger.all() + f.store.all(); n != 0 {
					t.Errorf("%d calls of stores", n)
				}
				return
			}
			executed(t, first, 201)
			repeats(t, send(`"`+strings.ReplaceAll(c.key, `\`, `\\`)+`"`), first)
			if first.Header().Get(requestID) != "" || first.Header().Get("Set-Cookie") != "" {
				t.Errorf("header %v", first.Header())
			}
		})
	}
}

func TestJSONKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path       []string // nil: refundNo
		body, says string
		code       string
	}{
		"string":                {body: `{"refundNo":"r-1"}`},
		"number":                {body: `{"refundNo":1}`},
		"boolean":               {body: `{"refundNo":false}`},
		"escaped name":          {body: `{"refund\u004eo":"r-1"}`},
		"nested":                {path: []string{"refund.no"}, body: `{"refund":{"no":"r-1"}}`},
		"several":               {path: []string{"a", "b"}, body: `{"a":"1","b":2}`},
		"blanks around":         {body: " {\"refundNo\":\"r\"}\r\n"},
		"no body":               {body: "", code: web.KeyMissing, says: "refundNo"},
		"not JSON":              {body: `{"refundNo":`, code: web.KeyInvalid},
		"trailing garbage":      {body: `{"refundNo":"r"}x`, code: web.KeyInvalid},
		"two values":            {body: `{"refundNo":"r"}{"refundNo":"s"}`, code: web.KeyInvalid},
		"an array":              {body: `["refundNo"]`, code: web.KeyMissing, says: "refundNo"},
		"a string":              {body: `"refundNo"`, code: web.KeyMissing, says: "refundNo"},
		"missing":               {body: `{}`, code: web.KeyMissing, says: "refundNo"},
		"one of two missing":    {path: []string{"a", "b"}, body: `{"a":"1"}`, code: web.KeyMissing, says: `"b"`},
		"nested in a scalar":    {path: []string{"refund.no"}, body: `{"refund":1}`, code: web.KeyMissing, says: "refund.no"},
		"blank":                 {body: `{"refundNo":" "}`, code: web.KeyMissing, says: "refundNo"},
		"empty":                 {body: `{"refundNo":""}`, code: web.KeyMissing, says: "refundNo"},
		"null":                  {body: `{"refundNo":null}`, code: web.KeyInvalid, says: "refundNo"},
		"object":                {body: `{"refundNo":{}}`, code: web.KeyInvalid, says: "refundNo"},
		"array":                 {body: `{"refundNo":["r"]}`, code: web.KeyInvalid, says: "refundNo"},
		"duplicate":             {body: `{"refundNo":"r","refundNo":"s"}`, code: web.KeyInvalid, says: "repeated"},
		"duplicate and equal":   {body: `{"refundNo":"r","refundNo":"r"}`, code: web.KeyInvalid, says: "repeated"},
		"duplicate, other case": {body: `{"refundNo":"r","REFUNDNO":"s"}`, code: web.KeyInvalid, says: "repeated"},
		"duplicate, escaped":    {body: `{"refundNo":"r","refund\u006eO":"s"}`, code: web.KeyInvalid, says: "repeated"},
		"duplicate, folding":    {path: []string{"is"}, body: `{"is":"r","iſ":"s"}`, code: web.KeyInvalid, says: "repeated"},
		"duplicate, outer":      {path: []string{"a.b"}, body: `{"a":{"b":1},"a":{"b":2}}`, code: web.KeyInvalid, says: "repeated"},
		"other case alone":      {body: `{"REFUNDNO":"r"}`, code: web.KeyMissing},
		"deep nesting":          {body: `{"refundNo":"r","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, code: web.KeyInvalid},
		"number, a fraction":    {body: `{"refundNo":0.1}`},
		"number, finer":         {body: `{"refundNo":1.00000000000000000001}`, code: web.KeyInvalid, says: `"refundNo"`},
		"number, large":         {body: `{"refundNo":18446744073709551616}`},
		"number, too long":      {body: `{"refundNo":` + strings.Repeat("1", 65) + `}`, code: web.KeyInvalid, says: `"refundNo"`},
		"number, too large":     {body: `{"refundNo":1e999999999}`, code: web.KeyInvalid, says: `"refundNo"`},
		"number, beyond an int": {body: `{"refundNo":1e-99999999999999999999}`, code: web.KeyInvalid, says: `"refundNo"`},
		"deep nesting in front": {body: strings.Repeat(`{"x":`, 100_000) + "1" + strings.Repeat("}", 100_000), code: web.KeyInvalid},
		"not UTF-8":             {body: "{\"refundNo\":\"a\xff\"}", code: web.KeyInvalid},
		"a byte order mark":     {body: "\ufeff{\"refundNo\":\"a\"}", code: web.KeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.path
			if path == nil {
				path = []string{"refundNo"}
			}
			f := newFixture(t)
			h := &work{}
			guarded := f.guard.Key("refund", web.JSONKey(path...), web.Anonymous())(h)
			rec := f.do(guarded, keyed("application/json", c.body))
			if c.code == "" {
				executed(t, rec, 201)
				repeats(t, f.do(guarded, keyed("application/json", c.body)), rec)
				return
			}
			if p := refused(t, rec, 400, c.code); !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q, want %q", p.Detail, c.says)
			}
			if n := f.ledger.all() + f.store.all(); n != 0 {
				t.Errorf("%d calls of stores", n)
			}
			h.ran(t, 0)
		})
	}
}

// Which keys are the same operation.
func TestKeysAreInjective(t *testing.T) {
	t.Parallel()
	form := func(text string) *http.Request { return keyed(urlencoded, text) }
	json := func(text string) *http.Request { return keyed("application/json", text) }
	path := func(shop, no string) *http.Request {
		return keyed("", "", func(r *http.Request) { r.SetPathValue("shop", shop); r.SetPathValue("no", no) })
	}
	one, two, join := web.JSONKey("n"), web.FormKey("a", "b"), web.Join(web.PathKey("shop"), web.PathKey("no"))
	for name, c := range map[string]struct {
		key  web.KeyFunc
		a, b *http.Request
		same bool
	}{
		"equal strings":             {key: one, a: json(`{"n":"1"}`), b: json(`{"n":"1","x":2}`), same: true},
		"escapes":                   {key: one, a: json(`{"n":"a"}`), b: json(`{"n":"\u0061"}`), same: true},
		"numbers of one value":      {key: one, a: json(`{"n":1}`), b: json(`{"n":1.0}`), same: true},
		"numbers, exponent":         {key: one, a: json(`{"n":1500}`), b: json(`{"n":0.15E+4}`), same: true},
		"numbers, fraction":         {key: one, a: json(`{"n":1.50}`), b: json(`{"n":15e-1}`), same: true},
		"numbers, no more a float":  {key: one, a: json(`{"n":9007199254740993}`), b: json(`{"n":9007199254740992}`)},
		"numbers, sign":             {key: one, a: json(`{"n":-1}`), b: json(`{"n":1}`)},
		"number and string":         {key: one, a: json(`{"n":1}`), b: json(`{"n":"1"}`)},
		"true and string":           {key: one, a: json(`{"n":true}`), b: json(`{"n":"true"}`)},
		"string and quoted":         {key: one, a: json(`{"n":"1"}`), b: json(`{"n":"\"1\""}`)},
		"blank in front":            {key: one, a: json(`{"n":"1"}`), b: json(`{"n":" 1"}`)},
		"two, moved border":         {key: two, a: form("a=x:y&b=z"), b: form("a=x&b=y:z")},
		"two, quotes":               {key: two, a: form(`a=x%22%2C%22y&b=z`), b: form(`a=x&b=y%22%2C%22z`)},
		"two, order in the body":    {key: two, a: form("a=x&b=y"), b: form("b=y&a=x"), same: true},
		"two, swapped":              {key: two, a: form("a=x&b=y"), b: form("a=y&b=x")},
		"two, broken UTF-8":         {key: two, a: form("a=%FF&b=y"), b: form("a=%FE&b=y")},
		"broken and its substitute": {key: two, a: form("a=%FF&b=y"), b: form("a=%EF%BF%BD&b=y")},
		"joined":                    {key: join, a: path("s", "1"), b: path("s", "1"), same: true},
		"joined, moved border":      {key: join, a: path("s1", "2"), b: path("s", "12")},
		"joined, backslash":         {key: join, a: path(`s\xff`, "2"), b: path("s\xff", "2")},
		"joined, nested":            {key: web.Join(join, web.PathKey("no")), a: path("s", "1"), b: path("s", "1"), same: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if same := sameOperation(t, c.key, c.a, c.b); same != c.same {
				t.Errorf("same operation: %v", same)
			}
		})
	}
}

func TestOtherKeys(t *testing.T) {
	t.Parallel()
	contentType, text := multiparts(part{name: "no", content: "7"}, part{name: "f", file: "x", content: "y"})
	from := web.KeyFrom(func(r *http.Request) (string, error) {
		if r.Header.Get("X-Bad") != "" {
			return "", errors.New("the number is not one of ours")
		}
		return r.Header.Get("X-No"), nil
	})
	for name, c := range map[string]struct {
		key  web.KeyFunc
		r    *http.Request
		code string
		says string
	}{
		"form":             {key: web.FormKey("no"), r: keyed(urlencoded, "no=7")},
		"multipart":        {key: web.FormKey("no"), r: keyed(contentType, text)},
		"form, missing":    {key: web.FormKey("no"), r: keyed(urlencoded, "a=7"), code: web.KeyMissing, says: `"no"`},
		"form, blank":      {key: web.FormKey("no"), r: keyed(urlencoded, "no=+"), code: web.KeyMissing, says: `"no"`},
		"form, repeated":   {key: web.FormKey("no"), r: keyed(urlencoded, "no=7&no=8"), code: web.KeyInvalid, says: "repeated"},
		"form, in query":   {key: web.FormKey("no"), r: keyed(urlencoded, "", func(r *http.Request) { r.URL.RawQuery = "no=7" }), code: web.KeyMissing},
		"form, but JSON":   {key: web.FormKey("no"), r: keyed("application/json", `{"no":7}`), code: web.KeyMissing},
		"path":             {key: web.PathKey("no"), r: keyed("", "", func(r *http.Request) { r.SetPathValue("no", "7") })},
		"path, missing":    {key: web.PathKey("no"), r: keyed("", ""), code: web.KeyMissing, says: `"no"`},
		"own":              {key: from, r: keyed("", "", header("X-No", "7"))},
		"own, none":        {key: from, r: keyed("", ""), code: web.KeyMissing},
		"own, refused":     {key: from, r: keyed("", "", header("X-Bad", "1")), code: web.KeyInvalid, says: "not one of ours"},
		"joined, one gone": {key: web.Join(from, web.FormKey("no")), r: keyed(urlencoded, "", header("X-No", "7")), code: web.KeyMissing, says: `"no"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			h := &work{}
			rec := f.do(f.guard.Key("refund", c.key, web.Anonymous())(h), c.r)
			if c.code == "" {
				executed(t, rec, 201)
				return
			}
			if p := refused(t, rec, 400, c.code); !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q", p.Detail)
			}
			h.ran(t, 0)
		})
	}
}
