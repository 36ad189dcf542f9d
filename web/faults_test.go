package web_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

var errAway = errors.New("dial tcp 10.1.2.3:6379: connection refused")

// faults count the calls of a real store and stand in its way.
type faults struct {
	mu     sync.Mutex
	away   bool
	calls  map[string]int
	total  int
	before map[string]func(context.Context) error // by method
	after  map[string]func(context.Context) error // the call was done, and its answer gets lost
}

func newFaults() *faults {
	return &faults{calls: map[string]int{}, before: map[string]func(context.Context) error{}, after: map[string]func(context.Context) error{}}
}

func (f *faults) setAway(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *faults) onBefore(method string, do func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[method] = do
}

func (f *faults) onAfter(method string, do func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after[method] = do
}

// setFault makes one method fail before it does anything; nil ends that.
func (f *faults) setFault(method string, err error) {
	if err == nil {
		f.onBefore(method, nil)
		return
	}
	f.onBefore(method, func(context.Context) error { return err })
}

func (f *faults) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *faults) all() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

func (f *faults) enter(ctx context.Context, method string) error {
	f.mu.Lock()
	f.calls[method]++
	f.total++
	away, before := f.away, f.before[method]
	f.mu.Unlock()
	if away {
		return errAway
	}
	if before != nil {
		return before(ctx)
	}
	return nil
}

func (f *faults) leave(ctx context.Context, method string, err error) error {
	f.mu.Lock()
	after := f.after[method]
	f.mu.Unlock()
	if err == nil && after != nil {
		return after(ctx)
	}
	return err
}

func (f *faults) call(ctx context.Context, method string, do func() error) error {
	if err := f.enter(ctx, method); err != nil {
		return err
	}
	return f.leave(ctx, method, do())
}

// records are the methods that store and ledger share, around a real one.
type records struct {
	*faults
	real *memstore.Store
}

func (s records) Claim(ctx context.Context, q idem.Request) (a idem.Answer, err error) {
	err = s.call(ctx, "Claim", func() error { a, err = s.real.Claim(ctx, q); return err })
	return a, err
}

func (s records) Extend(ctx context.Context, claims []idem.Claim) (lost []int, err error) {
	err = s.call(ctx, "Extend", func() error { lost, err = s.real.Extend(ctx, claims); return err })
	return lost, err
}

func (s records) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	return s.call(ctx, "Complete", func() error { return s.real.Complete(ctx, c, r) })
}

func (s records) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	return s.call(ctx, "Release", func() error { return s.real.Release(ctx, c, as, reason) })
}

func (s records) Lookup(ctx context.Context, q idem.Request) (r idem.Record, err error) {
	err = s.call(ctx, "Lookup", func() error { r, err = s.real.Lookup(ctx, q); return err })
	return r, err
}

func (s records) Ping(ctx context.Context) error {
	return s.call(ctx, "Ping", func() error { return s.real.Ping(ctx) })
}

// faultyStore is a real entrance store with faults in its way.
type faultyStore struct{ records }

func (s *faultyStore) Issue(ctx context.Context, all []idem.Token) error {
	return s.call(ctx, "Issue", func() error { return s.real.Issue(ctx, all) })
}

func (s *faultyStore) Spend(ctx context.Context, id string, q idem.Request) (a idem.Answer, err error) {
	err = s.call(ctx, "Spend", func() error { a, err = s.real.Spend(ctx, id, q); return err })
	return a, err
}

func (s *faultyStore) Restore(ctx context.Context, c idem.Claim, r idem.Result) error {
	return s.call(ctx, "Restore", func() error { return s.real.Restore(ctx, c, r) })
}

func (s *faultyStore) Scan(ctx context.Context, visit func(idem.Record, string) error) error {
	return s.call(ctx, "Scan", func() error { return s.real.Scan(ctx, visit) })
}

func (s *faultyStore) Drop(ctx context.Context, r idem.Record) (dropped bool, err error) {
	err = s.call(ctx, "Drop", func() error { dropped, err = s.real.Drop(ctx, r); return err })
	return dropped, err
}

// faultyLedger is a real ledger with faults in its way.
type faultyLedger struct {
	records
	abandoned atomic.Pointer[[]string] // what the last Purge was told
}

func (l *faultyLedger) Name() string { return l.real.Name() }

func (l *faultyLedger) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	ctx, tx := l.real.Open(ctx, c, limit)
	return ctx, faultyTx{tx, l.faults}
}

func (l *faultyLedger) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (a idem.Answer, txctx context.Context, tx idem.Tx, err error) {
	err = l.call(ctx, "ClaimTx", func() error { a, txctx, tx, err = l.real.ClaimTx(ctx, q, limit); return err })
	if tx != nil {
		tx = faultyTx{tx, l.faults}
	}
	return a, txctx, tx, err
}

func (l *faultyLedger) Purge(ctx context.Context, abandoned []string, limit int) (n int, err error) {
	l.abandoned.Store(&abandoned)
	err = l.call(ctx, "Purge", func() error { n, err = l.real.Purge(ctx, abandoned, limit); return err })
	return n, err
}

func (l *faultyLedger) Find(ctx context.Context, q idem.Query) (found []idem.Record, err error) {
	err = l.call(ctx, "Find", func() error { found, err = l.real.Find(ctx, q); return err })
	return found, err
}

func (l *faultyLedger) Fence(ctx context.Context) (n int64, err error) {
	err = l.call(ctx, "Fence", func() error { n, err = l.real.Fence(ctx); return err })
	return n, err
}

type faultyTx struct {
	idem.Tx
	faults *faults
}

func (t faultyTx) Complete(ctx context.Context, r idem.Result) error {
	return t.faults.call(ctx, "Tx.Complete", func() error { return t.Tx.Complete(ctx, r) })
}

func (t faultyTx) Rollback(ctx context.Context) error {
	return t.faults.call(ctx, "Tx.Rollback", func() error { return t.Tx.Rollback(ctx) })
}
