package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

func TestServicesWithStoresAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stores string
		away   func(f *fixture, away bool)
		codes  map[string]string // by call; empty: 200
	}{
		"the store, no ledger": {stores: "store", away: func(f *fixture, away bool) { f.store.setAway(away) }, codes: map[string]string{
			"consume": web.StoreUnavailable, "extend": web.StoreUnavailable, "complete": web.OutcomeUnknown, "fail": web.StoreUnavailable}},
		"the ledger": {stores: "both", away: func(f *fixture, away bool) { f.ledger.setAway(away) }, codes: map[string]string{
			"consume": web.StoreUnavailable, "extend": web.StoreUnavailable, "complete": web.OutcomeUnknown, "fail": web.StoreUnavailable}},
		"the store beside a ledger": {stores: "both", away: func(f *fixture, away bool) { f.store.setAway(away) }},
	} {
		for _, call := range []string{"consume", "extend", "complete", "fail"} {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(c.stores), withServices)
				members := f.grant()
				if call != "consume" {
					members = map[string]any{"claim": accepts(t, f.service("consume", members), 1)}
				}
				if call == "complete" {
					members["status"] = 200
				}
				c.away(f, true)
				rec := f.service(call, members)
				if code := c.codes[call]; code != "" {
					if p := refused(t, rec, 503, code); p.RetryAfter < 1 || strings.Contains(p.Detail, "10.1.2.3") {
						t.Errorf("problem %+v", p)
					}
				} else {
					ok(t, rec)
				}
				c.away(f, false)
				if c.codes[call] != "" {
					ok(t, f.service(call, members))
				}
			})
		}
	}
}

// The lost answer of a call is had by repeating it.
func TestServicesRepeatWhatWasDone(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"store", "ledger"} {
		for call, method := range map[string]string{"extend": "Extend", "complete": "Complete", "fail": "Release"} {
			t.Run(call+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), withServices)
				faults := f.store.faults
				if stores == "ledger" {
					faults = f.ledger.faults
				}
				members := map[string]any{"claim": accepts(t, f.service("consume", f.grant()), 1)}
				if call == "complete" {
					members["status"] = 200
				}
				faults.onAfter(method, lose(errAway))
				if rec := f.service(call, members); rec.Code != http.StatusServiceUnavailable {
					t.Errorf("answered %d %s", rec.Code, rec.Body)
				}
				faults.onAfter(method, nil)
				ok(t, f.service(call, members))
			})
		}
	}
}

// The entrance learns of a service's success, so that a duplicate is answered while the ledger is away.
func TestEntranceLearnsOfServices(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices)
	in := f.grant()
	claim := accepts(t, f.service("consume", in), 1)
	ok(t, f.service("complete", map[string]any{"claim": claim, "status": 201}))
	f.settle()
	f.ledger.setAway(true)
	if got := ok(t, f.service("consume", in)); got.Outcome != "replayed" || got.Response.Status != 201 {
		t.Errorf("answered %+v", got)
	}
	record, err := f.ledger.real.Lookup(t.Context(), idem.Request{Key: idem.Key{Type: "order.create", Scope: f.subject(in["token"].(string)), ID: f.requestID(in)}})
	if err != nil || record.State != idem.Succeeded || record.Result.Status != 201 {
		t.Errorf("record %+v, %v", record, err)
	}
}

func (f *fixture) requestID(in map[string]any) string {
	claims, err := f.issuer.Verify(in["token"].(string))
	if err != nil {
		f.t.Fatal(err)
	}
	return claims.RequestID
}
