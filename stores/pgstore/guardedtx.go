package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrGuarded is what Commit and Rollback of the transaction from Tx return. The guard ends it, together with the record; work that must not
// be committed returns an error instead.
var ErrGuarded = errors.New("pgstore: the guard commits or rolls back this transaction, together with the record")

// guardedTx is the transaction as the work sees it. After its end it refuses everything: its connection serves somebody else by then. What Conn and LargeObjects return
// is not watched.
type guardedTx struct {
	pgx.Tx
	span   *span
	nested bool // a savepoint, which the work may end
}

func (t *guardedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if !t.span.enter() {
		return nil, pgx.ErrTxClosed
	}
	defer t.span.leave()
	savepoint, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &guardedTx{Tx: savepoint, span: t.span, nested: true}, nil
}

func (t *guardedTx) Commit(ctx context.Context) error { return t.finish(ctx, t.Tx.Commit) }

func (t *guardedTx) Rollback(ctx context.Context) error { return t.finish(ctx, t.Tx.Rollback) }

func (t *guardedTx) finish(ctx context.Context, end func(context.Context) error) error {
	if !t.span.enter() {
		return pgx.ErrTxClosed
	}
	defer t.span.leave()
	if t.nested {
		return end(ctx)
	}
	return ErrGuarded
}

func (t *guardedTx) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	if !t.span.enter() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	defer t.span.leave()
	return t.Tx.Exec(ctx, sql, arguments...)
}

func (t *guardedTx) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if !t.span.enter() {
		return closedRows{}, pgx.ErrTxClosed
	}
	defer t.span.leave()
	rows, err := t.Tx.Query(ctx, sql, arguments...)
	return guardedRows{rows: rows, span: t.span}, err
}

func (t *guardedTx) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	if !t.span.enter() {
		return closedRows{}
	}
	defer t.span.leave()
	return guardedRow{row: t.Tx.QueryRow(ctx, sql, arguments...), span: t.span}
}

func (t *guardedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	late := pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	if !t.span.enter() {
		return late
	}
	defer t.span.leave()
	return guardedBatch{BatchResults: t.Tx.SendBatch(ctx, b), late: late, span: t.span}
}

func (t *guardedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if !t.span.enter() {
		return 0, pgx.ErrTxClosed
	}
	defer t.span.leave()
	return t.Tx.CopyFrom(ctx, table, columns, source)
}

func (t *guardedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if !t.span.enter() {
		return nil, pgx.ErrTxClosed
	}
	defer t.span.leave()
	return t.Tx.Prepare(ctx, name, sql)
}
