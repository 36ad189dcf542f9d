package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
)

// ClaimTx claims inside the transaction that its work and its completion share: no round trip more than the transaction itself has, and one commit.
// A key, or a request id, that another such transaction works on is Busy at once. limit bounds how long the transaction may stand idle.
func (s *Store) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, nil, nil, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return idem.Answer{}, nil, nil, failed(ctx, "claim", err)
	}
	answer, tx, err := s.claimOn(ctx, conn, q, limit)
	if err != nil || tx == nil {
		abort(ctx, conn.Conn())
		conn.Release()
		if err != nil {
			return idem.Answer{}, nil, nil, failed(ctx, "claim", err)
		}
		return answer, nil, nil, nil
	}
	w := &work{store: s, claim: answer.Claim, limit: limit, whole: true, conn: conn}
	w.tx = &guardedTx{Tx: tx, work: w}
	return answer, context.WithValue(ctx, contextKey{}, w), w, nil
}

// claimOn leaves a transaction open when the claim is won; otherwise tx is nil and what is open must be rolled back.
func (s *Store) claimOn(ctx context.Context, conn *pgxpool.Conn, q idem.Request, limit time.Duration) (idem.Answer, pgx.Tx, error) {
	for {
		found, tx, err := s.beginClaim(ctx, conn, q, limit)
		switch {
		case state(err) == lockNotAvailable:
			return occupied(q, nil), nil, nil
		case err != nil:
			return idem.Answer{}, nil, err
		case found.Outcome != idem.Won:
			return found.Answer, nil, nil
		case found.repeated:
			return found.Answer, tx, nil
		}
		attempt, err := s.takeInside(ctx, conn, q, found.view)
		switch {
		case err == nil:
			return won(q, attempt), tx, nil
		case state(err) == lockNotAvailable:
			return occupied(q, found.byKey), nil, nil
		case !overtaken(err):
			return idem.Answer{}, nil, err
		}
		abort(ctx, conn.Conn())
	}
}

// beginClaim begins the transaction and claims a new key in the same round trip. Without its locks the claim does not stand, even where the insert found the way
// free a moment later: plain claims would wait on it.
func (s *Store) beginClaim(ctx context.Context, conn *pgxpool.Conn, q idem.Request, limit time.Duration) (verdict, pgx.Tx, error) {
	var inserted int64
	var seen view
	var locked bool
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	run(batch, boundIdle, setting(limit))
	run(batch, impatient, setting(lockWait))
	batch.Queue(tryHold, s.keyLock(q.Key), s.requestLock(q)).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
	s.queueInsert(batch, q, &inserted, &seen)
	run(batch, patient)
	results := conn.SendBatch(ctx, batch)
	if err := results.Close(); err != nil {
		return verdict{}, nil, err
	}
	if inserted > 0 && locked {
		return verdict{Answer: won(q, 1), repeated: true}, results.Tx(), nil
	}
	if inserted > 0 {
		return verdict{Answer: occupied(q, nil)}, nil, nil
	}
	seen.free = locked
	return judge(q, seen), results.Tx(), nil
}

// takeInside takes over within the open transaction.
func (s *Store) takeInside(ctx context.Context, conn *pgxpool.Conn, q idem.Request, seen view) (int, error) {
	var taken taking
	batch := &pgx.Batch{}
	run(batch, impatient, setting(lockWait))
	taken.queue(s, q, seen)(batch)
	run(batch, patient)
	err := conn.SendBatch(ctx, batch).Close()
	return taken.attempt, err
}
