package web_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// What a service recorded is sent to a browser by the guard: one connection's headers, and the kit's own, are not the service's to set.
func TestHeadersOfServicesAreReplayedAsAHandlers(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), withServices)
			in := f.grant()
			claim := accepts(t, f.service("consume", in), 1)
			ok(t, f.service("complete", map[string]any{"claim": claim, "status": 200, "headers": [][]string{
				{"connection", "close, X-Hop"}, {"x-hop", "1"}, {"Trailer", "X-Sum"}, {"X-Sum", "2"}, {requestID, "another-request"},
				{"Idempotent-Replayed", "false"}, {"X-Kept", "3"},
			}}))
			f.settle()
			rec := f.do(f.guard.Token("order.create")(f.handler), f.order(in["token"].(string)))
			f.handler.ran(t, 0)
			if got := rec.Header(); got.Get("X-Hop")+got.Get("X-Sum") != "" || got.Get("X-Kept") != "3" || got.Get(requestID) != f.requestID(in) || got.Get(replayed) != "true" {
				t.Errorf("replayed with %v", got)
			}
		})
	}
}

func TestHeadersOfServicesCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices)
	in := f.grant()
	many := make([][]string, 10_000)
	for i := range many {
		many[i] = []string{fmt.Sprintf("X-Header-%d", i), strings.Repeat("v", 100)}
	}
	ok(t, f.service("complete", map[string]any{"claim": accepts(t, f.service("consume", in), 1), "status": 200, "headers": many}))
	refused(t, f.service("consume", in), 409, web.AlreadyDone)
}

// A claim that nobody was given is none, also where the store would believe it.
func TestForgedClaims(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), withServices)
			in, victim := f.grant(), f.grant()
			sealed, err := base64.RawURLEncoding.DecodeString(accepts(t, f.service("consume", in), 1))
			if err != nil || bytes.Contains(sealed, []byte(f.requestID(in))) {
				t.Fatalf("%v, or the claim can be read", err)
			}
			text := fmt.Sprintf(`{"format":%d,"ticket":{"Claim":{"RequestID":%q}}}`, idem.Format, f.requestID(victim))
			forged := base64.RawURLEncoding.EncodeToString([]byte(text))
			for call, members := range map[string]map[string]any{"extend": {}, "fail": {}, "complete": {"status": 200}} {
				refused(t, f.service(call, with(members, "claim", forged)), 400, web.BadRequest)
			}
			accepts(t, f.service("consume", victim), 1)
		})
	}
}

// A claim belongs to the tenant that consumed it.
func TestClaimsOfAnotherTenant(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices, func(c *web.Config) { c.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") } })
	claim := accepts(t, f.service("consume", f.grant()), 1)
	for call, members := range map[string]map[string]any{"extend": {}, "fail": {}, "complete": {"status": 200}} {
		refused(t, f.service(call, with(members, "claim", claim), header("X-Shop", "2")), 400, web.BadRequest)
	}
	ok(t, f.service("complete", map[string]any{"claim": claim, "status": 200}))
}

// The same token under another business key is another payload, whatever the entrance remembers.
func TestOneTokenTwoBusinessKeys(t *testing.T) {
	t.Parallel()
	for _, remembers := range []bool{true, false} {
		t.Run(fmt.Sprint(remembers), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withServices)
			in := f.grant()
			claim := accepts(t, f.service("consume", with(in, "businessKey", "a")), 1)
			ok(t, f.service("complete", map[string]any{"claim": claim, "status": 200}))
			f.settle()
			if !remembers {
				f.store.real.Forget()
			}
			refused(t, f.service("consume", with(in, "businessKey", "b")), 422, web.PayloadMismatch)
			if got := ok(t, f.service("consume", with(in, "businessKey", "a"))); got.Outcome != "replayed" {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

// Escapes that are no text: decoders make one text of them all.
func TestLoneSurrogates(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices)
	guarded := f.guard.Window("payment", 1e9, web.JSONKey("n"))(f.handler)
	for _, n := range []string{`"\ud800"`, `"\udc00a"`, `"\ud800\ud800"`, `"\uD83D"`, `"\ufffd"`} {
		refused(t, f.do(guarded, keyed("application/json", `{"n":`+n+`}`)), 400, web.KeyInvalid)
	}
	for _, n := range []string{`"\ud83d\ude00"`, `"\\ud800"`} {
		executed(t, f.do(guarded, keyed("application/json", `{"n":`+n+`}`)), 201)
	}
	refused(t, f.service("consume", nil, body(`{"businessKey":"\ud800"}`)), 400, web.BadRequest)
}

// A business key that stands outside of the payload counts likewise.
func TestOneTokenTwoBusinessKeysInAHeader(t *testing.T) {
	t.Parallel()
	for _, remembers := range []bool{true, false} {
		t.Run(fmt.Sprint(remembers), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			guarded := f.guard.Token("order.create", web.BusinessKey(web.HeaderKey("X-Order")))(f.handler)
			first := f.do(guarded, f.order(token, header("X-Order", "a")))
			executed(t, first, 201)
			f.settle()
			if !remembers {
				f.store.real.Forget()
			}
			refused(t, f.do(guarded, f.order(token, header("X-Order", "b"))), 422, web.PayloadMismatch)
			repeats(t, f.do(guarded, f.order(token, header("X-Order", "a"))), first)
		})
	}
}

// The first result stands, whatever a repetition says.
func TestTheFirstResultStands(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), withServices)
			in := f.grant()
			claim := accepts(t, f.service("consume", in), 1)
			for _, status := range []int{201, 200} {
				ok(t, f.service("complete", map[string]any{"claim": claim, "status": status}))
			}
			f.settle()
			for range 2 {
				if got := ok(t, f.service("consume", in)); got.Response.Status != 201 {
					t.Errorf("replayed %+v", got.Response)
				}
			}
		})
	}
}
