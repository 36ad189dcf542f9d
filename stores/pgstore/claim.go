package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// workedOn is the lease that is shown of a claim whose transaction is still open: nobody can see its row, and whoever waits should look again soon.
const workedOn = time.Second

// verdict is the answer to a request with what was seen, for the write that a won one needs.
type verdict struct {
	idem.Answer
	view
	repeated bool // the claim stands already
}

// Claim decides by idem.Judge. It is one round trip, two for a takeover.
func (s *Store) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, err
	}
	for {
		found, err := s.tryInsert(ctx, q)
		switch {
		case state(err) == lockNotAvailable: // the application's own lock_timeout is short
			return occupied(q, nil), nil
		case err != nil:
			return idem.Answer{}, failed(ctx, "claim", err)
		}
		if found.Outcome != idem.Won || found.repeated {
			return found.Answer, nil
		}
		var taken taking
		switch err := s.transact(ctx, taken.queue(s, q, found.view)); {
		case err == nil:
			return won(q, taken.attempt), nil
		case state(err) == lockNotAvailable:
			return occupied(q, found.byKey), nil
		case !overtaken(err):
			return idem.Answer{}, failed(ctx, "claim", err)
		}
	}
}

func won(q idem.Request, attempt int) idem.Answer {
	return idem.Answer{Outcome: idem.Won, Claim: idem.Claim{Request: q, Attempt: attempt}}
}

func (s *Store) tryInsert(ctx context.Context, q idem.Request) (verdict, error) {
	var inserted int64
	var seen view
	err := s.transact(ctx, func(b *pgx.Batch) {
		s.queueInsert(b, q, &inserted, &seen)
	})
	if err != nil {
		return verdict{}, err
	}
	if inserted > 0 {
		return verdict{Answer: won(q, 1), repeated: true}, nil
	}
	return judge(q, seen), nil
}

// queueInsert adds the two statements of a claim. The second one has a snapshot of its own and so sees the winner for whom the first one waited.
func (s *Store) queueInsert(b *pgx.Batch, q idem.Request, inserted *int64, seen *view) {
	b.Queue(s.sql.insertClaim, s.claimArguments(q)...).Exec(count(inserted))
	b.Queue(s.sql.find, append(requestIdentity(q), s.keyLock(q.Key), s.requestLock(q))...).Query(seen.reading(q))
}

func (s *Store) claimArguments(q idem.Request) []any {
	tenant, businessType, key := columns(q.Key)
	return []any{tenant, businessType, key, idem.Column(q.Owner), idem.Column(q.Subject), requestColumn(q.RequestID), fingerprintColumn(q.Fingerprint),
		microseconds(q.Lease), microseconds(q.Retention), s.keyLock(q.Key), s.requestLock(q)}
}

// requestIdentity is the key, subject and request id, the first five parameters of every search.
func requestIdentity(q idem.Request) []any {
	tenant, businessType, key := columns(q.Key)
	return []any{tenant, businessType, key, idem.Column(q.Subject), requestColumn(q.RequestID)}
}

// fingerprintColumn is null where the fingerprint matches any.
func fingerprintColumn(fingerprint []byte) []byte {
	if len(fingerprint) == 0 {
		return nil
	}
	return fingerprint
}

// judge turns what was seen into the answer. A transaction that works on the key only matters where the request would win: what is committed as done stays done.
func judge(q idem.Request, seen view) verdict {
	outcome := idem.Judge(q, seen.byKey, seen.byRequestID)
	found := verdict{Answer: idem.Answer{Outcome: outcome}, view: seen}
	switch {
	case outcome == idem.Foreign:
	case outcome == idem.Won && seen.byKey != nil && seen.byKey.State == idem.Processing && seen.byKey.Owner == q.Owner:
		found.Answer, found.repeated = won(q, seen.byKey.Attempt), true
	case outcome == idem.Won && !seen.free:
		found.Answer = occupied(q, seen.byKey)
	case outcome == idem.Won:
	case seen.byRequestID != nil && seen.byRequestID.State != idem.Failed:
		found.Record = *seen.byRequestID
	default:
		found.Record = *seen.byKey
	}
	return found
}

// worker is the record of a claim whose transaction is open: its row is not to be seen, so the subject is the asker's, who is told nothing else.
func worker(q idem.Request, committed *idem.Record) idem.Record {
	record := idem.Record{Key: q.Key, State: idem.Processing, Attempt: 1, Subject: q.Subject, LeaseLeft: workedOn}
	if committed != nil {
		record.Attempt, record.Reason = committed.Attempt+1, committed.Reason
	}
	return record
}

// occupied is the answer beside somebody who is writing.
func occupied(q idem.Request, committed *idem.Record) idem.Answer {
	return idem.Answer{Outcome: idem.Busy, Record: worker(q, committed)}
}

// taking is the write of a claim that was won over something that stands.
type taking struct{ attempt int }

func (t *taking) queue(s *Store, q idem.Request, seen view) func(*pgx.Batch) {
	return func(b *pgx.Batch) {
		if seen.byRequestID != nil {
			run(b, s.sql.giveUpRequestID, requestIdentity(q)...)
		}
		sql, arguments := s.sql.insertTaken, s.claimArguments(q)
		if seen.byKey != nil {
			sql, arguments = s.sql.takeOver, append(arguments, seen.byKey.Attempt)
		}
		b.Queue(sql, arguments...).QueryRow(func(row pgx.Row) error { return row.Scan(new(int64), &t.attempt) })
	}
}

// overtaken reports whether somebody else changed what was judged, so that it has to be judged again.
func overtaken(err error) bool {
	switch state(err) {
	case guardRaised, uniqueViolation, deadlockDetected:
		return true
	}
	return false
}
