package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrGuarded is what Commit and Rollback of the transaction from Tx return. The guard ends it, together with the record; work that must not
// be committed returns an error instead.
var ErrGuarded = errors.New("pgstore: the guard commits or rolls back this transaction, together with the record")

// guardedTx is the transaction as the work sees it. After its end it refuses everything: its connection serves somebody else by then.
type guardedTx struct {
	pgx.Tx
	work   *work
	nested bool // a savepoint, which the work may end
}

func (t *guardedTx) ended() bool { return t.work.ended.Load() }

func (t *guardedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.ended() {
		return nil, pgx.ErrTxClosed
	}
	savepoint, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &guardedTx{Tx: savepoint, work: t.work, nested: true}, nil
}

func (t *guardedTx) Commit(ctx context.Context) error {
	switch {
	case t.ended():
		return pgx.ErrTxClosed
	case t.nested:
		return t.Tx.Commit(ctx)
	}
	return ErrGuarded
}

func (t *guardedTx) Rollback(ctx context.Context) error {
	switch {
	case t.ended():
		return pgx.ErrTxClosed
	case t.nested:
		return t.Tx.Rollback(ctx)
	}
	return ErrGuarded
}

func (t *guardedTx) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	if t.ended() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.Tx.Exec(ctx, sql, arguments...)
}

func (t *guardedTx) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if t.ended() {
		return closedRows{}, pgx.ErrTxClosed
	}
	return t.Tx.Query(ctx, sql, arguments...)
}

func (t *guardedTx) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	if t.ended() {
		return closedRows{}
	}
	return t.Tx.QueryRow(ctx, sql, arguments...)
}

func (t *guardedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.ended() {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	return t.Tx.SendBatch(ctx, b)
}

func (t *guardedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if t.ended() {
		return 0, pgx.ErrTxClosed
	}
	return t.Tx.CopyFrom(ctx, table, columns, source)
}

func (t *guardedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.ended() {
		return nil, pgx.ErrTxClosed
	}
	return t.Tx.Prepare(ctx, name, sql)
}

// closedRows are the rows of a transaction that has ended.
type closedRows struct{}

func (closedRows) Close()                                       {}
func (closedRows) Err() error                                   { return pgx.ErrTxClosed }
func (closedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (closedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (closedRows) Next() bool                                   { return false }
func (closedRows) Scan(...any) error                            { return pgx.ErrTxClosed }
func (closedRows) Values() ([]any, error)                       { return nil, pgx.ErrTxClosed }
func (closedRows) RawValues() [][]byte                          { return nil }
func (closedRows) Conn() *pgx.Conn                              { return nil }
func (closedRows) TypeMap() *pgtype.Map                         { return pgtype.NewMap() }
