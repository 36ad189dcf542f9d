package tokens

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idemkit/idem"
)

// DefaultTTL is the life of a token where Config names none.
const DefaultTTL = 30 * time.Minute

// Issuer signs tokens with the first key of its ring, and verifies. It is immutable and safe for concurrent use.
type Issuer struct {
	*Verifier
	signer Key
	ttl    time.Duration
}

// New refuses a ring that is empty, holds a kid twice or whose first key cannot sign, and settings out of their range.
func New(c Config) (*Issuer, error) {
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.TTL < idem.MinLease {
		return nil, fmt.Errorf("tokens: a token's life must be at least %v", idem.MinLease)
	}
	verifier, err := NewVerifier(c)
	if err != nil {
		return nil, err
	}
	if !c.Keys[0].CanSign() {
		return nil, errors.New("tokens: key 1 signs and must not be a public key; put a private one first")
	}
	return &Issuer{Verifier: verifier, signer: c.Keys[0], ttl: c.TTL}, nil
}

// TTL is the least life of a token. One lives up to a second longer, as exp is rounded up.
func (i *Issuer) TTL() time.Duration { return i.ttl }

// Issue signs one token; an empty request id becomes a fresh one. idem.ErrInvalid, with the field, for a grant out of its
// grammar. Storing the token is the caller's.
func (i *Issuer) Issue(g Grant) (Issued, error) { return i.sign(g, i.now()) }

// IssueAll signs a token for every grant, all at one time, or none where Issue would refuse one.
func (i *Issuer) IssueAll(grants []Grant) ([]Issued, error) {
	now := i.now()
	all := make([]Issued, 0, len(grants))
	for n, grant := range grants {
		issued, err := i.sign(grant, now)
		if err != nil {
			return nil, fmt.Errorf("grant %d: %w", n+1, err)
		}
		all = append(all, issued)
	}
	return all, nil
}

func (i *Issuer) sign(g Grant, now time.Time) (Issued, error) {
	if g.RequestID == "" {
		g.RequestID = NewRequestID()
	}
	if err := g.validate(); err != nil {
		return Issued{}, err
	}
	expires := roundUp(now.Add(i.ttl))
	id := rand.Text()
	token := jwt.NewWithClaims(i.signer.material.method, payload{
		ID: id, RequestID: g.RequestID, Action: g.Action, Subject: &g.Subject,
		IssuedAt: new(now.Unix()), ExpiresAt: new(expires.Unix()), Issuer: i.issuer,
	})
	token.Header = map[string]any{"alg": i.signer.Algorithm(), "kid": i.signer.id}
	signed, err := token.SignedString(i.signer.material.sign())
	if err != nil {
		return Issued{}, fmt.Errorf("tokens: signing: %w", err)
	}
	return Issued{Grant: g, Token: signed, ID: id, ExpiresAt: expires, Life: expires.Sub(now)}, nil
}

// roundUp to a whole second, the grain of exp: rounded down, a token would live shorter than its TTL.
func roundUp(t time.Time) time.Time {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return time.Unix(seconds, 0).UTC()
}
