package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/idemkit/idem"
)

// Claim implements idem.Store. The key is the record's whole identity: request ids under other keys are not looked for.
func (s *Store) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, err
	}
	reply, err := s.run(ctx, s.scripts.claim, s.keys(q.Key), arguments(q)...).StringSlice()
	if err != nil {
		return idem.Answer{}, wrap(ctx, "claim", err)
	}
	return answer(q, reply)
}

// Spend implements idem.TokenStore. The token counts as used whatever the record answers, save to another subject and
// where the record cannot be read.
func (s *Store) Spend(ctx context.Context, tokenID string, q idem.Request) (idem.Answer, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, err
	}
	if tokenID == "" {
		return idem.Answer{}, fmt.Errorf("%w: no token to spend", idem.ErrInvalid)
	}
	keys := append(s.keys(q.Key), s.tokenKey(q.Key, tokenID))
	reply, err := s.run(ctx, s.scripts.spend, keys, arguments(q, q.Key.ID)...).StringSlice()
	if err != nil {
		return idem.Answer{}, wrap(ctx, "spend", err)
	}
	return answer(q, reply)
}

// Lookup implements idem.Store; it reads the record under the key, from the primary.
func (s *Store) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	reply, err := s.run(ctx, s.scripts.lookup, s.keys(q.Key), idem.Format).StringSlice()
	if err != nil {
		return idem.Record{}, wrap(ctx, "lookup", err)
	}
	switch name, rest := cut(reply); name {
	case "found":
		return record(q.Key, rest)
	case "absent":
		return idem.Record{}, idem.ErrNotFound
	case "format":
		return idem.Record{}, idem.ErrFormat
	}
	return idem.Record{}, unexpected(reply)
}

// answer reads what judge.lua returns.
func answer(q idem.Request, reply []string) (idem.Answer, error) {
	name, rest := cut(reply)
	switch name {
	case "won":
		return won(q, rest)
	case "format":
		return idem.Answer{}, idem.ErrFormat
	case "foreign":
		return idem.Answer{Outcome: idem.Foreign}, nil
	case "unknown":
		return idem.Answer{Outcome: idem.Unknown}, nil
	}
	for _, outcome := range []idem.Outcome{idem.Busy, idem.Done, idem.Mismatch, idem.Withdrawn} {
		if name == outcome.String() {
			found, err := record(q.Key, rest)
			if err != nil {
				return idem.Answer{}, err
			}
			return idem.Answer{Outcome: outcome, Record: found}, nil
		}
	}
	return idem.Answer{}, unexpected(reply)
}

func won(q idem.Request, fields []string) (idem.Answer, error) {
	if len(fields) != 1 {
		return idem.Answer{}, unexpected(fields)
	}
	attempt, err := strconv.Atoi(fields[0])
	if err != nil {
		return idem.Answer{}, fmt.Errorf("redisstore: attempt of a claim: %w", err)
	}
	return idem.Answer{Outcome: idem.Won, Claim: idem.Claim{Request: q, Attempt: attempt}}, nil
}

func cut(reply []string) (name string, rest []string) {
	if len(reply) == 0 {
		return "", nil
	}
	return reply[0], reply[1:]
}

var errReply = errors.New("redisstore: a script's reply is not one of its own")

// unexpected tells the shape of the reply and none of its values, which are users' data.
func unexpected(reply []string) error { return fmt.Errorf("%w: %d fields", errReply, len(reply)) }
