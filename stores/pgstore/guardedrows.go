package pgstore

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// guardedRows read from the transaction's connection until it ends.
type guardedRows struct {
	rows pgx.Rows
	span *span
}

// open is what may be read from now; done must follow.
func (r guardedRows) open() (rows pgx.Rows, done func()) {
	if !r.span.enter() {
		return closedRows{}, func() {}
	}
	return r.rows, r.span.leave
}

func (r guardedRows) Close() {
	rows, done := r.open()
	defer done()
	rows.Close()
}

func (r guardedRows) Err() error {
	rows, done := r.open()
	defer done()
	return rows.Err()
}

func (r guardedRows) CommandTag() pgconn.CommandTag {
	rows, done := r.open()
	defer done()
	return rows.CommandTag()
}

func (r guardedRows) FieldDescriptions() []pgconn.FieldDescription {
	rows, done := r.open()
	defer done()
	return rows.FieldDescriptions()
}

func (r guardedRows) Next() bool {
	rows, done := r.open()
	defer done()
	return rows.Next()
}

func (r guardedRows) Scan(dest ...any) error {
	rows, done := r.open()
	defer done()
	return rows.Scan(dest...)
}

func (r guardedRows) Values() ([]any, error) {
	rows, done := r.open()
	defer done()
	return rows.Values()
}

func (r guardedRows) RawValues() [][]byte {
	rows, done := r.open()
	defer done()
	return rows.RawValues()
}

func (r guardedRows) Conn() *pgx.Conn {
	rows, done := r.open()
	defer done()
	return rows.Conn()
}

func (r guardedRows) TypeMap() *pgtype.Map {
	rows, done := r.open()
	defer done()
	return rows.TypeMap()
}

// guardedRow reads when it is scanned.
type guardedRow struct {
	row  pgx.Row
	span *span
}

func (r guardedRow) Scan(dest ...any) error {
	if !r.span.enter() {
		return pgx.ErrTxClosed
	}
	defer r.span.leave()
	return r.row.Scan(dest...)
}

// guardedBatch reads results until the transaction ends; late are those of afterwards.
type guardedBatch struct {
	pgx.BatchResults
	late pgx.BatchResults
	span *span
}

func (r guardedBatch) open() (results pgx.BatchResults, done func()) {
	if !r.span.enter() {
		return r.late, func() {}
	}
	return r.BatchResults, r.span.leave
}

func (r guardedBatch) Exec() (pgconn.CommandTag, error) {
	results, done := r.open()
	defer done()
	return results.Exec()
}

func (r guardedBatch) Query() (pgx.Rows, error) {
	results, done := r.open()
	defer done()
	rows, err := results.Query()
	return guardedRows{rows: rows, span: r.span}, err
}

func (r guardedBatch) QueryRow() pgx.Row {
	results, done := r.open()
	defer done()
	return guardedRow{row: results.QueryRow(), span: r.span}
}

func (r guardedBatch) Close() error {
	results, done := r.open()
	defer done()
	return results.Close()
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
