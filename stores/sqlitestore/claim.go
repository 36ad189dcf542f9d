package sqlitestore

import (
	"context"

	"github.com/idemkit/idem"
)

// Claim reads beside the writer first: what is busy or done is answered while a transaction is open. Only who would win waits for the writer, and is judged
// again there. A key that a ClaimTx of this process holds is Busy at once.
func (s *Store) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	answer, err := s.look(ctx, q)
	if err != nil || answer.Outcome != idem.Won {
		return answer, err
	}
	if s.gate.claimed(q) {
		return busy(q), nil
	}
	err = s.write(ctx, func(tx *transaction) error {
		answer, err = s.claim(ctx, tx, q)
		return err
	})
	if err != nil {
		return idem.Answer{}, err
	}
	return answer, nil
}

// look judges the request by what is committed.
func (s *Store) look(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, err
	}
	s.warm(ctx)
	_, answer, err := s.judge(ctx, nil, q)
	return answer, err
}

// busy is the answer beside a claim of which nothing is committed.
func busy(q idem.Request) idem.Answer {
	return idem.Answer{Outcome: idem.Busy, Record: idem.Record{Key: q.Key}}
}

// judged are the records that an answer rests on.
type judged struct{ byKey, byRequestID *idem.Record }

func (s *Store) judge(ctx context.Context, tx *transaction, q idem.Request) (judged, idem.Answer, error) {
	f, err := s.find(ctx, tx, q)
	if err != nil {
		return judged{}, idem.Answer{}, err
	}
	var j judged
	if j.byKey, err = s.view(f.byKey, q); err != nil {
		return j, idem.Answer{}, err
	}
	if j.byRequestID, err = s.view(f.byRequestID, q); err != nil {
		return j, idem.Answer{}, err
	}
	return j, j.answer(q), nil
}

func (s *Store) view(r *row, q idem.Request) (*idem.Record, error) {
	if r == nil {
		return nil, nil
	}
	seen, err := s.record(r, q)
	return &seen, err
}

func (j judged) answer(q idem.Request) idem.Answer {
	outcome := idem.Judge(q, j.byKey, j.byRequestID)
	switch {
	case outcome == idem.Won:
		return idem.Answer{Outcome: outcome, Claim: idem.Claim{Request: q, Attempt: j.attempt(q)}}
	case outcome == idem.Foreign:
		return idem.Answer{Outcome: outcome}
	case j.byRequestID != nil && j.byRequestID.State != idem.Failed:
		return idem.Answer{Outcome: outcome, Record: *j.byRequestID}
	}
	return idem.Answer{Outcome: outcome, Record: *j.byKey}
}

func (j judged) attempt(q idem.Request) int {
	switch {
	case j.byKey == nil:
		return 1
	case j.repeats(q):
		return j.byKey.Attempt
	}
	return j.byKey.Attempt + 1
}

// repeats reports whether the claim stands already: the same call, whose answer was lost.
func (j judged) repeats(q idem.Request) bool {
	return j.byKey != nil && j.byKey.State == idem.Processing && j.byKey.Owner == q.Owner
}

// claim judges and writes within the transaction.
func (s *Store) claim(ctx context.Context, tx *transaction, q idem.Request) (idem.Answer, error) {
	j, answer, err := s.judge(ctx, tx, q)
	if err != nil || answer.Outcome != idem.Won || j.repeats(q) {
		return answer, err
	}
	if j.byRequestID != nil {
		if _, err := s.exec(ctx, tx, s.sql.giveUp, append(intention(q), s.now().UnixMicro())...); err != nil {
			return idem.Answer{}, err
		}
	}
	fingerprint := q.Fingerprint
	if len(fingerprint) == 0 && j.byKey != nil {
		fingerprint = j.byKey.Fingerprint
	}
	return answer, s.writeClaim(ctx, tx, answer.Claim, fingerprint)
}

func (s *Store) writeClaim(ctx context.Context, tx *transaction, c idem.Claim, fingerprint []byte) error {
	now := s.now()
	if len(fingerprint) == 0 {
		fingerprint = nil
	}
	_, err := s.exec(ctx, tx, s.sql.claim,
		idem.Column(c.Key.Tenant), idem.Column(c.Key.Type), c.Key.Column(), idem.Format, c.Attempt, idem.Column(c.Owner),
		idem.Column(c.Subject), optional(c.RequestID), fingerprint,
		now.Add(c.Lease).UnixMicro(), now.Add(c.Retention).UnixMicro(), now.UnixMicro(), now.UnixMicro())
	return err
}
