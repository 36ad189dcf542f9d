package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// Extend renews leases with one statement, on a connection of its own: while the work has all connections of the pool, its leases must not run out.
// A row that somebody is writing at this moment, as who takes over while it works, is left to the next renewal, with an *idem.PartError.
func (s *Store) Extend(ctx context.Context, claims []idem.Claim) (lost []int, err error) {
	if len(claims) == 0 {
		return nil, ctx.Err()
	}
	arguments := extendArguments(claims)
	var locked []int
	err = s.renewals.use(ctx, func(conn *pgx.Conn) error {
		lost, locked = lost[:0], locked[:0]
		return transactOn(ctx, conn, func(b *pgx.Batch) {
			b.Queue(s.sql.extend, arguments...).Query(positions(&lost, &locked))
		})
	})
	switch {
	case err != nil:
		return nil, failed(ctx, "extend", err)
	case len(locked) > 0:
		return lost, &idem.PartError{Unasked: locked, Err: errRowLocked}
	}
	return lost, nil
}

var errRowLocked = errors.New("pgstore: extend: somebody is writing the row")

func extendArguments(claims []idem.Claim) []any {
	n := len(claims)
	tenants, types, keys, owners := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	attempts, leases := make([]int32, n), make([]int64, n)
	for i, c := range claims {
		tenants[i], types[i], keys[i] = columns(c.Key)
		owners[i], attempts[i], leases[i] = idem.Column(c.Owner), int32(c.Attempt), microseconds(c.Lease)
	}
	return []any{tenants, types, keys, owners, attempts, leases}
}

// positions collects WITH ORDINALITY's numbers, which count from 1, as indexes.
func positions(lost, locked *[]int) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var position int
			var gone bool
			if err := rows.Scan(&position, &gone); err != nil {
				return err
			}
			into := locked
			if gone {
				into = lost
			}
			*into = append(*into, position-1)
		}
		return rows.Err()
	}
}
