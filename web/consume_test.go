package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

const serviceKey = "a-long-and-random-service-key"

func withServices(c *web.Config) { c.ServiceKeys = []string{serviceKey, "the-older-key"} }

// service makes a service's call; members are JSON.
func (f *fixture) service(call string, members map[string]any, change ...func(*http.Request)) *httptest.ResponseRecorder {
	f.t.Helper()
	text, err := json.Marshal(members)
	if err != nil {
		f.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/api/idempotent/"+call, strings.NewReader(string(text)))
	r.Header.Set("Authorization", "Bearer "+serviceKey)
	for _, c := range change {
		c(r)
	}
	rec := f.do(f.routes, r)
	if rec.Header().Get("Set-Cookie") != "" {
		f.t.Errorf("a service got a cookie: %v", rec.Header())
	}
	return rec
}

// grant is a token and what consume has to be told of it.
func (f *fixture) grant() map[string]any {
	f.t.Helper()
	return map[string]any{"token": f.token("order.create").Token, "action": "order.create", "subject": f.cookie.Value}
}

func with(members map[string]any, name string, value any) map[string]any {
	changed := map[string]any{name: value}
	for other, value := range members {
		if other != name {
			changed[other] = value
		}
	}
	return changed
}

// consumed is what consume answers.
type consumed struct {
	Outcome    string
	Claim      string
	Attempt    int
	LeaseUntil time.Time
	Response   struct {
		Status  int
		Headers [][2]string
		Body    *string
	}
}

func ok(t *testing.T, rec *httptest.ResponseRecorder) (got consumed) {
	t.Helper()
	if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/json" || rec.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("answered %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func accepts(t *testing.T, rec *httptest.ResponseRecorder, attempt int) string {
	t.Helper()
	got := ok(t, rec)
	if got.Outcome != "accepted" || got.Claim == "" || got.Attempt != attempt {
		t.Fatalf("answered %s, want attempt %d", rec.Body, attempt)
	}
	return got.Claim
}

func TestServiceKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines  []string
		change func(*web.Config)
		status int
	}{
		"right":               {lines: []string{"Bearer " + serviceKey}, status: 200},
		"scheme in lower":     {lines: []string{"bearer  " + serviceKey}, status: 200},
		"the older one":       {lines: []string{"Bearer the-older-key"}, status: 200},
		"none":                {status: 401},
		"empty":               {lines: []string{""}, status: 401},
		"empty key":           {lines: []string{"Bearer "}, status: 401},
		"wrong":               {lines: []string{"Bearer wrong"}, status: 401},
		"one more letter":     {lines: []string{"Bearer " + serviceKey + "x"}, status: 401},
		"one letter less":     {lines: []string{"Bearer " + serviceKey[1:]}, status: 401},
		"both keys":           {lines: []string{"Bearer " + serviceKey + ",the-older-key"}, status: 401},
		"another scheme":      {lines: []string{"Basic " + serviceKey}, status: 401},
		"no scheme":           {lines: []string{serviceKey}, status: 401},
		"twice":               {lines: []string{"Bearer " + serviceKey, "Bearer " + serviceKey}, status: 401},
		"none configured":     {lines: []string{"Bearer " + serviceKey}, change: func(c *web.Config) { c.ServiceKeys = nil }, status: 404},
		"no tokens":           {lines: []string{"Bearer " + serviceKey}, change: func(c *web.Config) { c.Tokens = nil }, status: 404},
		"none configured, ''": {lines: []string{"Bearer "}, change: func(c *web.Config) { c.ServiceKeys = nil }, status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withServices, func(config *web.Config) {
				if c.change != nil {
					c.change(config)
				}
			})
			members := map[string]any{"action": "order.create"}
			if c.status == 200 {
				members = f.grant()
			}
			before := f.store.all() + f.ledger.all()
			for _, call := range []string{"extend", "complete", "fail", "consume"} {
				rec := f.service(call, members, func(r *http.Request) { r.Header["Authorization"] = c.lines })
				switch {
				case c.status == 401:
					refused(t, rec, 401, web.Unauthorized)
					if rec.Header().Get("WWW-Authenticate") != "Bearer" || f.store.all()+f.ledger.all() != before {
						t.Errorf("header %v, stores were asked", rec.Header())
					}
				case c.status == 200 && call != "consume":
					refused(t, rec, 400, web.BadRequest)
				case rec.Code != c.status:
					t.Errorf("%s answered %d %s", call, rec.Code, rec.Body)
				}
			}
		})
	}
}

func TestConsumeRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		member string
		value  any    // nil: absent
		raw    string // instead
		code   string
		says   string
		named  bool // the answer names the request id
	}{
		"no token":                {member: "token", code: web.TokenMissing},
		"blank token":             {member: "token", value: " ", code: web.TokenMissing},
		"forged token":            {member: "token", value: "a.b.c", code: web.TokenInvalid},
		"no action":               {member: "action", code: web.BadRequest, says: "action"},
		"bad action":              {member: "action", value: "a/b", code: web.BadRequest, says: "action"},
		"another action":          {member: "action", value: "order.cancel", code: web.TokenWrongAction, named: true},
		"no subject":              {member: "subject", code: web.BadRequest, says: "subject"},
		"empty subject":           {member: "subject", value: "", code: web.BadRequest, says: "subject"},
		"another subject":         {member: "subject", value: "ann", code: web.TokenWrongSubject, named: true},
		"a digest for a subject":  {member: "subject", value: tokens.SubjectDigest("", "ann"), code: web.TokenWrongSubject, named: true},
		"short request id":        {member: "requestId", value: "short", code: web.RequestIDInvalid},
		"empty request id":        {member: "requestId", value: "", code: web.RequestIDInvalid},
		"another request id":      {member: "requestId", value: "another-request", code: web.RequestIDMismatch, named: true},
		"empty fingerprint":       {member: "fingerprint", value: "", code: web.BadRequest, says: "fingerprint"},
		"blank business key":      {member: "businessKey", value: " ", code: web.BadRequest, says: "businessKey"},
		"long business key":       {member: "businessKey", value: strings.Repeat("k", 1025), code: web.BadRequest, says: "businessKey"},
		"number for a string":     {member: "fingerprint", value: 7, code: web.BadRequest, says: "fingerprint"},
		"unknown member":          {member: "wait", value: 7, code: web.BadRequest},
		"member in other case":    {member: "Subject", value: "ann", code: web.BadRequest},
		"no body":                 {raw: " ", code: web.TokenMissing},
		"not JSON":                {raw: "token=a", code: web.BadRequest},
		"an array":                {raw: "[]", code: web.BadRequest},
		"null":                    {raw: `{"token":null}`, code: web.BadRequest},
		"repeated":                {raw: `{"token":"a","token":"a"}`, code: web.BadRequest},
		"trailing data":           {raw: `{"token":"a"} {}`, code: web.BadRequest},
		"broken UTF-8":            {raw: "{\"token\":\"\xff\"}", code: web.BadRequest},
		"too large":               {raw: `{"token":"` + strings.Repeat("a", 1<<20) + `"}`, code: web.BodyTooLarge},
		"too large, and declared": {raw: `{"token":"` + strings.Repeat("a", 1<<20) + `"}`, code: web.BodyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withServices, func(c *web.Config) { c.BodyLimit = 1 << 20 })
			good := f.grant()
			claims, err := f.issuer.Verify(good["token"].(string))
			if err != nil {
				t.Fatal(err)
			}
			before := f.store.all() + f.ledger.all()
			bad := with(good, c.member, c.value)
			if c.value == nil {
				delete(bad, c.member)
			}
			rec := f.service("consume", bad, func(r *http.Request) {
				if c.raw != "" {
					body(c.raw)(r)
				}
				if !strings.Contains(name, "declared") {
					r.ContentLength = -1
				}
				r.Header.Set("Accept", "text/html") // programs call, whatever they say
			})
			p := refused(t, rec, allCodes()[c.code], c.code)
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q, want %q", p.Detail, c.says)
			}
			if named := rec.Header().Get(requestID) == claims.RequestID && p.RequestID == claims.RequestID; named != c.named {
				t.Errorf("request id %q", p.RequestID)
			}
			if n := f.store.all() + f.ledger.all(); n != before {
				t.Errorf("%d calls of stores", n-before)
			}
			accepts(t, f.service("consume", good), 1) // nothing was spent
		})
	}
}

// Who a service may speak for.
func TestSubjectOfServices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		users   bool
		subject func(f *fixture) string
		change  []func(*http.Request)
		ok      bool
	}{
		"the cookie":                     {subject: func(f *fixture) string { return f.cookie.Value }, ok: true},
		"the user":                       {users: true, subject: func(*fixture) string { return "ann" }, ok: true},
		"another user":                   {users: true, subject: func(*fixture) string { return "bob" }},
		"the user, another tenant":       {users: true, subject: func(*fixture) string { return "ann" }, change: []func(*http.Request){header("X-Shop", "2")}},
		"the user, in a browser's name":  {users: true, subject: func(*fixture) string { return "ann" }, change: []func(*http.Request){as("bob")}, ok: true},
		"the user, from another website": {users: true, subject: func(*fixture) string { return "ann" }, change: []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://x.example")}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withServices, func(config *web.Config) {
				config.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") }
				if c.users {
					byUser(config)
				}
			})
			r := f.request("/idem/token", "", `{"action":"order.create"}`)
			as("ann")(r)
			rec := f.do(f.routes, r)
			for _, cookie := range rec.Result().Cookies() {
				f.cookie = cookie
			}
			var got issued
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			answer := f.service("consume", map[string]any{"token": got.Token, "action": "order.create", "subject": c.subject(f)}, c.change...)
			if c.ok {
				accepts(t, answer, 1)
			} else {
				refused(t, answer, 403, web.TokenWrongSubject)
			}
		})
	}
}
