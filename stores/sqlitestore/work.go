package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
)

var (
	// ErrNoWork says that the context is not of work that this package opened.
	ErrNoWork = errors.New("sqlitestore: the context carries no work of this ledger")
	// ErrWorkEnded says that the work's transaction is over: completed, rolled back, or undone by SQLite or for standing idle.
	ErrWorkEnded = errors.New("sqlitestore: the work's transaction has ended")
)

// work is what runs under one claim, and its transaction. It implements idem.Tx.
type work struct {
	store  *Store
	claim  idem.Claim
	parent *work         // work in whose context this was opened
	limit  time.Duration // how long the transaction may stand idle; 0 or less: for ever
	fresh  bool          // the claim is in the transaction too

	turn chan struct{} // holds one token; whoever has it may use what follows
	tx   *transaction  // nil until the work first asks
	over error         // why there is no transaction any more
	used time.Time
	idle *time.Timer

	isOpen atomic.Bool
}

type workKey struct{}

func newWork(ctx context.Context, s *Store, c idem.Claim, limit time.Duration) *work {
	w := &work{store: s, claim: c, limit: limit, parent: workIn(ctx), turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

func (w *work) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, w)
}

func workIn(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// openIn is the work of this context, or of one around it, whose transaction is open.
func (s *Store) openIn(ctx context.Context) *work {
	for w := workIn(ctx); w != nil; w = w.parent {
		if w.store == s && w.isOpen.Load() {
			return w
		}
	}
	return nil
}

// Open returns the context that Tx takes the work's transaction from. The transaction begins there, not here: work that never asks for one
// keeps nobody waiting. Completing such work is Complete in a transaction of its own.
func (s *Store) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	w := newWork(ctx, s, c, limit)
	return w.within(ctx), w
}

// ClaimTx waits in the process for other writers, and in SQLite for other processes, as long as ctx allows; then it is Busy. What is decided without a
// transaction is answered at once. The transaction stands in everybody's way until it is completed or rolled back: give it a limit.
func (s *Store) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	answer, err := s.look(ctx, q)
	if err != nil || answer.Outcome != idem.Won {
		return answer, nil, nil, err
	}
	switch err := s.enter(ctx, false, nil); {
	case errors.Is(err, ErrNested):
		return idem.Answer{}, nil, nil, err
	case err != nil:
		return busy(q), nil, nil, nil //nolint:nilerr // ctx ended before the writer was free, which is an answer
	}
	answer, w, err := s.claimHolding(ctx, q, limit)
	switch {
	case w != nil:
		return answer, w.within(ctx), w, nil
	case isBusy(err) || (err != nil && ctx.Err() != nil):
		return busy(q), nil, nil, nil //nolint:nilerr // as above, by another process's writer
	}
	return answer, nil, nil, err
}

// claimHolding leaves the gate unless it returns work.
func (s *Store) claimHolding(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, *work, error) {
	var tx *transaction
	err := untilFree(ctx, func() (err error) {
		tx, err = s.beginHolding(ctx)
		return err
	})
	if err != nil {
		s.leave(ctx)
		return idem.Answer{}, nil, err
	}
	answer, err := s.claim(ctx, tx, q)
	if err != nil || answer.Outcome != idem.Won {
		tx.rollback()
		s.leave(ctx)
		return answer, nil, err
	}
	w := newWork(ctx, s, answer.Claim, limit)
	w.fresh = true
	<-w.turn
	defer w.give()
	w.opened(tx)
	return answer, w, nil
}

// beginHolding begins a transaction that may stand for long. Renewals that wait are committed before it: it may be rolled back.
func (s *Store) beginHolding(ctx context.Context) (*transaction, error) {
	if len(s.gate.renewals()) > 0 {
		if err := s.writeHolding(ctx, func(*transaction) error { return nil }); err != nil {
			return nil, err
		}
	}
	return s.begin(ctx)
}

// take waits for the turn.
func (w *work) take(ctx context.Context) error {
	select {
	case <-w.turn:
		return nil
	default:
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *work) give() { w.turn <- struct{}{} }

// begin begins the transaction of a claim that is committed already.
func (w *work) begin(ctx context.Context) error {
	if err := w.store.enter(ctx, false, nil); err != nil {
		return err
	}
	tx, err := w.store.beginHolding(ctx)
	if err != nil {
		w.store.leave(ctx)
		return err
	}
	f, err := w.store.find(ctx, tx, w.claim.Request)
	if err == nil && (f.byKey == nil || f.byKey.state != idem.Processing || !f.byKey.heldBy(w.claim)) {
		err = idem.ErrClaimLost
	}
	if err != nil {
		tx.rollback()
		w.store.leave(ctx)
		return err
	}
	w.opened(tx)
	return nil
}

// opened starts to watch the transaction. The caller has the turn.
func (w *work) opened(tx *transaction) {
	w.tx = tx
	w.isOpen.Store(true)
	w.store.gate.opened(w)
	w.used = time.Now()
	if w.limit > 0 {
		w.idle = time.AfterFunc(w.limit, w.expire)
	}
}

// expire rolls back a transaction that stands idle, so that frozen work does not stop every writer.
func (w *work) expire() {
	select {
	case <-w.turn:
	default:
		return // in use; the timer starts again afterwards
	}
	defer w.give()
	if w.over != nil {
		return
	}
	if left := w.limit - time.Since(w.used); left > 0 {
		w.idle.Reset(left)
		return
	}
	w.undo(fmt.Errorf("%w: it stood idle for %v", ErrWorkEnded, w.limit))
	w.store.leave(context.Background())
}

// undo rolls back and says why. The gate is still the work's.
func (w *work) undo(why error) {
	w.tx.rollback()
	w.closed(why)
}

func (w *work) closed(why error) {
	w.over = why
	w.isOpen.Store(false)
	if w.idle != nil {
		w.idle.Stop()
	}
}
