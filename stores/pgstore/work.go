package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
)

// ErrNoTx says that Tx was called outside of work guarded by a ledger of this package.
var ErrNoTx = errors.New("pgstore: the context carries no transaction; it must be the one that guarded work was given")

// errGone says that the connection broke during the work, before anything was said about committing.
var errGone = errors.New("the connection of the transaction is gone, and its writes with it")

type contextKey struct{}

// Tx is the transaction of guarded work. It begins when first asked for, and whoever guards the work commits it together with the record or
// rolls it back: its own Commit and Rollback return ErrGuarded. Begin on it makes a savepoint. It runs at READ COMMITTED: a renewal of the claim would make a stricter one fail.
// ErrNoTx where ctx is not that of guarded work; pgx.ErrTxClosed after its end. Like every pgx.Tx it serves one goroutine.
func Tx(ctx context.Context) (pgx.Tx, error) {
	w, ok := ctx.Value(contextKey{}).(*work)
	if !ok {
		return nil, ErrNoTx
	}
	return w.begin(ctx)
}

// work is the transaction of one claim.
type work struct {
	store *Store
	claim idem.Claim
	limit time.Duration
	whole bool // the claim itself is part of the transaction

	mu    sync.Mutex
	conn  *pgxpool.Conn
	tx    pgx.Tx
	ended atomic.Bool
}

// Open puts a transaction that has not begun into the context.
func (s *Store) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	w := &work{store: s, claim: c, limit: limit}
	return context.WithValue(ctx, contextKey{}, w), w
}

func (w *work) begin(ctx context.Context) (pgx.Tx, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended.Load() {
		return nil, pgx.ErrTxClosed
	}
	if w.tx != nil {
		return w.tx, nil
	}
	conn, err := w.store.pool.Acquire(ctx)
	if err != nil {
		return nil, failed(ctx, "begin", err)
	}
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	run(batch, boundIdle, setting(w.limit))
	results := conn.SendBatch(ctx, batch)
	if err := results.Close(); err != nil {
		abort(ctx, conn.Conn())
		conn.Release()
		return nil, failed(ctx, "begin", err)
	}
	w.conn, w.tx = conn, &guardedTx{Tx: results.Tx(), work: w}
	return w.tx, nil
}

// end marks the transaction ended and reports whether it was open until now.
func (w *work) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended.Swap(true)
}

// Rollback undoes the work's writes. A connection on which that is not certain is closed, which has the same effect.
func (w *work) Rollback(ctx context.Context) error {
	if !w.end() || w.conn == nil {
		return nil
	}
	defer w.conn.Release()
	abort(ctx, w.conn.Conn())
	return nil
}

// Complete records the result and commits, in one round trip.
func (w *work) Complete(ctx context.Context, r idem.Result) error {
	if !w.end() {
		return fmt.Errorf("pgstore: complete: %w", pgx.ErrTxClosed)
	}
	if w.conn == nil {
		return w.completeAlone(ctx, r)
	}
	defer w.conn.Release()
	if err := ctx.Err(); err != nil {
		abort(ctx, w.conn.Conn())
		return failed(ctx, "complete", err)
	}
	arguments, err := completeArguments(w.claim, r)
	if err != nil {
		abort(ctx, w.conn.Conn())
		return err
	}
	return w.commit(ctx, arguments)
}

// completeAlone finishes work that wrote nothing through Tx. It is asked once more where the answer was lost, for it recognises itself.
func (w *work) completeAlone(ctx context.Context, r idem.Result) error {
	if err := ctx.Err(); err != nil {
		return failed(ctx, "complete", err)
	}
	err := w.store.Complete(ctx, w.claim, r)
	if answered(err) {
		return err
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	repeated := w.store.Complete(again, w.claim, r)
	if answered(repeated) {
		return repeated
	}
	return fmt.Errorf("%w: %w", idem.ErrOutcomeUnknown, err)
}

// answered reports whether the database said how the finish ended.
func answered(err error) bool {
	return err == nil || errors.Is(err, idem.ErrClaimLost) || errors.Is(err, idem.ErrFormat) || (state(err) != "" && decided(err))
}

func (w *work) commit(ctx context.Context, arguments []any) error {
	conn := w.conn.Conn()
	if conn.IsClosed() {
		return failed(ctx, "complete", errGone)
	}
	passed := false
	batch := &pgx.Batch{}
	run(batch, impatient, setting(lockWait))
	batch.Queue(w.store.sql.complete, arguments...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(new(int64))
		passed = err == nil
		return err
	})
	run(batch, patient)
	run(batch, commit)
	err := conn.SendBatch(ctx, batch).Close()
	if err == nil {
		return nil
	}
	broken := conn.IsClosed() // a link that broke says nothing, whatever the driver makes of it
	abort(ctx, conn)
	switch {
	case broken || !decided(err):
		return w.settle(ctx, err)
	case passed:
		return failed(ctx, "complete", err)
	case state(err) == guardRaised:
		return idem.ErrClaimLost
	case state(err) == lockNotAvailable:
		return w.store.explain(ctx, w.claim, "complete", err, func(idem.Record) bool { return false })
	}
	return failed(ctx, "complete", err)
}
