package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// purge asks for now(), which an index can be searched for; clock_timestamp() would read every finished row. Of processing rows the index holds created_at, which
// is over for all of them, so that all are read: they are few.
//
// Renewals leave expires_at as it is. The retention of a processing row is therefore what its last claim put between expires_at and its own time, which is at most
// expires_at - created_at, and exactly that unless it was taken over: such a row stays a little longer, never shorter.
const purge = `
WITH finished AS (
    DELETE FROM {{table}} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {{table}}
        WHERE status IN ('succeeded', 'failed', 'cancelled') AND expires_at <= now() AND format <= {{format}}
        ORDER BY expires_at LIMIT $1::bigint
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
), abandoned AS (
    DELETE FROM {{table}} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {{table}}
        WHERE status = 'processing' AND created_at <= now() AND biz_type = ANY ($2::text[]) AND format <= {{format}}
            AND lease_until <= now() AND expires_at <= now() AND updated_at + (expires_at - created_at) <= now()
        ORDER BY updated_at LIMIT $1::bigint - (SELECT count(*) FROM finished)
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
) SELECT (SELECT count(*) FROM finished) + (SELECT count(*) FROM abandoned)`

// Purge deletes up to limit records whose retention is over: finished ones, those that ended first first, and then, of the business types in abandoned, those
// that are processing with their lease run out. Rows that somebody holds are passed by, and so are those of a newer format.
func (s *Store) Purge(ctx context.Context, abandoned []string, limit int) (int, error) {
	if limit <= 0 {
		return 0, ctx.Err()
	}
	var deleted int64
	err := s.transact(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.purge, limit, typeColumns(abandoned)).QueryRow(func(row pgx.Row) error { return row.Scan(&deleted) })
	})
	if err != nil {
		return 0, failed(ctx, "purge", err)
	}
	return int(deleted), nil
}

func typeColumns(types []string) []string {
	columns := make([]string, len(types))
	for i, businessType := range types {
		columns[i] = idem.Column(businessType)
	}
	return columns
}
