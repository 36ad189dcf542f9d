package shop

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem/stores/pgstore"
)

// OnPostgres returns the shop's tables beside a pgstore ledger on the same pool, and makes those that are missing. Any number of processes may do so at
// once. The pool stays the caller's.
func OnPostgres(ctx context.Context, pool *pgxpool.Pool) (*Storage, error) {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// IF NOT EXISTS does not keep two processes apart: the second one meets the first one's uncommitted catalogue rows.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('idem demo shop', 0))`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("shop: making the tables: %w", err)
	}
	guarded := func(ctx context.Context) (session, error) {
		tx, err := pgstore.Tx(ctx)
		return postgres{tx}, err
	}
	return &Storage{plain: postgres{pool}, guarded: guarded, now: time.Now}, nil
}

// postgres is a pool or a transaction.
type postgres struct {
	conn interface {
		Exec(ctx context.Context, statement string, arguments ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, statement string, arguments ...any) (pgx.Rows, error)
	}
}

func (p postgres) exec(ctx context.Context, statement string, arguments ...any) (int64, error) {
	tag, err := p.conn.Exec(ctx, statement, arguments...)
	return tag.RowsAffected(), err
}

func (p postgres) query(ctx context.Context, statement string, each func(scanner) error, arguments ...any) error {
	rows, err := p.conn.Query(ctx, statement, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
