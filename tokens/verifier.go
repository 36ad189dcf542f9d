package tokens

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// ErrInvalid says that a token is not authentic, or that it says what no token may say: malformed, larger than MaxLength,
// bad signature, unknown kid, an alg that is not the kid's, another issuer, issued in the future, claims that are missing or
// break their grammar. The text is for logs, not for whoever sent the token.
var ErrInvalid = errors.New("tokens: invalid token")

const (
	// MaxLength is the longest token in bytes that is looked at. What Issue signs is always shorter.
	MaxLength = 4096
	// DefaultIssuer is the claim iss where Config names none.
	DefaultIssuer = "idem"

	maxIssuer = 256
	clockSkew = time.Minute // how far ahead an issuing machine's clock may be
)

// Config is what New and NewVerifier are made from.
type Config struct {
	Keys   []Key            // the ring: all verify, the first signs; at least one, no kid twice
	Issuer string           // claim iss, 1 to 256 bytes of UTF-8; default "idem". Installations that share keys and differ in it refuse each other's tokens
	TTL    time.Duration    // life of a token, at least 1 ms; default 30 min. NewVerifier does not read it
	Now    func() time.Time // the clock, called concurrently; default time.Now
}

// Verifier judges tokens without input or output. It is immutable and safe for concurrent use.
type Verifier struct {
	keys   map[string]Key
	issuer string
	now    func() time.Time
	parser *jwt.Parser
}

// NewVerifier is for who verifies and does not issue: its ring may hold public keys alone.
func NewVerifier(c Config) (*Verifier, error) {
	if c.Issuer == "" {
		c.Issuer = DefaultIssuer
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.Issuer) > maxIssuer || !utf8.ValidString(c.Issuer) {
		return nil, fmt.Errorf("tokens: the issuer must be 1 to %d bytes of UTF-8", maxIssuer)
	}
	keys, err := ring(c.Keys)
	if err != nil {
		return nil, err
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg(), jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(),
	)
	return &Verifier{keys: keys, issuer: c.Issuer, now: c.Now, parser: parser}, nil
}

func ring(keys []Key) (map[string]Key, error) {
	if len(keys) == 0 {
		return nil, errors.New("tokens: no keys; make one with GenerateHS256")
	}
	byID := make(map[string]Key, len(keys))
	for i, key := range keys {
		if key.material == nil {
			return nil, fmt.Errorf("tokens: key %d is empty; use HS256, Ed25519, Ed25519Public or ParseKeys", i+1)
		}
		if _, twice := byID[key.id]; twice {
			return nil, fmt.Errorf("tokens: key %d has the kid of an earlier one; every kid must stand for one key", i+1)
		}
		byID[key.id] = key
	}
	return byID, nil
}

// Verify returns what an authentic token says. A token past its time is authentic still: its Claims come with Expired set
// and no error. Every error is an ErrInvalid. There is one accepted spelling of a token: padding, blanks, line breaks,
// other trailing bits of base64 and further parts are refused.
func (v *Verifier) Verify(token string) (Claims, error) {
	if len(token) > MaxLength || !compact(token) {
		return Claims{}, fmt.Errorf("%w: malformed", ErrInvalid)
	}
	var said payload
	parsed, err := v.parser.ParseWithClaims(token, &said, v.key)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if said.Issuer != v.issuer {
		return Claims{}, fmt.Errorf("%w: another issuer", ErrInvalid)
	}
	keyID, _ := parsed.Header["kid"].(string)
	return said.claims(keyID, v.now())
}

// compact is needed beside strict decoding: encoding/base64 skips line breaks even then.
func compact(token string) bool {
	for i := range len(token) {
		if token[i] != '.' && !base64URL(token[i]) {
			return false
		}
	}
	return true
}

// key finds the key by kid alone; the header's alg must be the one registered for it, and nothing else in the header is
// read. RFC 7515, section 4.1.11: what crit lists must be understood, and nothing here is.
func (v *Verifier) key(token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errors.New("crit is not supported")
	}
	keyID, _ := token.Header["kid"].(string)
	key, known := v.keys[keyID]
	if !known {
		return nil, errors.New("unknown kid")
	}
	if token.Method.Alg() != key.Algorithm() {
		return nil, errors.New("alg is not the one registered for the kid")
	}
	return key.material.verify(), nil
}
