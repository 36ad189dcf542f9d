package memstore

import (
	"context"
	"fmt"

	"github.com/idemkit/idem"
)

// Extend renews the leases to their full length from now and returns the indexes of the lost claims in ascending order.
func (s *Store) Extend(ctx context.Context, claims []idem.Claim) (lost []int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	for i, c := range claims {
		if r := s.held(c, now); r == nil {
			lost = append(lost, i)
		} else {
			r.leaseEnd = after(now, c.Lease)
			s.change(r, c.Retention, now)
		}
	}
	return lost, nil
}

// held is the record while it is the claim's, written again where the store may forget and did; nil when the claim is lost. A lock that vanished is
// lost: somebody else may have had it since.
func (s *Store) held(c idem.Claim, now instant) *record {
	if s.transactionOn(c.Key, now) != nil {
		return nil
	}
	r := s.find(c.Key, now)
	switch {
	case r == nil && s.forgetful && !c.Exclusive:
		return s.write(c, now)
	case r == nil || !r.heldBy(c):
		return nil
	}
	return r
}

// Complete makes the record succeeded. Repeated by the same owner and attempt it changes nothing.
func (s *Store) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r = ownResult(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	if row := s.find(c.Key, now); row != nil && row.state == idem.Succeeded && row.owner == c.Owner && row.attempt == c.Attempt {
		return nil
	}
	row := s.held(c, now)
	if row == nil {
		return idem.ErrClaimLost
	}
	s.succeed(row, c, r, now)
	return nil
}

func (s *Store) succeed(row *record, c idem.Claim, r idem.Result, now instant) {
	row.state, row.reason = idem.Succeeded, ""
	row.keepEnd = forever
	if r.Keep > 0 {
		row.keepEnd = after(now, r.Keep)
	}
	r.Keep = 0
	row.result = r
	s.change(row, c.Retention, now)
}

// Release ends the claim as Failed, Cancelled or Processing; any other state is ErrInvalid.
func (s *Store) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if as != idem.Failed && as != idem.Cancelled && as != idem.Processing {
		return fmt.Errorf("%w: a claim is released as failed, cancelled or processing, not as %q", idem.ErrInvalid, as)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	row := s.find(c.Key, now)
	switch {
	case row == nil || s.transactionOn(c.Key, now) != nil:
		return idem.ErrClaimLost
	case row.releasedBy(c, as, now):
		return nil
	case !row.heldBy(c):
		return idem.ErrClaimLost
	}
	row.release(as, reason, now)
	s.change(row, c.Retention, now)
	return nil
}

// releasedBy recognises a repeated release: the owner is gone by then, but an attempt has one claim only.
func (r *record) releasedBy(c idem.Claim, as idem.State, now instant) bool {
	return r.state == as && r.owner == "" && r.attempt == c.Attempt && (as != idem.Processing || r.leaseEnd <= now)
}

func (r *record) release(as idem.State, reason string, now instant) {
	r.state, r.owner, r.reason = as, "", idem.Reason(reason)
	r.leaseEnd = now
	if as != idem.Processing {
		r.fingerprint = nil
	}
}
