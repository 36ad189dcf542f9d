package web_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

func TestStoreForgets(t *testing.T) {
	t.Parallel()
	t.Run("before the first, with a ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		token := f.token("order.create").Token
		f.store.real.Forget()
		guarded := f.guard.Token("order.create")(f.handler)
		first := f.do(guarded, f.order(token))
		executed(t, first, 201)
		f.settle()
		f.store.real.Forget()
		repeats(t, f.do(guarded, f.order(token)), first)
		f.settle()
		f.ledger.setAway(true) // the store was repaired
		repeats(t, f.do(guarded, f.order(token)), first)
		f.handler.ran(t, 1)
	})
	t.Run("while the first runs, with a ledger", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T) {
			f := newFixture(t)
			f.handler = held()
			token := f.token("order.create").Token
			guarded := f.guard.Token("order.create")(f.handler)
			first, second := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
			go func() { first <- f.do(guarded, f.order(token)) }()
			<-f.handler.started
			f.store.real.Forget()
			go func() { second <- f.do(guarded, f.order(token)) }()
			synctest.Wait()
			f.store.real.Forget()
			close(f.handler.release)
			answer := <-first
			executed(t, answer, 201)
			repeats(t, <-second, answer)
			f.handler.ran(t, 1)
		})
	})
	t.Run("a spent token, no ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withoutLedger)
		token := f.token("order.create").Token
		guarded := f.guard.Token("order.create")(f.handler)
		executed(t, f.do(guarded, f.order(token)), 201)
		f.store.real.Forget()
		if p := refused(t, f.do(guarded, f.order(token)), 409, web.TokenUsed); p.RetryAfter != 0 {
			t.Errorf("problem %+v", p)
		}
		f.handler.ran(t, 1)
	})
	t.Run("while the first runs, no ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withoutLedger)
		f.handler = held()
		token := f.token("order.create").Token
		guarded := f.guard.Token("order.create")(f.handler)
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- f.do(guarded, f.order(token)) }()
		<-f.handler.started
		f.store.real.Forget()
		close(f.handler.release)
		answer := <-first
		executed(t, answer, 201)
		repeats(t, f.do(guarded, f.order(token)), answer)
	})
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	t.Run("with a ledger", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.store.setAway(true)
		token := f.token("order.create").Token // the signature vouches
		guarded := f.guard.Token("order.create")(f.handler)
		first := f.do(guarded, f.order(token))
		executed(t, first, 201)
		repeats(t, f.do(guarded, f.order(token)), first)
		refused(t, f.do(guarded, f.order(token, body(`{}`))), 422, web.PayloadMismatch)
		f.handler.ran(t, 1)
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withoutLedger)
		token := f.token("order.create").Token
		f.store.setAway(true)
		guarded := f.guard.Token("order.create")(f.handler)
		p := refused(t, f.do(guarded, f.order(token)), 503, web.StoreUnavailable)
		if p.RetryAfter < 1 || strings.Contains(p.Detail, "10.1.2.3") {
			t.Errorf("problem %+v", p)
		}
		refused(t, f.do(f.routes, f.request("/idem/token", "", "")), 503, web.StoreUnavailable)
		f.handler.ran(t, 0)
		f.store.setAway(false)
		executed(t, f.do(guarded, f.order(token)), 201)
	})
}

func TestLedgerAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	guarded := f.guard.Token("order.create")(f.handler)
	keyedRoute := f.guard.Key("refund", web.JSONKey("no"), web.Anonymous())(f.handler)
	first := f.do(guarded, f.order(token))
	executed(t, first, 201)
	executed(t, f.do(keyedRoute, keyed("application/json", `{"no":7}`)), 201)
	f.settle()
	f.ledger.setAway(true)
	repeats(t, f.do(guarded, f.order(token)), first)
	refused(t, f.do(guarded, f.order(f.token("order.create").Token)), 503, web.StoreUnavailable)
	refused(t, f.do(keyedRoute, keyed("application/json", `{"no":7}`)), 503, web.StoreUnavailable)
	f.handler.ran(t, 2)
	fresh := f.token("order.create").Token
	refused(t, f.do(guarded, f.order(fresh)), 503, web.StoreUnavailable)
	f.ledger.setAway(false)
	executed(t, f.do(guarded, f.order(fresh)), 201) // the entrance was given free
}

// A newer version's record is never replayed, never overwritten.
func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	f.store.setFault("Spend", idem.ErrFormat)
	guarded := f.guard.Token("order.create")(f.handler)
	refused(t, f.do(guarded, f.order(token)), 503, web.StoreUnavailable)
	f.handler.ran(t, 0)
}

func TestFinishFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stores  string
		options []web.Option
		fault   func(f *fixture, err error)
		lost    bool // the record was written, and the answer got lost
		retry   int  // runs after the retry
	}{
		"ledger":             {stores: "both", fault: func(f *fixture, err error) { f.ledger.setFault("Tx.Complete", err) }, retry: 2},
		"ledger alone":       {stores: "ledger", fault: func(f *fixture, err error) { f.ledger.setFault("Tx.Complete", err) }, retry: 2},
		"ledger, reply lost": {stores: "both", fault: func(f *fixture, err error) { f.ledger.onAfter("Tx.Complete", lose(err)) }, lost: true, retry: 1},
		"same transaction":   {stores: "both", options: []web.Option{web.SameTx()}, fault: func(f *fixture, err error) { f.ledger.onAfter("Tx.Complete", lose(err)) }, lost: true, retry: 1},
		"store":              {stores: "store", fault: func(f *fixture, err error) { f.store.setFault("Complete", err) }, retry: 2},
		"store, reply lost":  {stores: "store", fault: func(f *fixture, err error) { f.store.onAfter("Complete", lose(err)) }, lost: true, retry: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(c.stores))
				token := f.token("order.create").Token
				guarded := f.guard.Token("order.create", c.options...)(f.handler)
				c.fault(f, errAway)
				p := refused(t, f.do(guarded, f.order(token)), 503, web.OutcomeUnknown)
				if p.RetryAfter < 1 || strings.Contains(p.Detail, "10.1.2.3") {
					t.Errorf("problem %+v", p)
				}
				c.fault(f, nil)
				if !c.lost { // the payload stays bound
					refused(t, f.do(guarded, f.order(token, body(`{}`))), 422, web.PayloadMismatch)
				}
				rec := f.do(guarded, f.order(token))
				if rec.Code != 201 || (rec.Header().Get(replayed) == "true") != c.lost {
					t.Errorf("the retry: %d %s %v", rec.Code, rec.Body, rec.Header())
				}
				f.handler.ran(t, c.retry)
			})
		})
	}
}

func lose(err error) func(context.Context) error { return func(context.Context) error { return err } }
