package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// draw names the sequence as a literal; the names in it have no quotes of their own.
const draw = `SELECT nextval('{{fence}}'::regclass)`

// Fence draws from a sequence beside the table. It is drawn in a transaction, so that the commit has made durable what no restart may draw again.
func (s *Store) Fence(ctx context.Context) (int64, error) {
	var number int64
	err := s.transact(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.draw).QueryRow(func(row pgx.Row) error { return row.Scan(&number) })
	})
	if err != nil {
		return 0, failed(ctx, "fence", err)
	}
	return number, nil
}
