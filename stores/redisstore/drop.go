package redisstore

import (
	"context"

	"github.com/idemkit/idem"
)

// Drop implements idem.TokenStore. Of the record it needs key, state, owner and attempt. A record that is gone, or of a newer format, is not dropped: false.
// So is the repetition of a call whose reply was lost, its own go-redis' included, which finds that call's work done.
func (s *Store) Drop(ctx context.Context, r idem.Record) (bool, error) {
	seen := idem.Request{Key: r.Key, Owner: r.Owner}
	dropped, err := s.run(ctx, s.scripts.drop, s.keys(r.Key), arguments(seen, r.Attempt, string(r.State))...).Bool()
	return dropped, wrap(ctx, "drop", err)
}
