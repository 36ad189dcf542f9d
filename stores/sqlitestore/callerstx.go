package sqlitestore

import (
	"context"
	"database/sql"
)

// stands reports whether a caller's transaction is still open in SQLite, and ends it for database/sql where it is not: each statement would commit by itself.
func (t *transaction) stands(ctx context.Context) bool {
	if t.alive(ctx) {
		return true
	}
	_ = t.Rollback() // of what the question began
	return false
}

// plain is the caller's transaction as fn has it: without what ends it, and for as long as it stands.
type plain struct{ tx *transaction }

func (p plain) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if !p.tx.stands(ctx) {
		return nil, ErrWorkEnded
	}
	return p.tx.ExecContext(ctx, query, args...)
}

func (p plain) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !p.tx.stands(ctx) {
		return nil, ErrWorkEnded
	}
	return p.tx.QueryContext(ctx, query, args...)
}

// QueryRowContext carries an error to Scan, as database/sql makes it: sql.ErrTxDone where the transaction is over.
func (p plain) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	p.tx.stands(ctx)
	return p.tx.QueryRowContext(ctx, query, args...)
}

func (p plain) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if !p.tx.stands(ctx) {
		return nil, ErrWorkEnded
	}
	return p.tx.PrepareContext(ctx, query)
}
