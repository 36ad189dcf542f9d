package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// Complete makes the claim's record succeeded. Repeated by the same owner and attempt it changes nothing.
func (s *Store) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	arguments, err := completeArguments(c, r)
	if err != nil {
		return err
	}
	return s.finish(ctx, c, "complete", s.sql.complete, arguments, func(r idem.Record) bool { return succeededBy(r, c) })
}

// Release ends the claim without success; idem.ErrInvalid for any state but failed, cancelled and processing.
func (s *Store) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	if as != idem.Failed && as != idem.Cancelled && as != idem.Processing {
		return fmt.Errorf("%w: a claim is released as failed, cancelled or processing, not as %q", idem.ErrInvalid, as)
	}
	arguments := append(claimFence(c), string(as), reasonColumn(reason), microseconds(c.Retention))
	return s.finish(ctx, c, "release", s.sql.release, arguments, func(r idem.Record) bool {
		return r.State == as && r.Attempt == c.Attempt && r.Owner == "" && r.LeaseLeft <= 0
	})
}

// succeededBy recognises the record that an earlier, unanswered finish of the same claim left.
func succeededBy(r idem.Record, c idem.Claim) bool {
	return r.State == idem.Succeeded && r.Attempt == c.Attempt && r.Owner == c.Owner
}

// finish writes the end of a claim. Where nothing was written it looks why; done recognises what an earlier call of the same claim left.
func (s *Store) finish(ctx context.Context, c idem.Claim, command, sql string, arguments []any, done func(idem.Record) bool) error {
	err := s.transact(ctx, func(b *pgx.Batch) {
		run(b, impatient, setting(lockWait))
		run(b, sql, arguments...)
	})
	switch code := state(err); {
	case err == nil:
		return nil
	case code == guardRaised, code == lockNotAvailable:
		return s.explain(ctx, c, command, err, done)
	}
	return failed(ctx, command, err)
}

// explain tells why a claim could not be finished: done before, lost, taken over by a transaction that is still open - or merely waiting for a lock.
func (s *Store) explain(ctx context.Context, c idem.Claim, command string, cause error, done func(idem.Record) bool) error {
	record, busy, err := s.standing(ctx, c)
	switch {
	case err != nil:
		return failed(ctx, command, err)
	case record != nil && done(*record):
		return nil
	case state(cause) == guardRaised, busy:
		return idem.ErrClaimLost
	}
	return failed(ctx, command, cause)
}

// standing is the record under the claim's key, nil where there is none, and whether a transaction works on it.
func (s *Store) standing(ctx context.Context, c idem.Claim) (*idem.Record, bool, error) {
	var seen view
	var busy bool
	err := s.transact(ctx, func(b *pgx.Batch) {
		s.queueWorked(b, c.Key, &busy)
		s.queueLook(b, c.Request, &seen)
	})
	return seen.byKey, busy, err
}

// claimFence is the key, owner and attempt of a claim, the first five parameters of every finish.
func claimFence(c idem.Claim) []any {
	tenant, businessType, key := columns(c.Key)
	return []any{tenant, businessType, key, idem.Column(c.Owner), c.Attempt}
}

func completeArguments(c idem.Claim, r idem.Result) ([]any, error) {
	var headers *string
	var body []byte
	if r.Kept {
		text, err := encodeHeader(r.Header)
		if err != nil {
			return nil, fmt.Errorf("pgstore: complete: %w", err)
		}
		headers, body = &text, append([]byte{}, r.Body...)
	}
	return append(claimFence(c), r.Status, headers, body, microseconds(r.Keep), microseconds(c.Retention)), nil
}
