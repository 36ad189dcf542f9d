package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// ClaimTx claims inside the transaction that its work and its completion share: no round trip more than the transaction itself has, and one commit.
// A key, or a request id, that another such transaction works on is Busy at once. limit bounds how long the transaction may stand idle.
func (s *Store) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, nil, nil, err
	}
	borrowed, err := s.source.borrow(ctx)
	if err != nil {
		return idem.Answer{}, nil, nil, failed(ctx, "claim", err)
	}
	own := &ownTx{loan: borrowed, limit: limit}
	answer, err := s.claimOn(ctx, own, q)
	if err != nil || answer.Outcome != idem.Won {
		borrowed.rollback(ctx)
		borrowed.release()
		if err != nil {
			return idem.Answer{}, nil, nil, failed(ctx, "claim", err)
		}
		return answer, nil, nil, nil
	}
	w := &work{store: s, claim: answer.Claim, limit: limit, whole: true}
	w.has(borrowed, own.tx)
	return answer, context.WithValue(ctx, contextKey{}, w), w, nil
}

// ground is what a claim in a transaction stands on: a transaction of its own, or a savepoint in the caller's.
type ground interface {
	begin(ctx context.Context, queue func(*pgx.Batch)) error
	send(ctx context.Context, queue func(*pgx.Batch)) error
	undo(ctx context.Context)
}

// ownTx is a transaction that begins with the claim.
type ownTx struct {
	loan  loan
	limit time.Duration
	tx    pgx.Tx
}

func (o *ownTx) begin(ctx context.Context, queue func(*pgx.Batch)) (err error) {
	o.tx, err = beginOn(ctx, o.loan, o.limit, queue)
	return err
}

func (o *ownTx) send(ctx context.Context, queue func(*pgx.Batch)) error {
	batch := &pgx.Batch{}
	queue(batch)
	return o.loan.use(func(c *pgx.Conn) error { return c.SendBatch(ctx, batch).Close() })
}

func (o *ownTx) undo(ctx context.Context) { o.loan.rollback(ctx) }

// beginOn begins a transaction and runs what queue, if any, adds. It is left as it is where that fails.
func beginOn(ctx context.Context, borrowed loan, limit time.Duration, queue func(*pgx.Batch)) (tx pgx.Tx, err error) {
	options, err := borrowed.begin(ctx)
	if err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.BeginTx(options)
	run(batch, boundIdle, setting(limit))
	if queue != nil {
		queue(batch)
	}
	err = borrowed.use(func(c *pgx.Conn) error {
		results := c.SendBatch(ctx, batch)
		if err := results.Close(); err != nil {
			return err
		}
		tx = results.Tx()
		return nil
	})
	return tx, err
}

// claimOn leaves what it stands on open, with the claim in it when that is won; otherwise it must be undone.
func (s *Store) claimOn(ctx context.Context, on ground, q idem.Request) (idem.Answer, error) {
	for {
		found, err := s.insertOn(ctx, on, q)
		switch {
		case state(err) == lockNotAvailable:
			return occupied(q, nil), nil
		case err != nil:
			return idem.Answer{}, err
		case found.Outcome != idem.Won || found.repeated:
			return found.Answer, nil
		}
		var taken taking
		err = on.send(ctx, func(b *pgx.Batch) {
			run(b, impatient, setting(lockWait))
			taken.queue(s, q, found.view)(b)
			run(b, patient)
		})
		switch {
		case err == nil:
			return won(q, taken.attempt), nil
		case state(err) == lockNotAvailable:
			return occupied(q, found.byKey), nil
		case !overtaken(err):
			return idem.Answer{}, err
		}
		on.undo(ctx)
	}
}

// insertOn begins and claims a new key, in one round trip where it can. Without its locks the claim does not stand, even where the insert found the way
// free a moment later: plain claims would wait on it.
func (s *Store) insertOn(ctx context.Context, on ground, q idem.Request) (verdict, error) {
	var inserted int64
	var seen view
	var locked bool
	err := on.begin(ctx, func(b *pgx.Batch) {
		run(b, impatient, setting(lockWait))
		b.Queue(tryHold, s.keyLock(q.Key), s.requestLock(q)).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
		s.queueInsert(b, q, &inserted, &seen)
		run(b, patient)
	})
	switch {
	case err != nil:
		return verdict{}, err
	case inserted > 0 && locked:
		return verdict{Answer: won(q, 1), repeated: true}, nil
	case inserted > 0:
		return verdict{Answer: occupied(q, nil)}, nil
	}
	seen.free = locked
	return judge(q, seen), nil
}
