package web_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// Where a route of the action has a resolver, a service's attempt waits for its word like anybody's.
func TestServicesAskTheResolver(t *testing.T) {
	t.Parallel()
	made := idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Body: []byte("made"), Kept: true}}
	for name, c := range map[string]struct {
		says  idem.Ending
		fails error
		code  string // "": replayed; "accepted"
		then  string // the code of the next call, likewise
	}{
		"nothing happened": {says: idem.Ending{State: idem.Failed}, code: "accepted", then: web.InProgress},
		"it is done":       {says: made},
		"not to be shown":  {says: idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201}}, code: web.AlreadyDone, then: web.AlreadyDone},
		"cancelled":        {says: idem.Ending{State: idem.Cancelled}, code: web.Cancelled, then: web.Cancelled},
		"it cannot say":    {fails: errors.New("10.1.2.3 is away"), code: web.StoreUnavailable, then: web.StoreUnavailable},
		"nonsense":         {code: web.StoreUnavailable, then: web.StoreUnavailable},
		"a panic":          {fails: http.ErrAbortHandler, code: "panic", then: "panic"},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), withServices)
				asked := 0
				guarded := f.guard.Token("order.create", web.Resolver(func(ctx context.Context, claim idem.Claim) (idem.Ending, error) {
					if asked++; claim.Attempt != asked+1 || ctx.Err() != nil {
						t.Errorf("asked %d times, for attempt %d, %v", asked, claim.Attempt, ctx.Err())
					}
					if errors.Is(c.fails, http.ErrAbortHandler) {
						panic(c.fails)
					}
					return c.says, c.fails
				}))(f.handler)
				f.handler.then = unknown
				in := f.grant()
				executed(t, f.do(guarded, f.order(in["token"].(string))), 504)
				f.tells(in, c.code)
				f.settle()
				f.tells(in, c.then)
				if c.code == "" {
					if rec := f.do(guarded, f.order(in["token"].(string))); rec.Body.String() != "made" {
						t.Errorf("the route answered %d %s", rec.Code, rec.Body)
					}
				}
				accepts(t, f.service("consume", f.grant()), 1) // a first attempt has nothing to ask for
			})
		}
	}
}

// tells checks what consume answers: "" is a replay.
func (f *fixture) tells(in map[string]any, code string) {
	t := f.t
	t.Helper()
	switch code {
	case "panic":
		defer func() {
			if recover() == nil {
				t.Error("it went on")
			}
		}()
		f.service("consume", in)
	case "accepted":
		accepts(t, f.service("consume", in), 2)
	case "":
		if got := ok(t, f.service("consume", in)); got.Outcome != "replayed" || got.Response.Status != 201 {
			t.Errorf("answered %+v", got)
		}
	default:
		refused(t, f.service("consume", in), allCodes()[code], code)
	}
}
