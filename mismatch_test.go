package idem_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// powertools-lambda-java#2260: the fast path skipped the payload check. Whichever way the first is found, running or done, another payload is told so.
func TestMismatchOnEveryPath(t *testing.T) {
	t.Parallel()
	small, large := succeed("receipt"), succeed(string(bytes.Repeat([]byte("x"), 20<<10)))
	unkept := &counted{ending: idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201}}}
	for name, c := range map[string]struct {
		have    layers
		first   *counted
		change  func(*idem.Call)
		between func(*rig)
	}{
		"the entrance has the result":               {have: both, first: small},
		"the entrance knows, the ledger has it":     {have: both, first: large},
		"nobody keeps it":                           {have: both, first: unkept},
		"nobody keeps it, no ledger":                {have: entranceOnly, first: unkept},
		"nobody keeps it, ledger alone":             {have: ledgerOnly, first: unkept},
		"no ledger":                                 {have: entranceOnly, first: small},
		"ledger alone":                              {have: ledgerOnly, first: small},
		"the entrance forgot":                       {have: both, first: small, between: func(r *rig) { r.entrance.Forget() }},
		"the entrance is away":                      {have: both, first: small, between: func(r *rig) { r.entrance.away.Store(true) }},
		"the ledger is away":                        {have: both, first: small, between: func(r *rig) { r.ledger.away.Store(true) }},
		"expired token":                             {have: both, first: small, change: lookOnly},
		"expired token, the ledger has it":          {have: both, first: large, change: lookOnly},
		"expired token, forgotten":                  {have: both, first: small, change: lookOnly, between: func(r *rig) { r.entrance.Forget() }},
		"expired token, no ledger":                  {have: entranceOnly, first: small, change: lookOnly},
		"same transaction":                          {have: both, first: small, change: sameTx},
		"same transaction, forgotten":               {have: both, first: small, change: sameTx, between: func(r *rig) { r.entrance.Forget() }},
		"business key beside the token":             {have: both, first: small, change: businessKey},
		"business key beside the token, away":       {have: both, first: small, change: businessKey, between: func(r *rig) { r.entrance.away.Store(true) }},
		"guarded by key":                            {have: both, first: small, change: keyAlone},
		"guarded by key, no ledger":                 {have: entranceOnly, first: small, change: keyAlone},
		"another's shared business key, other case": {have: ledgerOnly, first: small, change: func(c *idem.Call) { keyAlone(c); c.Shared, c.Subject = true, "bob" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, second := newRig(t, c.have), succeed("second")
			call := r.order(t, "request-1")
			if c.change == nil {
				c.change = func(*idem.Call) {}
			}
			first := call
			c.change(&first)
			first.LookOnly = false
			r.must(t, first, c.first.work)
			drain(t, r.Engine)
			if c.between != nil {
				c.between(r)
			}
			c.change(&call)
			reply, err := r.Do(t.Context(), payload(noWait(call), "two apples"), second.work)
			if !errors.Is(err, idem.ErrPayloadMismatch) || len(reply.Result.Body) > 0 || second.runs.Load() != 0 {
				t.Errorf("%+v, %v, %d runs; want a mismatch", reply, err, second.runs.Load())
			}
		})
	}
}

func lookOnly(c *idem.Call)    { c.LookOnly = true }
func sameTx(c *idem.Call)      { c.SameTx = true }
func businessKey(c *idem.Call) { c.Key = idem.K("order.create", "A-1") }
func keyAlone(c *idem.Call)    { c.TokenID, c.Key.Scope, c.RequestID = "", "", "" }

// overtaken is a store in which somebody with another payload is quicker than everybody who waits for a failure.
type overtaken struct {
	*memstore.Store
	next idem.Request
	done bool
	turn *sync.Mutex // nobody comes between the release and the quicker one
}

func (s overtaken) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.Claim(ctx, q)
}

func (s overtaken) Spend(ctx context.Context, id string, q idem.Request) (idem.Answer, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Store.Spend(ctx, id, q)
}

func (s overtaken) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.Store.Release(ctx, c, as, reason); err != nil {
		return err
	}
	answer, err := s.Store.Claim(ctx, s.next)
	if err != nil || !s.done {
		return err
	}
	return s.Complete(ctx, answer.Claim, succeed("corrected").ending.Result)
}

// One that waits has its payload looked at again when it is its turn: the first failed, and the corrected payload was quicker.
func TestMismatchAfterWaiting(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"the corrected one is done": true, "the corrected one runs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyLayer(t, func(t *testing.T, have layers) {
				r, failing, stale := &rig{}, hold(end(idem.Failed).ending), succeed("stale")
				quick := overtaken{Store: memstore.New(memstore.Options{Forgetful: have == entranceOnly}), done: done, turn: &sync.Mutex{}}
				switch have {
				case both:
					r.entrance = &entrance{Store: memstore.New(memstore.Options{Forgetful: true})}
				case entranceOnly:
					r.entrance = &entrance{Store: quick.Store}
				case ledgerOnly:
				}
				call := r.order(t, "request-1")
				quick.next = payload(call, "two apples").Request
				quick.next.Owner = idem.NewOwner()
				r.Engine = quick.engine(t, r, have)
				first := r.goDo(t.Context(), call, failing.work)
				await(t, failing.started, "the first")
				var waiting []<-chan answered
				for range 5 {
					waiting = append(waiting, r.goDo(t.Context(), call, stale.work))
				}
				close(failing.release)
				await(t, first, "the first answer")
				for _, answers := range waiting {
					if a := await(t, answers, "a waiter"); !errors.Is(a.err, idem.ErrPayloadMismatch) || len(a.reply.Result.Body) > 0 {
						t.Errorf("a waiter with the first payload: %+v; want a mismatch", a)
					}
				}
				if stale.runs.Load() != 0 {
					t.Error("a waiter ran beside the corrected one")
				}
			})
		})
	}
}

func (s overtaken) engine(t *testing.T, r *rig, have layers) *idem.Engine {
	t.Helper()
	config := idem.EngineConfig{Ledger: s}
	switch have {
	case both:
		config.Store = r.entrance
	case entranceOnly:
		config = idem.EngineConfig{Store: s}
	case ledgerOnly:
	}
	engine, err := idem.NewEngine(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drain(t, engine) })
	return engine
}
