package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

// Extend renews all claims in one transaction. While another transaction of this process is in the way it waits for a third of the
// shortest lease, or for ctx, notes the renewals and reports the claims as held: nobody can take them over before they are renewed. It does
// not wait at all for the transaction of its own context's work.
func (s *Store) Extend(ctx context.Context, claims []idem.Claim) (lost []int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(claims) == 0 {
		return nil, nil
	}
	if own := s.openIn(ctx); own != nil && s.gate.noteOpen(own, claims) {
		return nil, nil
	}
	held, err := s.enterOrNote(ctx, claims)
	if held || err != nil {
		return nil, err
	}
	defer s.leave(ctx)
	err = s.writeHolding(ctx, func(tx *transaction) error {
		lost, err = s.renew(ctx, tx, claims)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// enterOrNote enters the gate or, when the time for that is over, notes the claims as held.
func (s *Store) enterOrNote(ctx context.Context, claims []idem.Claim) (held bool, err error) {
	patience := claims[0].Lease
	for _, c := range claims {
		patience = min(patience, c.Lease)
	}
	waiting, cancel := context.WithTimeout(ctx, patience/3)
	defer cancel()
	err = s.gate.enter(waiting, true, func() {
		if !errors.Is(ctx.Err(), context.Canceled) {
			s.gate.note(claims)
			held = true
		}
	})
	if held {
		return true, nil
	}
	return false, err
}

// renew returns the indexes of the claims that are lost.
func (s *Store) renew(ctx context.Context, tx *transaction, claims []idem.Claim) (lost []int, err error) {
	now := s.now()
	for i, c := range claims {
		args := append([]any{now.Add(c.Lease).UnixMicro(), now.Add(c.Retention).UnixMicro(), now.UnixMicro()}, fencing(c)...)
		renewed, err := affects(s.exec(ctx, tx, s.sql.extend, args...))
		if err != nil {
			return nil, err
		}
		if !renewed {
			lost = append(lost, i)
		}
	}
	return lost, nil
}

func affects(result sql.Result, err error) (bool, error) {
	n, err := affected(result, err)
	return n > 0, err
}

func affected(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Complete makes the claim's record succeeded, in a transaction of its own.
func (s *Store) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	return s.finish(ctx, c, func(tx *transaction) error {
		done, err := s.complete(ctx, tx, c, r)
		if err != nil || done {
			return err
		}
		return s.unlessStands(ctx, tx, c, func(found *row) bool { return found.state == idem.Succeeded && found.heldBy(c) })
	})
}

// finish ends a claim. Its renewals, if any wait, have no object afterwards.
func (s *Store) finish(ctx context.Context, c idem.Claim, change func(*transaction) error) error {
	err := s.write(ctx, change)
	if err == nil || errors.Is(err, idem.ErrClaimLost) {
		s.gate.drop(c)
	}
	return err
}

// complete reports whether the record was the claim's.
func (s *Store) complete(ctx context.Context, tx *transaction, c idem.Claim, r idem.Result) (bool, error) {
	now := s.now()
	var header sql.NullString
	var body []byte
	var until sql.NullInt64
	if r.Kept {
		text, err := encodeHeader(r.Header)
		if err != nil {
			return false, fmt.Errorf("sqlitestore: header: %w", err)
		}
		header, body = sql.NullString{String: text, Valid: true}, r.Body
		if r.Keep > 0 {
			until = sql.NullInt64{Int64: now.Add(min(r.Keep, c.Retention)).UnixMicro(), Valid: true}
		}
	}
	args := []any{r.Status, header, body, until, now.Add(c.Retention).UnixMicro(), now.UnixMicro()}
	return affects(s.exec(ctx, tx, s.sql.complete, append(args, fencing(c)...)...))
}

// unlessStands is ErrClaimLost, unless the record is as this very call would have left it.
func (s *Store) unlessStands(ctx context.Context, tx *transaction, c idem.Claim, as func(*row) bool) error {
	f, err := s.find(ctx, tx, c.Request)
	switch {
	case err != nil:
		return err
	case f.byKey != nil && f.byKey.format > idem.Format:
		return idem.ErrFormat
	case f.byKey != nil && as(f.byKey):
		return nil
	}
	return idem.ErrClaimLost
}

// Release ends the claim as Failed, Cancelled or Processing; any other state is ErrInvalid. A reason is cut at 1,000 bytes.
func (s *Store) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	if as != idem.Failed && as != idem.Cancelled && as != idem.Processing {
		return fmt.Errorf("%w: a claim is released as failed, cancelled or processing, not as %q", idem.ErrInvalid, as)
	}
	return s.finish(ctx, c, func(tx *transaction) error { return s.release(ctx, tx, c, as, reason) })
}

func (s *Store) release(ctx context.Context, tx *transaction, c idem.Claim, as idem.State, reason string) error {
	now := s.now()
	lease := sql.NullInt64{Int64: now.UnixMicro(), Valid: as == idem.Processing}
	args := []any{string(as), reasonColumn(reason), lease, now.Add(c.Retention).UnixMicro(), now.UnixMicro()}
	released, err := affects(s.exec(ctx, tx, s.sql.release, append(args, fencing(c)...)...))
	if err != nil || released {
		return err
	}
	return s.unlessStands(ctx, tx, c, func(found *row) bool { return found.releasedBy(c, as, now) })
}

// releasedBy recognises a repeated release: the owner is gone by then, but an attempt has one claim only.
func (r *row) releasedBy(c idem.Claim, as idem.State, now time.Time) bool {
	return r.state == as && !r.owner.Valid && r.attempt == c.Attempt && (as != idem.Processing || r.leaseUntil.Int64 <= now.UnixMicro())
}
