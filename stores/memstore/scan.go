package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/idemkit/idem"
)

// Scan notes the keys that are there when it begins, and shows each as it stands when its turn comes.
func (s *Store) Scan(ctx context.Context, visit func(r idem.Record, ledger string) error) error {
	for _, key := range s.keys() {
		if err := ctx.Err(); err != nil {
			return err
		}
		seen, ledger := s.peek(key)
		if seen == nil {
			continue
		}
		if err := visit(detach(*seen), ledger); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *Store) keys() []idem.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.records.rows))
}

// peek is the record with its result's status alone; nil where it is gone.
func (s *Store) peek(key idem.Key) (seen *idem.Record, ledger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	r := s.find(key, now)
	if r == nil {
		return nil, ""
	}
	seen = s.viewed(r, now)
	seen.Result = idem.Result{Status: seen.Result.Status}
	return seen, r.ledger
}

// Drop compares state, owner and attempt with those given and removes the record at once.
func (s *Store) Drop(ctx context.Context, seen idem.Record) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(seen.Key, s.tick())
	if r == nil || r.state != seen.State || r.owner != seen.Owner || r.attempt != seen.Attempt {
		return false, nil
	}
	s.remove(r)
	return true, nil
}
