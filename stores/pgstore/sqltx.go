package pgstore

import (
	"context"
	"database/sql"
	"errors"
)

// ErrNotSQL says that SQLTx was called in work of a ledger that New opened on a pgxpool; its transaction is Tx's.
var ErrNotSQL = errors.New("pgstore: the ledger was not opened by NewSQL; use Tx, or open it on a *sql.DB")

// DBTX is the work's transaction for code on database/sql, as sqlc's DBTX: without commit and rollback, which are the guard's. After the end its methods return
// sql.ErrTxDone.
type DBTX interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// SQLTx is Tx for code on database/sql, in work of a ledger that NewSQL opened: the same transaction, begun by whichever is asked first. ErrNoTx, ErrNotSQL,
// sql.ErrTxDone. Rows must be read or closed before the work ends: with some left open it cannot complete.
func SQLTx(ctx context.Context) (DBTX, error) {
	w, ok := ctx.Value(contextKey{}).(*work)
	if !ok {
		return nil, ErrNoTx
	}
	if _, ok := w.store.source.(*handle); !ok {
		return nil, ErrNotSQL
	}
	return w.beginSQL(ctx)
}

// lent hides what ends the transaction.
type lent struct{ tx *sql.Tx }

func (l lent) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return l.tx.ExecContext(ctx, query, args...)
}

func (l lent) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return l.tx.QueryContext(ctx, query, args...)
}

func (l lent) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return l.tx.QueryRowContext(ctx, query, args...)
}

func (l lent) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return l.tx.PrepareContext(ctx, query)
}
