package idem_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// errAway is what a store says that cannot be reached.
var errAway = errors.New("connection refused")

// entrance is a real store that can be told to be away.
type entrance struct {
	*memstore.Store
	away     atomic.Bool
	restored atomic.Int64
}

func (s *entrance) Spend(ctx context.Context, id string, q idem.Request) (idem.Answer, error) {
	if s.away.Load() {
		return idem.Answer{}, errAway
	}
	return s.Store.Spend(ctx, id, q)
}

func (s *entrance) Restore(ctx context.Context, c idem.Claim, r idem.Result) error {
	if s.away.Load() {
		return errAway
	}
	s.restored.Add(1)
	return s.Store.Restore(ctx, c, r)
}

func (s *entrance) Extend(ctx context.Context, claims []idem.Claim) ([]int, error) {
	if s.away.Load() {
		return nil, errAway
	}
	return s.Store.Extend(ctx, claims)
}

func (s *entrance) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	if s.away.Load() {
		return idem.Record{}, errAway
	}
	return s.Store.Lookup(ctx, q)
}

func (s *entrance) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	if s.away.Load() {
		return errAway
	}
	return s.Store.Release(ctx, c, as, reason)
}

// ledger is a real store, used as a ledger, whose commits and answers can be made to fail.
type ledger struct {
	*memstore.Store
	away      atomic.Bool
	slow      time.Duration // how long the answer to a claim takes to arrive
	extending atomic.Bool   // false: renewals do not arrive
	commit    atomic.Pointer[error]
	lookups   atomic.Int64
}

func (l *ledger) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if l.away.Load() {
		return idem.Answer{}, errAway
	}
	answer, err := l.Store.Claim(ctx, q)
	<-time.After(l.slow)
	return answer, err
}

func (l *ledger) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	l.lookups.Add(1)
	if l.away.Load() {
		return idem.Record{}, errAway
	}
	return l.Store.Lookup(ctx, q)
}

func (l *ledger) Extend(ctx context.Context, claims []idem.Claim) ([]int, error) {
	if !l.extending.Load() {
		return nil, errAway
	}
	return l.Store.Extend(ctx, claims)
}

func (l *ledger) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	ctx, tx := l.Store.Open(ctx, c, limit)
	return ctx, failingTx{tx, l}
}

type failingTx struct {
	idem.Tx
	ledger *ledger
}

func (t failingTx) Complete(ctx context.Context, r idem.Result) error {
	if failure := t.ledger.commit.Load(); failure != nil {
		_ = t.Rollback(ctx)
		return *failure
	}
	return t.Tx.Complete(ctx, r)
}

// rig is an engine on real stores that can be broken.
type rig struct {
	*idem.Engine
	entrance *entrance
	ledger   *ledger
	events   chan idem.Event
}

// layers says which stores a rig has.
type layers int

const (
	both layers = iota
	entranceOnly
	ledgerOnly
)

func newRig(t testing.TB, have layers) *rig {
	t.Helper()
	r := &rig{events: make(chan idem.Event, 1000)}
	config := idem.EngineConfig{Observe: func(_ context.Context, e idem.Event) { r.events <- e }}
	if have != ledgerOnly {
		r.entrance = &entrance{Store: memstore.New(memstore.Options{Forgetful: true})}
		config.Store = r.entrance
	}
	if have != entranceOnly {
		r.ledger = &ledger{Store: memstore.New(memstore.Options{})}
		r.ledger.extending.Store(true)
		config.Ledger = r.ledger
	}
	engine, err := idem.NewEngine(config)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = engine
	t.Cleanup(func() { drain(t, engine) })
	return r
}

func drain(t testing.TB, engine *idem.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := engine.Drain(ctx); err != nil {
		t.Errorf("drain: %v", err)
	}
}

// order is a call with a token that the entrance knows.
func (r *rig) order(t testing.TB, requestID string) idem.Call {
	t.Helper()
	key := idem.Key{Type: "order.create", Scope: "anna", ID: requestID}
	if r.entrance != nil {
		token := idem.Token{ID: "jti-" + requestID, Key: key, TTL: time.Hour, Retention: time.Hour}
		if err := r.entrance.Issue(t.Context(), []idem.Token{token}); err != nil {
			t.Fatal(err)
		}
	}
	return idem.Call{
		Request: idem.Request{
			Key: key, Subject: "anna", RequestID: requestID, Fingerprint: []byte("one apple"),
			Lease: time.Minute, Retention: time.Hour,
		},
		TokenID: "jti-" + requestID, Entrance: key, EntranceFor: time.Hour, Wait: 5 * time.Second, Limit: time.Minute,
	}
}

func payload(call idem.Call, fingerprint string) idem.Call {
	call.Fingerprint = []byte(fingerprint)
	return call
}

func noWait(call idem.Call) idem.Call {
	call.Wait = 0
	return call
}

// counted is work that counts how often it ran and ends as told.
type counted struct {
	runs   atomic.Int64
	ending idem.Ending
}

func succeed(body string) *counted {
	return &counted{ending: idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Body: []byte(body), Kept: true}}}
}

func end(state idem.State) *counted {
	return &counted{ending: idem.Ending{State: state, Reason: "told to"}}
}

func (c *counted) work(context.Context) idem.Ending {
	c.runs.Add(1)
	return c.ending
}

// held is work that tells when it has started and goes on when it may.
type held struct {
	started  chan struct{}
	release  chan struct{}
	ending   idem.Ending
	stubborn bool // does not stop when its context ends
	cause    error
}

func hold(ending idem.Ending) *held {
	return &held{started: make(chan struct{}), release: make(chan struct{}), ending: ending}
}

func (h *held) work(ctx context.Context) idem.Ending {
	close(h.started)
	select {
	case <-h.release:
	case <-ctx.Done():
		h.cause = context.Cause(ctx)
		if h.stubborn {
			<-h.release
		}
	}
	return h.ending
}

func stubborn(ending idem.Ending) *held {
	h := hold(ending)
	h.stubborn = true
	return h
}

// bubbled runs a test about leases by a clock of its own, which a busy machine cannot make late.
func bubbled(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// pass lets time go by.
func pass(d time.Duration) { <-time.After(d) }

type answered struct {
	reply idem.Reply
	err   error
}

func (r *rig) goDo(ctx context.Context, call idem.Call, work idem.Work) <-chan answered {
	answers := make(chan answered, 1)
	go func() {
		reply, err := r.Do(ctx, call, work)
		answers <- answered{reply, err}
	}()
	return answers
}

func (r *rig) must(t testing.TB, call idem.Call, work idem.Work) idem.Reply {
	t.Helper()
	reply, err := r.Do(t.Context(), call, work)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return reply
}

func await[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(10 * time.Second):
		t.Fatalf("timed out waiting for %s", what)
		panic("unreachable")
	}
}
