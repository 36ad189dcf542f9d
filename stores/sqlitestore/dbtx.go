package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// DBTX is the work's transaction as the work may use it: as sqlc's DBTX, without commit and rollback, which are the guard's. One goroutine at a time.
type DBTX interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// Tx returns the transaction of the work whose context this is, which commits together with the work's record or not at all. It begins
// with the first call, waiting for other writers as long as ctx allows, and keeps every other writer waiting until the work ends; do what is
// slow before. Later calls return the same transaction. The transaction does not end with ctx.
//
// ErrNoWork; ErrWorkEnded when the work is over or SQLite undid the transaction; ErrNested when work around this one has its transaction
// open; idem.ErrClaimLost when somebody else has the claim by now.
func Tx(ctx context.Context) (DBTX, error) {
	w := workIn(ctx)
	if w == nil {
		return nil, ErrNoWork
	}
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	defer w.give()
	if w.over != nil {
		return nil, w.over
	}
	if w.tx == nil {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
	}
	return lent{w}, nil
}

// lent is the DBTX that work gets: its transaction, one statement at a time.
type lent struct{ work *work }

// use gives the turn to one statement. done must be called unless there is an error.
func (w *work) use(ctx context.Context) (done func(), err error) {
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	if w.over == nil && !w.tx.alive(ctx) {
		w.undo(fmt.Errorf("%w: SQLite rolled it back, or the work ended it by a statement", ErrWorkEnded))
		w.store.leave(ctx)
	}
	if w.over != nil {
		defer w.give()
		return nil, w.over
	}
	return func() {
		w.used = time.Now()
		if w.idle != nil {
			w.idle.Reset(w.limit)
		}
		w.give()
	}, nil
}

func (s lent) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	done, err := s.work.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.work.tx.ExecContext(ctx, query, args...)
}

func (s lent) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	done, err := s.work.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.work.tx.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the rows are the caller's, and the transaction closes them at the latest
}

// QueryRowContext carries an error to Scan, as database/sql makes it: sql.ErrTxDone after the end.
func (s lent) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	done, err := s.work.use(ctx)
	if err == nil {
		defer done()
	}
	return s.work.tx.QueryRowContext(ctx, query, args...)
}

func (s lent) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	done, err := s.work.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.work.tx.PrepareContext(ctx, query) //nolint:sqlclosecheck // the statement is the caller's, and the transaction closes it at the latest
}
