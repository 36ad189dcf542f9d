package memstore

import (
	"context"

	"github.com/idemkit/idem"
)

// Claim decides by idem.Judge and, when Won, writes the claim. An owner that holds the claim already is told so again, and its lease
// is left as it is.
func (s *Store) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if err := admit(ctx, q); err != nil {
		return idem.Answer{}, err
	}
	answer := s.claim(q)
	answer.Record = detach(answer.Record)
	return answer, nil
}

func admit(ctx context.Context, q idem.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return q.Validate()
}

func (s *Store) claim(q idem.Request) idem.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimAt(q, s.tick())
}

func (s *Store) claimAt(q idem.Request, now instant) idem.Answer {
	if s.heldOpen(q, now) {
		return s.busyAt(q, now)
	}
	answer, repeated := s.judge(q, now)
	if answer.Outcome == idem.Won && !repeated {
		s.write(answer.Claim, now)
	}
	return answer
}

// judge is the answer to a request without its effect. repeated says that the claim stands already.
func (s *Store) judge(q idem.Request, now instant) (answer idem.Answer, repeated bool) {
	byKey, byRequestID := s.viewed(s.find(q.Key, now), now), s.viewed(s.sibling(q, now), now)
	outcome := idem.Judge(q, byKey, byRequestID)
	switch {
	case outcome == idem.Foreign:
		return idem.Answer{Outcome: outcome}, false
	case outcome != idem.Won && byRequestID != nil && byRequestID.State != idem.Failed:
		return idem.Answer{Outcome: outcome, Record: *byRequestID}, false
	case outcome != idem.Won:
		return idem.Answer{Outcome: outcome, Record: *byKey}, false
	case byKey == nil:
		return idem.Answer{Outcome: outcome, Claim: idem.Claim{Request: q, Attempt: 1}}, false
	case byKey.State == idem.Processing && byKey.Owner == q.Owner:
		return idem.Answer{Outcome: outcome, Claim: idem.Claim{Request: q, Attempt: byKey.Attempt}}, true
	}
	return idem.Answer{Outcome: outcome, Claim: idem.Claim{Request: q, Attempt: byKey.Attempt + 1}}, false
}

func (s *Store) viewed(r *record, now instant) *idem.Record {
	if r == nil {
		return nil
	}
	seen := r.view(now)
	return &seen
}

// sibling is the record under another key that bears the same request id.
func (s *Store) sibling(q idem.Request, now instant) *record {
	if q.RequestID == "" {
		return nil
	}
	r := s.byRequest.rows[intentionOf(q)]
	if r == nil || r.key == q.Key {
		return nil
	}
	return s.find(r.key, now)
}

// write makes the claim stand: over nothing, over a failed record, over one whose lease ran out.
func (s *Store) write(c idem.Claim, now instant) *record {
	c.Request = own(c.Request)
	r := s.find(c.Key, now)
	if r == nil {
		r = s.insert(c.Key, after(now, c.Retention))
	}
	s.rename(r, c.Request, now)
	if r.state != idem.Processing || len(c.Fingerprint) > 0 {
		r.fingerprint = c.Fingerprint
	}
	r.state, r.owner, r.attempt, r.ledger = idem.Processing, c.Owner, c.Attempt, c.Ledger
	r.leaseEnd = after(now, c.Lease)
	s.change(r, c.Retention, now)
	return r
}

// rename gives the record the request's subject and request id, which a failed record under another key gives up.
func (s *Store) rename(r *record, q idem.Request, now instant) {
	if giver := s.sibling(q, now); giver != nil {
		s.unindex(giver)
		giver.requestID, giver.changed = "", now
	}
	s.unindex(r)
	r.subject, r.requestID = q.Subject, q.RequestID
	s.index(r)
}

// Lookup is the record under the key or, where there is none, the one that bears the request id.
func (s *Store) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	if err := ctx.Err(); err != nil {
		return idem.Record{}, err
	}
	seen := s.lookup(q)
	if seen == nil {
		return idem.Record{}, idem.ErrNotFound
	}
	return detach(*seen), nil
}

func (s *Store) lookup(q idem.Request) *idem.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	r := s.find(q.Key, now)
	if r == nil {
		r = s.sibling(q, now)
	}
	return s.viewed(r, now)
}
