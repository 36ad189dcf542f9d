package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/idemkit/idem"
)

// Find reads all records, some 50 ns each, before it lets any other call go on.
func (s *Store) Find(ctx context.Context, q idem.Query) ([]idem.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	records := s.matching(q)
	for i := range records {
		records[i] = detach(records[i])
	}
	return records, nil
}

func (s *Store) matching(q idem.Query) []idem.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	var rows []*record
	for _, r := range s.records.rows {
		if r.matches(q, now) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *record) int { return cmp.Compare(a.changed, b.changed) })
	rows = rows[:min(len(rows), q.Limit)]
	records := make([]idem.Record, len(rows))
	for i, r := range rows {
		records[i] = r.view(now)
	}
	return records
}

func (r *record) matches(q idem.Query, now instant) bool {
	lapsed := r.state != idem.Processing || r.leaseEnd <= now
	return r.end > now && r.state == q.State && lapsed && now-r.changed >= q.Quiet && slices.Contains(q.Types, r.key.Type)
}

// Fence counts for all locks of the store. Forget leaves the count as it is; the end of the process begins it anew, and ends all records with it.
func (s *Store) Fence(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastFence++
	return s.lastFence, nil
}

// Purge drops up to limit records whose time is over. The store does so by itself, whatever their state and type, which is why abandoned changes
// nothing; this does it at once.
func (s *Store) Purge(ctx context.Context, _ []string, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweep(s.now().Sub(s.epoch), limit), nil
}
