package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// ErrNoTx says that Tx was called outside of work guarded by a ledger of this package.
var ErrNoTx = errors.New("pgstore: the context carries no transaction; it must be the one that guarded work was given")

// errGone says that the connection broke during the work, before anything was said about committing.
var errGone = errors.New("the connection of the transaction is gone, and its writes with it")

type contextKey struct{}

// Tx is the transaction of guarded work. It begins when first asked for, and whoever guards the work commits it together with the record or
// rolls it back: its own Commit and Rollback return ErrGuarded. Begin on it makes a savepoint. It runs at READ COMMITTED: a renewal of the claim would make a stricter one fail.
// ErrNoTx where ctx is not that of guarded work; pgx.ErrTxClosed after its end. Like every pgx.Tx it serves one goroutine; one that outlives the work is refused, and a
// statement that is under way when the work ends is part of it.
//
// COMMIT and ROLLBACK as the text of a statement are not looked for. They are the work's own responsibility: what it wrote before is committed or gone, what it writes
// afterwards commits statement by statement, and the record is not part of it. Do not send them.
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

	span span
	mu   sync.Mutex // of what follows, until the span's end is quiet
	loan loan
	tx   pgx.Tx
}

// Open puts a transaction that has not begun into the context.
func (s *Store) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	w := &work{store: s, claim: c, limit: limit}
	return context.WithValue(ctx, contextKey{}, w), w
}

func (w *work) begin(ctx context.Context) (pgx.Tx, error) {
	if !w.span.enter() {
		return nil, pgx.ErrTxClosed
	}
	defer w.span.leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tx != nil {
		return w.tx, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.span.cutBy(cancel)
	borrowed, err := w.store.source.borrow(ctx)
	if err != nil {
		return nil, failed(ctx, "begin", err)
	}
	tx, err := beginOn(ctx, borrowed, w.limit, nil)
	if err != nil {
		borrowed.rollback(ctx)
		borrowed.release()
		return nil, failed(ctx, "begin", err)
	}
	w.has(borrowed, tx)
	return w.tx, nil
}

// has gives the work its transaction.
func (w *work) has(borrowed loan, tx pgx.Tx) {
	w.loan, w.tx = borrowed, &guardedTx{Tx: tx, span: &w.span}
	w.span.cutBy(func() { hangUp(tx.Conn()) })
}

// beginSQL is the transaction as database/sql has it.
func (w *work) beginSQL(ctx context.Context) (DBTX, error) {
	_, err := w.begin(ctx)
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return nil, sql.ErrTxDone
	case err != nil:
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return lent{w.loan.(*sqlLoan).tx}, nil
}

// Rollback undoes the work's writes. A connection on which that is not certain is closed, which has the same effect. What is under way fails.
func (w *work) Rollback(ctx context.Context) error {
	quiet, first := w.span.end()
	if !first {
		return nil
	}
	w.span.interrupt()
	if !await(ctx, quiet) {
		go w.abandon(quiet)
		return failed(ctx, "rollback", ctx.Err())
	}
	w.undo(ctx)
	return nil
}

func (w *work) undo(ctx context.Context) {
	if w.loan == nil {
		return
	}
	w.loan.rollback(ctx)
	w.loan.release()
}

// abandon undoes once nobody uses the connection any more.
func (w *work) abandon(quiet <-chan struct{}) {
	<-quiet
	w.undo(context.Background())
}

// Complete records the result and commits. It waits for what is under way as long as ctx allows.
func (w *work) Complete(ctx context.Context, r idem.Result) error {
	quiet, first := w.span.end()
	switch {
	case !first:
		return fmt.Errorf("pgstore: complete: %w", pgx.ErrTxClosed)
	case !await(ctx, quiet):
		w.span.interrupt()
		go w.abandon(quiet)
		return failed(ctx, "complete", ctx.Err())
	case w.loan == nil:
		return w.completeAlone(ctx, r)
	}
	defer w.loan.release()
	if err := ctx.Err(); err != nil {
		w.loan.rollback(ctx)
		return failed(ctx, "complete", err)
	}
	arguments, err := completeArguments(w.claim, r)
	if err != nil {
		w.loan.rollback(ctx)
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
	passed := false
	batch := &pgx.Batch{}
	w.store.queueComplete(batch, arguments, &passed)
	broken, err := w.loan.commit(ctx, batch)
	if err == nil {
		return nil
	}
	w.loan.rollback(ctx)
	switch {
	case errors.Is(err, errGone):
		return failed(ctx, "complete", err)
	case broken || !decided(err): // a link that broke says nothing, whatever the driver makes of it
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

// queueComplete adds the statements that record a success inside a transaction; passed tells whether the record was written.
func (s *Store) queueComplete(b *pgx.Batch, arguments []any, passed *bool) {
	run(b, impatient, setting(lockWait))
	b.Queue(s.sql.complete, arguments...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(new(int64))
		*passed = err == nil
		return err
	})
	run(b, patient)
}
