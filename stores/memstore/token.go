package memstore

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/idemkit/idem"
)

// forever is later than any instant of a process.
const forever = instant(math.MaxInt64)

// tokenKey makes a token good for one record only: under another key it is unknown.
type tokenKey struct {
	key idem.Key
	id  string
}

type token struct {
	timer
	tokenKey
	end instant
}

func (t *token) expire(s *Store, _ instant) { s.spendToken(t) }

// Issue stores the tokens, or none of them: ErrInvalid for one without id, key or a life of at least idem.MinLease.
func (s *Store) Issue(ctx context.Context, tokens []idem.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, t := range tokens {
		if t.ID == "" || t.Key.Type == "" || t.Key.ID == "" || t.TTL < idem.MinLease {
			return fmt.Errorf("%w: token %d needs an id, a key and a life of at least %v", idem.ErrInvalid, i, idem.MinLease)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	for _, t := range tokens {
		s.issue(t, now)
	}
	return nil
}

func (s *Store) issue(t idem.Token, now instant) {
	key := tokenKey{key: ownKey(t.Key), id: strings.Clone(t.ID)}
	if old := s.tokens.rows[key]; old != nil {
		s.spendToken(old)
	}
	kept := &token{tokenKey: key, end: after(now, t.TTL)}
	s.tokens.put(key, kept)
	s.timers.arm(kept, kept.end)
	if r := s.find(t.Key, now); r != nil {
		s.prolong(r, after(now, t.Retention))
	}
}

func (s *Store) spendToken(t *token) {
	s.timers.disarm(t)
	s.tokens.drop(t.tokenKey)
}

// Spend deletes the token, whatever the answer, and claims. Without a token, a record or a ledger that vouches, it is Unknown.
func (s *Store) Spend(ctx context.Context, tokenID string, q idem.Request) (idem.Answer, error) {
	if err := admit(ctx, q); err != nil {
		return idem.Answer{}, err
	}
	answer := s.spend(tokenKey{key: q.Key, id: tokenID}, q)
	answer.Record = detach(answer.Record)
	return answer, nil
}

func (s *Store) spend(key tokenKey, q idem.Request) idem.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	t := s.tokens.rows[key]
	known := t != nil && t.end > now
	if t != nil {
		s.spendToken(t)
	}
	if !known && q.Ledger == "" && s.find(q.Key, now) == nil && s.transactionOn(q.Key, now) == nil {
		return idem.Answer{Outcome: idem.Unknown}
	}
	return s.claimAt(q, now)
}

// Restore writes the success over whatever is there.
func (s *Store) Restore(ctx context.Context, c idem.Claim, r idem.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r = ownResult(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	row := s.write(c, now)
	row.fingerprint = own(c.Request).Fingerprint
	s.succeed(row, c, r, now)
	return nil
}
