package idem

import (
	"context"
	"fmt"
	"time"
)

// Pass is what Window gives: leave to go on, or the time that is left.
type Pass struct {
	Left time.Duration // with ErrDuplicate: until the window opens again, by the store's clock

	store Store
	claim Claim
}

// DefaultWindow is a length to begin with: longer than a repetition by accident takes, shorter than one that is meant. Zero is not read as it.
const DefaultWindow = 5 * time.Second

// Window lets one call of a key through in a length of time: a claim that nobody finishes. Every further one gets ErrDuplicate with the time left. The
// window is not prolonged by them. A length that is too short lets slow duplicates in, one that is too long locks real repetitions out: both ends
// are the caller's to set. ErrUnavailable where it cannot be decided.
//
// Make the key of named parts with Digest, which keeps their lengths apart.
func Window(ctx context.Context, store Store, key Key, length time.Duration) (Pass, error) {
	if store == nil {
		return Pass{}, fmt.Errorf("%w: a window needs a store", ErrInvalid)
	}
	q := Request{Key: apart("window", key), Owner: NewOwner(), Lease: length, Retention: length, Exclusive: true}
	bounded, cancel := whole(ctx, finishLimit)
	defer cancel()
	answer, err := store.Claim(bounded, q)
	switch {
	case err != nil:
		return Pass{}, unavailable(ctx, err)
	case answer.Outcome == Won:
		return Pass{store: store, claim: answer.Claim}, nil
	case answer.Outcome == Busy:
		return Pass{Left: answer.Record.LeaseLeft}, ErrDuplicate
	}
	return Pass{}, fmt.Errorf("%w: the key of a window has a record that is none: %v", ErrInvalid, answer.Outcome)
}

// Reopen lets the next call through at once, for a call that failed. ErrClaimLost where the window is over, or was never this call's.
func (p Pass) Reopen(ctx context.Context) error {
	if p.store == nil {
		return ErrClaimLost
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	return p.store.Release(bounded, p.claim, Failed, "")
}
