package sqlitestore

import (
	"context"

	"github.com/idemkit/idem"
)

const (
	purge = `DELETE FROM "{{table}}" WHERE rowid IN (SELECT rowid FROM "{{table}}"
		WHERE status <> 'processing' AND expires_at <= ? AND format <= ? ORDER BY expires_at LIMIT ?)`

	abandoned = `DELETE FROM "{{table}}" WHERE rowid IN (SELECT rowid FROM "{{table}}"
		WHERE status = 'processing' AND updated_at <= ?1 AND ifnull(lease_until, 0) <= ?1 AND expires_at <= ?1 AND format <= ?2
			AND biz_type IN (SELECT value FROM json_each(?4)) ORDER BY updated_at LIMIT ?3)`
)

// Purge deletes up to limit records whose retention is over: finished ones, those that ended first first, and then, of the business types in abandoned, those
// that are processing with their lease run out. Up to limit too but not counted, it erases the headers and bodies of results that
// are kept no longer. It takes its turn among the writers and holds nothing until then. Records of a newer format are left alone.
func (s *Store) Purge(ctx context.Context, abandoned []string, limit int) (int, error) {
	if limit <= 0 {
		return 0, ctx.Err()
	}
	types, err := typeColumns(abandoned)
	if err != nil {
		return 0, err
	}
	var deleted int
	err = s.write(ctx, func(tx *transaction) error {
		deleted, err = s.purge(ctx, tx, types, limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

func (s *Store) purge(ctx context.Context, tx *transaction, types string, limit int) (int, error) {
	now := s.now().UnixMicro()
	finished, err := affected(s.exec(ctx, tx, s.sql.purge, now, idem.Format, limit))
	if err != nil {
		return 0, err
	}
	ran, err := affected(s.exec(ctx, tx, s.sql.abandoned, now, idem.Format, limit-finished, types))
	if err != nil {
		return 0, err
	}
	_, err = s.exec(ctx, tx, s.sql.erase, now, idem.Format, limit)
	return finished + ran, err
}
