package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/idemkit/idem"
)

// Extend implements idem.Store, in one round trip. Where some nodes are away it returns *idem.PartError. A record that vanished is written again from its claim, unless that is
// exclusive; one of a newer format is lost, as only a newer version took it over.
func (s *Store) Extend(ctx context.Context, claims []idem.Claim) (lost []int, err error) {
	if len(claims) == 0 {
		return nil, nil
	}
	all := make([]invocation, len(claims))
	for i, c := range claims {
		if err := validate(c); err != nil {
			return nil, err
		}
		all[i] = invocation{keys: s.keys(c.Key), args: arguments(c.Request, c.Attempt)}
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap(ctx, "extend", err)
	}
	var part idem.PartError
	for i, cmd := range s.runAll(ctx, s.scripts.extend, all) {
		renewed, err := cmd.Bool()
		switch {
		case err != nil:
			part.Unasked, part.Err = append(part.Unasked, i), err
		case !renewed:
			lost = append(lost, i)
		}
	}
	if part.Err == nil {
		return lost, nil
	}
	return lost, wrap(ctx, "extend", &part)
}

// Issue implements idem.TokenStore, in one round trip. Issuing again is harmless, so an error of some is an error of all.
func (s *Store) Issue(ctx context.Context, tokens []idem.Token) error {
	if len(tokens) == 0 {
		return nil
	}
	all := make([]invocation, len(tokens))
	for i, token := range tokens {
		if err := validateToken(token); err != nil {
			return err
		}
		all[i] = invocation{
			keys: []string{s.keys(token.Key)[0], s.tokenKey(token.Key, token.ID)},
			args: []any{token.Key.ID, milliseconds(token.TTL), milliseconds(token.Retention)},
		}
	}
	if err := ctx.Err(); err != nil {
		return wrap(ctx, "issue", err)
	}
	var failed error
	for _, cmd := range s.runAll(ctx, s.scripts.issue, all) {
		failed = errors.Join(failed, cmd.Err())
	}
	return wrap(ctx, "issue", failed)
}

func validateToken(token idem.Token) error {
	switch {
	case token.ID == "" || token.Key.Type == "" || token.Key.ID == "":
		return fmt.Errorf("%w: a token needs an id and a key with type and id", idem.ErrInvalid)
	case token.TTL < idem.MinLease:
		return fmt.Errorf("%w: token life %v; it must be at least %v", idem.ErrInvalid, token.TTL, idem.MinLease)
	}
	return nil
}
