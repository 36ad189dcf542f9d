package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/idemkit/idem"
)

// asking is how one gets a claim: Claim, Spend of some token, ClaimTx.
type asking func(context.Context, idem.Request) (idem.Answer, error)

func refusalChecks() []check {
	return []check{
		{"refusal/an invalid request writes nothing", func(f fixture) { f.refusesInvalid(f.Store.Claim) }},
		{"refusal/a cancelled context", cancelledContext},
	}
}

// refusesInvalid asks with one thing wrong at a time, on an absent key and on a lapsed one.
func (f fixture) refusesInvalid(ask asking) {
	f.Helper()
	for name, spoil := range map[string]func(*idem.Request){
		"no type":                       func(q *idem.Request) { q.Key.Type = "" },
		"no id":                         func(q *idem.Request) { q.Key.ID = "" },
		"no owner":                      func(q *idem.Request) { q.Owner = "" },
		"zero lease":                    func(q *idem.Request) { q.Lease = 0 },
		"negative lease":                func(q *idem.Request) { q.Lease = -time.Second },
		"lease below a millisecond":     func(q *idem.Request) { q.Lease = time.Microsecond },
		"zero retention":                func(q *idem.Request) { q.Retention = 0 },
		"negative retention":            func(q *idem.Request) { q.Retention = -time.Hour },
		"retention shorter than lease":  func(q *idem.Request) { q.Retention = q.Lease - 1 },
		"retention as lease, no length": func(q *idem.Request) { q.Lease, q.Retention = 0, 0 },
	} {
		absent, lapsed := request("absent "+name), request("lapsed "+name)
		f.lapsed(lapsed)
		for _, q := range []idem.Request{absent, again(lapsed)} {
			spoil(&q)
			if answer, err := ask(f.Context(), q); !errors.Is(err, idem.ErrInvalid) || answer.Outcome != 0 {
				f.Errorf("%s: outcome %v, %v; want ErrInvalid", name, answer.Outcome, err)
			}
		}
		f.absent(absent)
		f.stands(lapsed, idem.Processing, 1)
	}
}

func cancelledContext(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	fresh := request("2")
	for name, call := range map[string]func() error{
		"Claim":    func() error { _, err := f.Store.Claim(ctx, fresh); return err },
		"Extend":   func() error { _, err := f.Store.Extend(ctx, []idem.Claim{claim}); return err },
		"Complete": func() error { return f.Store.Complete(ctx, claim, result()) },
		"Release":  func() error { return f.Store.Release(ctx, claim, idem.Failed, "") },
		"Lookup":   func() error { _, err := f.Store.Lookup(ctx, q); return err },
		"Ping":     func() error { return f.Store.Ping(ctx) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			f.Errorf("%s: %v, want the context's error", name, err)
		}
	}
	f.absent(fresh)
	f.stands(q, idem.Processing, 1)
	f.won(fresh, 1)
	f.complete(claim, result())
}
