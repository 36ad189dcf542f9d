package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
)

// Complete implements idem.Store. A record that vanished is written again from the claim, unless that is exclusive: then ErrClaimLost.
func (s *Store) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	if err := validate(c); err != nil {
		return err
	}
	return s.finish(ctx, "complete", s.scripts.complete, c, result(r)...)
}

// Release implements idem.Store. A vanished record is ErrClaimLost: there is nothing to release. The reason is not kept here.
func (s *Store) Release(ctx context.Context, c idem.Claim, as idem.State, _ string) error {
	if err := validate(c); err != nil {
		return err
	}
	if as != idem.Failed && as != idem.Cancelled && as != idem.Processing {
		return fmt.Errorf("%w: a claim cannot be released as %q", idem.ErrInvalid, as)
	}
	return s.finish(ctx, "release", s.scripts.release, c, string(as))
}

// Restore implements idem.TokenStore. Of the claim it needs key and retention; the ledger may not know owner and lease any more.
func (s *Store) Restore(ctx context.Context, c idem.Claim, r idem.Result) error {
	needed := idem.Claim{Request: idem.Request{Key: c.Key, Lease: idem.MinLease, Retention: c.Retention}}
	if err := validate(needed); err != nil {
		return err
	}
	return s.finish(ctx, "restore", s.scripts.restore, c, result(r)...)
}

// validate lets a claim without owner pass: it is lost, not invalid.
func validate(c idem.Claim) error {
	if c.Owner == "" {
		c.Owner = "nobody"
	}
	return c.Validate()
}

func (s *Store) finish(ctx context.Context, command string, script *redis.Script, c idem.Claim, more ...any) error {
	args := arguments(c.Request, append([]any{c.Attempt}, more...)...)
	reply, err := s.run(ctx, script, s.keys(c.Key), args...).Text()
	if err != nil {
		return wrap(ctx, command, err)
	}
	switch reply {
	case "ok":
		return nil
	case "lost":
		return idem.ErrClaimLost
	case "format":
		return idem.ErrFormat
	}
	return unexpected([]string{reply})
}

// result is status, whether it is kept, how long, and what is kept, as complete.lua names them.
func result(r idem.Result) []any {
	if !r.Kept {
		return []any{r.Status, "", "0", ""}
	}
	return []any{r.Status, "1", milliseconds(max(r.Keep, 0)), encode(r)}
}
