package idem

import "context"

type claimKey struct{}

func withClaim(ctx context.Context, c Claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// FromContext returns the claim that the work runs under. Outside of guarded work it is the zero Claim, with Attempt 0.
func FromContext(ctx context.Context) Claim {
	c, _ := ctx.Value(claimKey{}).(Claim)
	return c
}
