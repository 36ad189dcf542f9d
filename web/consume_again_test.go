package web_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// What a service gets when something stands under the token already.
func TestConsumeAgain(t *testing.T) {
	t.Parallel()
	const printed = "sha256:1"
	for name, c := range map[string]struct {
		first  string // how the first claim ended
		again  string // fingerprint of the second
		code   string // "": replayed; "accepted"
		status int
	}{
		"running":                       {again: printed, code: web.InProgress},
		"running, no fingerprint":       {code: web.InProgress},
		"running, another fingerprint":  {again: "sha256:2", code: web.PayloadMismatch},
		"done":                          {first: "complete", again: printed},
		"done, no fingerprint":          {first: "complete"},
		"done, another fingerprint":     {first: "complete", again: "sha256:2", code: web.PayloadMismatch},
		"failed, another fingerprint":   {first: "fail", again: "sha256:2", code: "accepted"},
		"lapsed":                        {first: "lapse", again: printed, code: "accepted"},
		"lapsed, another fingerprint":   {first: "lapse", again: "sha256:2", code: web.PayloadMismatch},
		"expired, nothing done":         {first: "expire", again: printed, code: web.TokenExpired},
		"expired, done":                 {first: "complete and expire", again: printed},
		"expired, done, another":        {first: "complete and expire", again: "sha256:2", code: web.PayloadMismatch},
		"done, with a result too large": {first: "complete large", again: printed, code: web.AlreadyDone},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), withServices)
				in := f.grant()
				claim := accepts(t, f.service("consume", with(in, "fingerprint", printed)), 1)
				f.end(c.first, claim, in["token"].(string))
				if c.again != "" {
					in["fingerprint"] = c.again
				}
				rec := f.service("consume", in)
				switch c.code {
				case "accepted":
					accepts(t, rec, 2)
				case "":
					got := ok(t, rec)
					if got.Outcome != "replayed" || got.Response.Status != 201 || *got.Response.Body != base64.StdEncoding.EncodeToString([]byte("made")) ||
						len(got.Response.Headers) != 1 || got.Response.Headers[0] != [2]string{"Location", "/orders/1"} {
						t.Errorf("answered %s", rec.Body)
					}
				default:
					p := refused(t, rec, allCodes()[c.code], c.code)
					if rec.Header().Get(requestID) == "" || (c.code == web.AlreadyDone) != (p.OriginalStatus == 201) {
						t.Errorf("problem %+v", p)
					}
				}
			})
		}
	}
}

// end makes of a claim what a test needs.
func (f *fixture) end(how, claim, token string) {
	f.t.Helper()
	claims, err := f.issuer.Verify(token)
	if err != nil {
		f.t.Fatal(err)
	}
	made := map[string]any{"claim": claim, "status": 201, "headers": [][]string{{"Location", "/orders/1"}}, "body": "bWFkZQ=="}
	switch how {
	case "complete", "complete and expire":
		ok(f.t, f.service("complete", made))
	case "complete large":
		ok(f.t, f.service("complete", with(made, "body", base64.StdEncoding.EncodeToString(make([]byte, web.DefaultResponseLimit+1)))))
	case "fail":
		ok(f.t, f.service("fail", map[string]any{"claim": claim}))
	case "lapse":
		f.store.real.Lapse(claims.Key(""))
		f.ledger.real.Lapse(claims.Key(""))
	case "expire":
		ok(f.t, f.service("fail", map[string]any{"claim": claim}))
	}
	if strings.Contains(how, "expire") {
		f.clock.advance(31 * time.Minute)
	}
	f.settle()
}

// A service and a handler of this process guard one operation.
func TestServicesAndHandlers(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), withServices)
			guarded := f.guard.Token("order.create")(f.handler)
			in := f.grant()
			claim := accepts(t, f.service("consume", in), 1)
			f.end("complete", claim, in["token"].(string))
			rec := f.do(guarded, f.order(in["token"].(string)))
			repeats(t, rec, &httptest.ResponseRecorder{Code: http.StatusCreated, Body: bytes.NewBufferString("made")})
			if rec.Header().Get("Location") != "/orders/1" || rec.Header().Get("Content-Length") != "4" {
				t.Errorf("header %v", rec.Header())
			}
			in = f.grant()
			executed(t, f.do(guarded, f.order(in["token"].(string))), 201)
			f.settle()
			got := ok(t, f.service("consume", in))
			if got.Outcome != "replayed" || got.Response.Status != 201 || len(got.Response.Headers) != 2 {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestBusinessKeyOfServices(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices)
	in := with(with(f.grant(), "businessKey", "r-1"), "fingerprint", "r-1")
	claim := accepts(t, f.service("consume", in), 1)
	refused(t, f.service("consume", with(f.grant(), "businessKey", "r-1")), 409, web.InProgress)
	ok(t, f.service("complete", map[string]any{"claim": claim, "status": 204}))
	if got := ok(t, f.service("consume", with(f.grant(), "businessKey", "r-1"))); got.Outcome != "replayed" || got.Response.Status != 204 || *got.Response.Body != "" || got.Response.Headers == nil {
		t.Errorf("answered %+v", got)
	}
	other := with(with(in, "businessKey", "r-2"), "fingerprint", "r-2")
	f.settle()
	refused(t, f.service("consume", other), 422, web.PayloadMismatch)
	f.store.real.Forget() // the ledger says the same
	refused(t, f.service("consume", other), 422, web.PayloadMismatch)
	record, err := f.ledger.real.Lookup(t.Context(), idem.Request{Key: idem.K("order.create", "r-1")})
	if err != nil || record.State != idem.Succeeded {
		t.Errorf("record %+v, %v", record, err)
	}
	f.cookie = nil
	refused(t, f.service("consume", with(f.grant(), "businessKey", "r-1")), 409, web.KeyTaken)
	alone := newFixture(t, withServices, withoutLedger)
	if p := refused(t, alone.service("consume", with(alone.grant(), "businessKey", "r-1")), 400, web.BadRequest); !strings.Contains(p.Detail, "ledger") {
		t.Errorf("problem %+v", p)
	}
}
