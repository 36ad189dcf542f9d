package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// Lookup returns the record under the key, else the one that bears the request id. While a transaction works on the key it is processing, with a second of
// lease left, so that waiters wait outside the database.
func (s *Store) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	var seen view
	var busy bool
	err := s.transact(ctx, func(b *pgx.Batch) {
		s.queueWorked(b, q.Key, &busy)
		s.queueLook(b, q, &seen)
	})
	switch {
	case errors.Is(err, idem.ErrFormat):
		return idem.Record{}, err
	case err != nil:
		return idem.Record{}, failed(ctx, "lookup", err)
	case busy && (seen.byKey == nil || seen.byKey.State.Next(idem.Processing)):
		return worker(q, seen.byKey), nil
	case seen.byKey != nil:
		return *seen.byKey, nil
	case seen.byRequestID != nil:
		return *seen.byRequestID, nil
	}
	return idem.Record{}, idem.ErrNotFound
}

// queueWorked asks whether a transaction works on the key. pg_locks shows a bigint lock as its two halves.
func (s *Store) queueWorked(b *pgx.Batch, k idem.Key, busy *bool) {
	lock := uint64(s.keyLock(k))
	tenant, businessType, key := columns(k)
	b.Queue(s.sql.worked, tenant, businessType, key, int64(lock>>32), int64(lock&0xffffffff)).
		QueryRow(func(row pgx.Row) error { return row.Scan(busy) })
}

func (s *Store) queueLook(b *pgx.Batch, q idem.Request, seen *view) {
	b.Queue(s.sql.look, requestIdentity(q)...).Query(seen.reading(q))
}
