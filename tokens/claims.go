package tokens

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idemkit/idem"
)

// Grant is what a token permits: one action, for one intention, to one subject.
type Grant struct {
	Action    string // claim act: 1 to 128 characters of A-Z a-z 0-9 . _ -
	RequestID string // claim rid: 8 to 128 of the same. Empty when issuing: a fresh one
	Subject   string // claim sub: a SubjectDigest; empty: nobody in particular
}

// Key is the entrance record that the grant permits to claim. It does not depend on the token: a renewed one meets the
// same record.
func (g Grant) Key(tenant string) idem.Key {
	return idem.Key{Tenant: tenant, Type: g.Action, Scope: g.Subject, ID: g.RequestID}
}

func (g Grant) validate() error {
	switch {
	case !ValidAction(g.Action):
		return fmt.Errorf("%w: the action must be 1 to 128 characters of A-Z a-z 0-9 . _ -", idem.ErrInvalid)
	case !ValidRequestID(g.RequestID):
		return fmt.Errorf("%w: the request id must be 8 to 128 characters of A-Z a-z 0-9 . _ -", idem.ErrInvalid)
	case !validSubject(g.Subject):
		return fmt.Errorf("%w: the subject must be empty or a SubjectDigest", idem.ErrInvalid)
	}
	return nil
}

// Issued is a signed token. It is worth nothing until its TokenStore knows it or a ledger stands behind its route.
type Issued struct {
	Grant
	Token     string        // compact JWS, what the client sends back
	ID        string        // claim jti, by which a TokenStore keeps it
	ExpiresAt time.Time     // claim exp, UTC, a whole second
	Life      time.Duration // from signing to ExpiresAt: the TTL and what rounding up added; what a store keeps it for
}

// Claims is what a verified token says.
type Claims struct {
	Grant
	ID        string    // claim jti
	KeyID     string    // header kid: the key that signed
	IssuedAt  time.Time // claim iat, UTC
	ExpiresAt time.Time // claim exp, UTC
	Expired   bool      // now is at or past ExpiresAt. The caller decides: a result may stand under the token
}

// payload is the JWS payload. Pointers tell a missing claim from an empty one; whole numbers leave no second to read
// differently.
type payload struct {
	jwt.RegisteredClaims `json:"-"` // only for the methods of jwt.Claims: the parser is told not to call them

	ID        string  `json:"jti"`
	RequestID string  `json:"rid"`
	Action    string  `json:"act"`
	Subject   *string `json:"sub"`
	IssuedAt  *int64  `json:"iat"`
	ExpiresAt *int64  `json:"exp"`
	Issuer    string  `json:"iss"`
}

// The years 1 and 9999: beyond, time.Time wraps around.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

func (p payload) claims(keyID string, now time.Time) (Claims, error) {
	if p.Subject == nil || p.IssuedAt == nil || p.ExpiresAt == nil {
		return Claims{}, fmt.Errorf("%w: a claim is missing", ErrInvalid)
	}
	grant := Grant{Action: p.Action, RequestID: p.RequestID, Subject: *p.Subject}
	if grant.validate() != nil {
		return Claims{}, fmt.Errorf("%w: act, rid or sub", ErrInvalid)
	}
	iat, exp := *p.IssuedAt, *p.ExpiresAt
	switch {
	case !named(p.ID, minRequestID, maxName):
		return Claims{}, fmt.Errorf("%w: jti", ErrInvalid)
	case iat < firstSecond || exp > lastSecond || exp <= iat:
		return Claims{}, fmt.Errorf("%w: iat and exp", ErrInvalid)
	case time.Unix(iat, 0).After(now.Add(clockSkew)):
		return Claims{}, fmt.Errorf("%w: issued in the future", ErrInvalid)
	}
	expires := time.Unix(exp, 0).UTC()
	return Claims{
		Grant: grant, ID: p.ID, KeyID: keyID,
		IssuedAt: time.Unix(iat, 0).UTC(), ExpiresAt: expires, Expired: !now.Before(expires),
	}, nil
}
