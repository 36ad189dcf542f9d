package web_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// unsafe method, token in a header, in a field, in both; refused without a store, and the token is good afterwards.
func TestTokenRefusals(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		change    func(f *fixture, r *http.Request, good issued)
		status    int
		code      string
		authentic bool // the answer names the request id
		says      string
	}{
		"none":  {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Del(tokenHeader) }, status: 400, code: web.TokenMissing},
		"blank": {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(tokenHeader, " \t ") }, status: 400, code: web.TokenMissing},
		"blank field": {change: func(_ *fixture, r *http.Request, _ issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "idempotent_token=++&a=1")
		}, status: 400, code: web.TokenMissing},
		"in a JSON member": {change: func(_ *fixture, r *http.Request, g issued) {
			r.Header.Del(tokenHeader)
			body(`{"idempotent_token":"` + g.Token + `"}`)(r)
		}, status: 400, code: web.TokenMissing},
		"in the URL":             {change: func(_ *fixture, r *http.Request, g issued) { r.URL.RawQuery = "idempotent_token=" + g.Token }, status: 400, code: web.TokenInURL},
		"in the URL, other case": {change: func(_ *fixture, r *http.Request, g issued) { r.URL.RawQuery = "a=1&Idempotent_Token=" + g.Token }, status: 400, code: web.TokenInURL},
		"in the URL as header":   {change: func(_ *fixture, r *http.Request, g issued) { r.URL.RawQuery = "idempotent-token=" + g.Token }, status: 400, code: web.TokenInURL},
		"in the URL, escaped":    {change: func(_ *fixture, r *http.Request, g issued) { r.URL.RawQuery = "idempotent%5Ftoken=" + g.Token }, status: 400, code: web.TokenInURL},
		"in the URL, empty":      {change: func(_ *fixture, r *http.Request, _ issued) { r.URL.RawQuery = "idempotent_token" }, status: 400, code: web.TokenInURL},
		"in the URL, malformed":  {change: func(_ *fixture, r *http.Request, _ issued) { r.URL.RawQuery = "idempotent_token=abc%zz" }, status: 400, code: web.TokenInURL},
		"in the URL, forged beside": {change: func(_ *fixture, r *http.Request, _ issued) {
			r.Header.Set(tokenHeader, "forged")
			r.URL.RawQuery = "idempotent_token=x"
		}, status: 400, code: web.TokenInURL},
		"header twice, different": {change: func(f *fixture, r *http.Request, _ issued) { r.Header.Add(tokenHeader, f.token("order.create").Token) }, status: 400, code: web.BadRequest, says: "twice"},
		"header and field differ": {change: func(f *fixture, r *http.Request, _ issued) {
			asForm(r, "idempotent_token="+f.token("order.create").Token)
		}, status: 400, code: web.BadRequest, authentic: true, says: "twice"},
		"field twice, different": {change: func(f *fixture, r *http.Request, g issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "idempotent_token="+g.Token+"&idempotent_token="+f.token("order.create").Token)
		}, status: 400, code: web.BadRequest, authentic: true, says: "twice"},
		"garbage":      {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(tokenHeader, "garbage") }, status: 403, code: web.TokenInvalid},
		"truncated":    {change: func(_ *fixture, r *http.Request, g issued) { r.Header.Set(tokenHeader, g.Token[:len(g.Token)-4]) }, status: 403, code: web.TokenInvalid},
		"one mebibyte": {change: func(_ *fixture, r *http.Request, g issued) { r.Header.Set(tokenHeader, strings.Repeat("a", 1<<20)) }, status: 403, code: web.TokenInvalid},
		"alg none":     {change: func(_ *fixture, r *http.Request, g issued) { r.Header.Set(tokenHeader, unsigned(g.Token)) }, status: 403, code: web.TokenInvalid},
		"other issuer": {change: func(f *fixture, r *http.Request, _ issued) { r.Header.Set(tokenHeader, foreign(t, f)) }, status: 403, code: web.TokenInvalid},
		"forged field": {change: func(_ *fixture, r *http.Request, _ issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "idempotent_token=a.b.c")
		}, status: 403, code: web.TokenInvalid},
		"other action":        {change: func(f *fixture, r *http.Request, _ issued) { r.Header.Set(tokenHeader, f.token("order.cancel").Token) }, status: 403, code: web.TokenWrongAction, authentic: true},
		"other browser":       {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Del("Cookie") }, status: 403, code: web.TokenWrongSubject, authentic: true},
		"forged cookie":       {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set("Cookie", "idem=AAAAAAAAAAAAAAAAAAAAAA") }, status: 403, code: web.TokenWrongSubject, authentic: true},
		"request id, short":   {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(requestID, "short") }, status: 400, code: web.RequestIDInvalid, authentic: true},
		"request id, slash":   {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(requestID, "aaaa/bbbb/cccc") }, status: 400, code: web.RequestIDInvalid, authentic: true},
		"request id, 129":     {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(requestID, strings.Repeat("a", 129)) }, status: 400, code: web.RequestIDInvalid, authentic: true},
		"request id, another": {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set(requestID, "another-request") }, status: 409, code: web.RequestIDMismatch, authentic: true},
		"request id field, another": {change: func(_ *fixture, r *http.Request, g issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "idempotent_token="+g.Token+"&idempotent_request_id=another-request")
		}, status: 409, code: web.RequestIDMismatch, authentic: true},
		"cross-site":     {change: func(_ *fixture, r *http.Request, _ issued) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, status: 403, code: web.CrossOrigin},
		"body, declared": {change: func(_ *fixture, r *http.Request, _ issued) { r.ContentLength = 10<<20 + 1 }, status: 413, code: web.BodyTooLarge},
		"body, malformed form beyond": {change: func(_ *fixture, r *http.Request, g issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "note="+strings.Repeat("x", 64<<10)+"&idempotent_token="+g.Token)
		}, status: 400, code: web.TokenMissing},
		"field across the 64 KiB border": {change: func(_ *fixture, r *http.Request, g issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "note="+strings.Repeat("x", 64<<10-40)+"&idempotent_token="+g.Token)
		}, status: 400, code: web.TokenMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			good := f.token("order.create")
			h := &work{}
			guarded := f.guard.Token("order.create")(h)
			r := f.order(good.Token)
			c.change(f, r, good)
			if r.Header.Get("Content-Type") == form && r.Header.Get(tokenHeader) == "" {
				r.Header.Del(tokenHeader)
			}
			asked := f.store.all() + f.ledger.all()
			rec := f.do(guarded, r)
			p := refused(t, rec, c.status, c.code)
			if got := f.store.all() + f.ledger.all(); got != asked {
				t.Errorf("%d calls of stores", got-asked)
			}
			if named := rec.Header().Get(requestID) != "" && p.RequestID == rec.Header().Get(requestID); named != c.authentic {
				t.Errorf("request id %q, in the header %q", p.RequestID, rec.Header().Get(requestID))
			}
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q, want %q", p.Detail, c.says)
			}
			if closes := rec.Header().Get("Connection") == "close"; closes != (c.status == 413) {
				t.Errorf("Connection %q", rec.Header().Get("Connection"))
			}
			h.ran(t, 0)
			executed(t, f.do(guarded, f.order(good.Token)), http.StatusCreated)
		})
	}
}

// asForm makes the request a urlencoded form.
func asForm(r *http.Request, text string) {
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body(text)(r)
}

// unsigned is the same token with the algorithm none.
func unsigned(token string) string {
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1"}`))
	return head + "." + strings.Split(token, ".")[1] + "."
}

// foreign is a token of an installation that shares the keys.
func foreign(t *testing.T, f *fixture) string {
	t.Helper()
	token, err := newIssuer(t, f.clock, "other").Issue(tokens.Grant{
		Action: "order.create", Subject: tokens.SubjectDigest("", f.cookie.Value),
	})
	if err != nil {
		t.Fatal(err)
	}
	return token.Token
}

// Where a token may stand, and be accepted.
func TestTokenPlaces(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *http.Request, token issued){
		"header":              func(*http.Request, issued) {},
		"header twice, equal": func(r *http.Request, token issued) { r.Header.Add(tokenHeader, token.Token) },
		"field": func(r *http.Request, token issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "a=1&idempotent_token="+token.Token)
		},
		"field with charset": func(r *http.Request, token issued) {
			r.Header.Del(tokenHeader)
			asForm(r, "a=1&idempotent_token="+token.Token)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
		},
		"header and field":         func(r *http.Request, token issued) { asForm(r, "idempotent_token="+token.Token) },
		"header and padded field":  func(r *http.Request, token issued) { asForm(r, "idempotent_token=+"+token.Token+"%0A") },
		"header and blank field":   func(r *http.Request, token issued) { asForm(r, "idempotent_token=") },
		"its request id":           func(r *http.Request, token issued) { r.Header.Set(requestID, token.RequestID) },
		"its request id, a field":  func(r *http.Request, token issued) { asForm(r, "idempotent_request_id="+token.RequestID) },
		"an empty request id":      func(r *http.Request, _ issued) { r.Header.Set(requestID, "") },
		"a proxy's own request id": func(r *http.Request, _ issued) { r.Header.Set("X-Request-Id", "7") },
		"a client's own key":       func(r *http.Request, _ issued) { r.Header.Set("Idempotency-Key", "\"") },
		"same origin":              func(r *http.Request, _ issued) { r.Header.Set("Sec-Fetch-Site", "same-origin") },
		"no content type":          func(r *http.Request, _ issued) { r.Header.Del("Content-Type") },
		"field just in 64 KiB": func(r *http.Request, token issued) {
			r.Header.Del(tokenHeader)
			field := "&idempotent_token=" + token.Token + "&"
			asForm(r, "note="+strings.Repeat("x", 64<<10-5-len(field))+field+"tail="+strings.Repeat("y", 2<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create")
			h := &work{}
			guarded := f.guard.Token("order.create")(h)
			r := f.order(token.Token)
			change(r, token)
			rec := f.do(guarded, r)
			executed(t, rec, http.StatusCreated)
			if rec.Header().Get(requestID) != token.RequestID || rec.Header().Get("X-Request-Id") != "" {
				t.Errorf("header %v", rec.Header())
			}
			again := f.order(token.Token)
			change(again, token)
			again.Header.Set("X-Request-Id", "8")
			repeat := f.do(guarded, again)
			repeats(t, repeat, rec)
			if repeat.Header().Get(requestID) != token.RequestID {
				t.Errorf("request id %q", repeat.Header().Get(requestID))
			}
			h.ran(t, 1)
		})
	}
}

func TestSafeMethodsPassWithAToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create")
	h := &work{}
	guarded := f.guard.Token("order.create")(h)
	for i, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		for _, given := range []string{token.Token, "", "forged"} {
			r := httptest.NewRequest(method, "/orders?idempotent_token=x", nil)
			r.Header.Set(tokenHeader, given)
			executed(t, f.do(guarded, r), http.StatusCreated)
		}
		h.ran(t, 3*i+3)
	}
	executed(t, f.do(guarded, f.order(token.Token)), http.StatusCreated)
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  int // status of what was done under the token before it expired; 0: nothing
		status int
		code   string
	}{
		"nothing was done":  {first: 0, status: 409, code: web.TokenExpired},
		"it failed":         {first: 500, status: 409, code: web.TokenExpired},
		"it was refused":    {first: 422, status: 409, code: web.TokenExpired},
		"it went through":   {first: 201, status: 201},
		"it was redirected": {first: 303, status: 303},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create")
				status := c.first
				h := &work{then: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }}
				guarded := f.guard.Token("order.create")(h)
				if c.first != 0 {
					executed(t, f.do(guarded, f.order(token.Token)), c.first)
				}
				f.clock.advance(31 * time.Minute)
				rec := f.do(guarded, f.order(token.Token))
				if c.code == "" {
					if rec.Code != c.status || rec.Header().Get(replayed) != "true" {
						t.Fatalf("answered %d %v", rec.Code, rec.Header())
					}
					return
				}
				if p := refused(t, rec, c.status, c.code); p.RequestID != token.RequestID {
					t.Errorf("request id %q", p.RequestID)
				}
				status = 201
				executed(t, f.do(guarded, f.order(f.renew("order.create", token.RequestID).Token)), 201)
				if c.first != 0 && h.attempt.Load() != 2 {
					t.Errorf("attempt %d", h.attempt.Load())
				}
			})
		}
	}
}

func only(stores string) func(*web.Config) {
	switch stores {
	case "store":
		return withoutLedger
	case "ledger":
		return withoutStore
	}
	return func(*web.Config) {}
}
