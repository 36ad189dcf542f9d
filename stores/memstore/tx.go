package memstore

import (
	"context"
	"time"

	"github.com/idemkit/idem"
)

// Open returns the context as it is, for there is no database to work in, and a transaction whose completion is the record's alone.
func (s *Store) Open(ctx context.Context, c idem.Claim, _ time.Duration) (context.Context, idem.Tx) {
	return ctx, &committed{store: s, claim: c}
}

// committed is the transaction of a claim that others see already.
type committed struct {
	store *Store
	claim idem.Claim
}

func (t *committed) Complete(ctx context.Context, r idem.Result) error {
	return t.store.Complete(ctx, t.claim, r)
}

func (t *committed) Rollback(context.Context) error { return nil }

// transaction is a claim that nobody sees until it is complete. Its key, and its request id, are Busy for everybody else meanwhile.
type transaction struct {
	store *Store
	claim idem.Claim
	end   instant
}

// ClaimTx claims without writing the record: Complete writes it succeeded, Rollback leaves nothing. A transaction older than limit counts as rolled
// back, as one that a database ended for standing idle; 0 or less: no limit.
func (s *Store) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	if err := admit(ctx, q); err != nil {
		return idem.Answer{}, nil, nil, err
	}
	answer, t := s.begin(q, limit)
	answer.Record = detach(answer.Record)
	if t == nil {
		return answer, nil, nil, nil
	}
	return answer, ctx, t, nil
}

func (s *Store) begin(q idem.Request, limit time.Duration) (idem.Answer, *transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	if s.heldOpen(q, now) {
		return s.busyAt(q, now), nil
	}
	answer, _ := s.judge(q, now)
	if answer.Outcome != idem.Won {
		return answer, nil
	}
	t := &transaction{store: s, claim: answer.Claim, end: forever}
	t.claim.Request = own(q)
	if limit > 0 {
		t.end = after(now, limit)
	}
	s.open[q.Key] = t
	if q.RequestID != "" {
		s.openByIntention[intentionOf(q)] = t
	}
	return answer, t
}

// transactionOn is the open transaction on the key, unless its time is over.
func (s *Store) transactionOn(key idem.Key, now instant) *transaction {
	return s.current(s.open[key], now)
}

func (s *Store) current(t *transaction, now instant) *transaction {
	if t != nil && t.end <= now {
		s.close(t)
		return nil
	}
	return t
}

// heldOpen reports whether an open transaction has the request's key or request id.
func (s *Store) heldOpen(q idem.Request, now instant) bool {
	if s.transactionOn(q.Key, now) != nil {
		return true
	}
	return q.RequestID != "" && s.current(s.openByIntention[intentionOf(q)], now) != nil
}

// busyAt is the answer beside an open transaction: with what is committed, of which a foreign subject learns nothing.
func (s *Store) busyAt(q idem.Request, now instant) idem.Answer {
	seen := s.viewed(s.find(q.Key, now), now)
	switch {
	case seen == nil:
		return idem.Answer{Outcome: idem.Busy, Record: idem.Record{Key: q.Key}}
	case seen.Subject != q.Subject && !q.Shared:
		return idem.Answer{Outcome: idem.Foreign}
	}
	return idem.Answer{Outcome: idem.Busy, Record: *seen}
}

func (s *Store) close(t *transaction) {
	if s.open[t.claim.Key] == t {
		delete(s.open, t.claim.Key)
	}
	if s.openByIntention[intentionOf(t.claim.Request)] == t {
		delete(s.openByIntention, intentionOf(t.claim.Request))
	}
}

// Complete writes claim and result at once. ErrClaimLost when the transaction has ended or the record went on without it.
func (t *transaction) Complete(ctx context.Context, r idem.Result) error {
	if err := ctx.Err(); err != nil {
		_ = t.Rollback(context.WithoutCancel(ctx))
		return err
	}
	r = ownResult(r)
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	if s.transactionOn(t.claim.Key, now) != t {
		return idem.ErrClaimLost
	}
	s.close(t)
	row := s.find(t.claim.Key, now)
	switch {
	case row != nil && row.heldBy(t.claim):
	case row == nil || (row.attempt < t.claim.Attempt && row.state.Next(idem.Processing)):
		row = s.write(t.claim, now)
	default:
		return idem.ErrClaimLost
	}
	s.succeed(row, t.claim, r, now)
	return nil
}

// Rollback lets the key go.
func (t *transaction) Rollback(context.Context) error {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.close(t)
	return nil
}
