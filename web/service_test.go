package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

func TestTokenService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		code  string // of a refusal
		count int    // 0: one token, not a list
		want  issued // of what was asked for
	}{
		"no body":               {body: "", want: issued{Action: "default"}},
		"blank body":            {body: " \n", want: issued{Action: "default"}},
		"empty object":          {body: "{}", want: issued{Action: "default"}},
		"action":                {body: `{"action":"order.create"}`, want: issued{Action: "order.create"}},
		"longest action":        {body: `{"action":"` + strings.Repeat("a", 128) + `"}`, want: issued{Action: strings.Repeat("a", 128)}},
		"request id":            {body: `{"requestId":"request-0001"}`, want: issued{Action: "default", RequestID: "request-0001"}},
		"longest request id":    {body: `{"requestId":"` + strings.Repeat("a", 128) + `"}`, want: issued{Action: "default", RequestID: strings.Repeat("a", 128)}},
		"one":                   {body: `{"count":1}`, count: 1, want: issued{Action: "default"}},
		"most":                  {body: `{"count":32,"action":"order.create"}`, count: 32, want: issued{Action: "order.create"}},
		"none":                  {body: `{"count":0}`, code: web.BadRequest},
		"one too many":          {body: `{"count":33}`, code: web.BadRequest},
		"negative":              {body: `{"count":-1}`, code: web.BadRequest},
		"very many":             {body: `{"count":99999999999999999999}`, code: web.BadRequest},
		"a fraction":            {body: `{"count":1.5}`, code: web.BadRequest},
		"a count in quotes":     {body: `{"count":"1"}`, code: web.BadRequest},
		"count and request id":  {body: `{"count":2,"requestId":"request-0001"}`, code: web.BadRequest},
		"empty action":          {body: `{"action":""}`, code: web.BadRequest},
		"action too long":       {body: `{"action":"` + strings.Repeat("a", 129) + `"}`, code: web.BadRequest},
		"action with a slash":   {body: `{"action":"a/b"}`, code: web.BadRequest},
		"action a number":       {body: `{"action":1}`, code: web.BadRequest},
		"action null":           {body: `{"action":null}`, code: web.BadRequest},
		"request id null":       {body: `{"requestId":null}`, code: web.BadRequest},
		"count null":            {body: `{"count":null}`, code: web.BadRequest},
		"request id empty":      {body: `{"requestId":""}`, code: web.RequestIDInvalid},
		"request id short":      {body: `{"requestId":"short"}`, code: web.RequestIDInvalid},
		"request id not ASCII":  {body: `{"requestId":"ächtäuschung"}`, code: web.RequestIDInvalid},
		"request id a number":   {body: `{"requestId":12345678}`, code: web.BadRequest},
		"unknown member":        {body: `{"action":"a","subject":"b"}`, code: web.BadRequest},
		"member in other case":  {body: `{"Action":"a"}`, code: web.BadRequest},
		"member twice":          {body: `{"action":"a","action":"b"}`, code: web.BadRequest},
		"trailing data":         {body: `{} {}`, code: web.BadRequest},
		"trailing garbage":      {body: `{}x`, code: web.BadRequest},
		"trailing brace":        {body: `{}}`, code: web.BadRequest},
		"not JSON":              {body: `action=a`, code: web.BadRequest},
		"cut off":               {body: `{"action":`, code: web.BadRequest},
		"null":                  {body: `null`, code: web.BadRequest},
		"array":                 {body: `[]`, code: web.BadRequest},
		"string":                {body: `"a"`, code: web.BadRequest},
		"deep nesting":          {body: `{"x":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`, code: web.BadRequest},
		"deep nesting, objects": {body: strings.Repeat(`{"action":`, 5_000) + strings.Repeat("}", 5_000), code: web.BadRequest},
		"oversize":              {body: `{"action":"` + strings.Repeat("a", 64<<10) + `"}`, code: web.BodyTooLarge},
	} {
		for _, prefix := range []string{"/idem", "/api/idempotent"} {
			t.Run(name+prefix, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				rec := f.do(f.routes, f.request(prefix+"/token", "application/json", c.body))
				if c.code != "" {
					refused(t, rec, allCodes()[c.code], c.code)
					if f.store.all() != 0 || rec.Header().Get("Set-Cookie") != "" {
						t.Errorf("%d calls of the store, header %v", f.store.all(), rec.Header())
					}
					return
				}
				if rec.Code != 201 || rec.Header().Get("Content-Type") != "application/json" || rec.Header().Get("Cache-Control") != "no-store" || f.store.count("Issue") != 1 {
					t.Fatalf("answered %d %v", rec.Code, rec.Header())
				}
				checkIssued(t, f, rec, c.count, c.want)
			})
		}
	}
}

func checkIssued(t *testing.T, f *fixture, rec *httptest.ResponseRecorder, count int, want issued) {
	t.Helper()
	var many struct{ Tokens []issued }
	if count == 0 {
		many.Tokens = make([]issued, 1)
		if err := json.Unmarshal(rec.Body.Bytes(), &many.Tokens[0]); err != nil {
			t.Fatal(err)
		}
		if rec.Header().Get(requestID) != many.Tokens[0].RequestID {
			t.Errorf("header %v", rec.Header())
		}
	} else if err := json.Unmarshal(rec.Body.Bytes(), &many); err != nil || len(many.Tokens) != count {
		t.Fatalf("%d tokens, %v", len(many.Tokens), err)
	}
	seen := map[string]bool{}
	for _, got := range many.Tokens {
		seen[got.RequestID] = true
		claims, err := f.issuer.Verify(got.Token)
		if err != nil || claims.Action != want.Action || got.Action != want.Action || claims.RequestID != got.RequestID || !claims.ExpiresAt.Equal(got.ExpiresAt) {
			t.Errorf("token %+v, claims %+v, %v", got, claims, err)
		}
		if want.RequestID != "" && got.RequestID != want.RequestID || got.ExpiresIn < 1800 || got.ExpiresIn > 1801 || got.ExpiresAt.Location() != time.UTC {
			t.Errorf("token %+v", got)
		}
	}
	if len(seen) != len(many.Tokens) {
		t.Errorf("%d request ids of %d tokens", len(seen), len(many.Tokens))
	}
}

func TestTokensOfOnePageAreAllGood(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withoutLedger)
	rec := f.do(f.routes, f.request("/idem/token", "", `{"action":"order.create","count":32}`))
	f.cookie = rec.Result().Cookies()[0]
	var many struct{ Tokens []issued }
	if err := json.Unmarshal(rec.Body.Bytes(), &many); err != nil {
		t.Fatal(err)
	}
	guarded := f.guard.Token("order.create")(f.handler)
	for i, token := range many.Tokens {
		executed(t, f.do(guarded, f.order(token.Token)), 201)
		f.handler.ran(t, i+1)
	}
}

// Renewing is the same intention: whichever token of it comes, there is one effect.
func TestRenewal(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			first := f.token("order.create")
			second := f.renew("order.create", first.RequestID)
			guarded := f.guard.Token("order.create")(f.handler)
			answer := f.do(guarded, f.order(second.Token))
			executed(t, answer, 201)
			for _, token := range []string{first.Token, second.Token, f.renew("order.create", first.RequestID).Token} {
				repeats(t, f.do(guarded, f.order(token)), answer)
			}
			f.handler.ran(t, 1)
		})
	}
}

func TestTokenLimit(t *testing.T) {
	t.Parallel()
	var asked []string
	f := newFixture(t, func(c *web.Config) {
		c.TokenLimit = func(r *http.Request, subject string, n int) time.Duration {
			asked = append(asked, fmt.Sprint(subject != "", n))
			if n > 2 {
				return 1200 * time.Millisecond
			}
			return 0
		}
	})
	f.token("order.create")
	f.token("order.create")
	rec := f.do(f.routes, f.request("/idem/token", "", `{"count":3}`))
	if p := refused(t, rec, 429, web.RateLimited); p.RetryAfter != 2 || rec.Header().Get("Retry-After") != "2" {
		t.Errorf("problem %+v", p)
	}
	if got := strings.Join(asked, ", "); got != "false 1, true 1, true 3" {
		t.Errorf("asked %s", got)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keysOnly := newFixture(t, func(c *web.Config) { c.Tokens = nil })
	for name, c := range map[string]struct {
		f            *fixture
		method, path string
		status       int
		allow        string
	}{
		"token, GET":          {f: f, method: "GET", path: "/idem/token", status: 405, allow: "POST"},
		"token, HEAD":         {f: f, method: "HEAD", path: "/idem/token", status: 405, allow: "POST"},
		"token, no issuer":    {f: keysOnly, method: "POST", path: "/idem/token", status: 404},
		"client, POST":        {f: f, method: "POST", path: "/idem/idem-client.js", status: 405, allow: "GET"},
		"client":              {f: f, method: "GET", path: "/idem/idem-client.js", status: 200},
		"client, HEAD":        {f: f, method: "HEAD", path: "/idem/idem-client.js", status: 200},
		"style":               {f: f, method: "GET", path: "/idem/idem.css", status: 200},
		"another hash":        {f: f, method: "GET", path: "/idem/idem-client.000000000000.js", status: 404},
		"unknown":             {f: f, method: "GET", path: "/idem/nothing", status: 404},
		"root":                {f: f, method: "GET", path: "/", status: 404},
		"unknown problem":     {f: f, method: "GET", path: "/idem/problems/nothing", status: 404},
		"problems themselves": {f: f, method: "GET", path: "/idem/problems", status: 404},
		"a problem, POST":     {f: f, method: "POST", path: "/idem/problems/token_missing", status: 405, allow: "GET"},
		"service call":        {f: f, method: "POST", path: "/idem/consume", status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := c.f.do(c.f.routes, httptest.NewRequest(c.method, c.path, nil))
			if rec.Code != c.status || rec.Header().Get("Allow") != c.allow || c.method == "HEAD" && rec.Code == 200 && rec.Body.Len() > 0 {
				t.Errorf("answered %d %v, %d bytes", rec.Code, rec.Header(), rec.Body.Len())
			}
		})
	}
}

func TestTokenServiceWithoutABody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.request("/idem/token", "", "")
	r.Body = nil // as http.NewRequest leaves it
	rec := f.do(f.routes, r)
	if rec.Code != 201 {
		t.Fatalf("answered %d %s", rec.Code, rec.Body)
	}
	checkIssued(t, f, rec, 0, issued{Action: "default"})
}

func TestAssetCaching(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	page := f.do(f.guard.Forms(http.HandlerFunc(renderHead)), f.request("/", "", "")).Body.String()
	for name, plain := range map[string]string{"script": "/idem/idem-client.js", "style": "/idem/idem.css"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extension := plain[strings.LastIndex(plain, "."):]
			stem := strings.TrimSuffix(plain, extension)
			hashed := stem + "." + strings.Split(strings.Split(page, stem+".")[1], `"`)[0]
			asset := f.do(f.routes, httptest.NewRequest(http.MethodGet, hashed, nil))
			if asset.Code != 200 || asset.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || asset.Body.Len() == 0 {
				t.Errorf("%s: %d %v", hashed, asset.Code, asset.Header())
			}
			newest := f.do(f.routes, httptest.NewRequest(http.MethodGet, plain, nil))
			etag := newest.Header().Get("Etag")
			if newest.Header().Get("Cache-Control") != "no-cache" || etag == "" || newest.Body.String() != asset.Body.String() || newest.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", plain, newest.Header())
			}
			for condition, want := range map[string]int{etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, "": 200} {
				r := httptest.NewRequest(http.MethodGet, plain, nil)
				r.Header.Set("If-None-Match", condition)
				rec := f.do(f.routes, r)
				if rec.Code != want || want == 304 && (rec.Body.Len() > 0 || rec.Header().Get("Etag") != etag) {
					t.Errorf("If-None-Match %s: %d", condition, rec.Code)
				}
			}
		})
	}
}
