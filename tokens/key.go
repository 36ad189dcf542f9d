package tokens

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// MinSecret is the least number of bytes of an HS256 secret: RFC 7518, section 3.2 asks for the size of the hash.
const MinSecret = 32

// What is wrong with a key. No text shows any part of it: a key id may be a secret that was put in the wrong place.
var (
	errKeyID     = errors.New("the kid must be 1 to 64 characters of A-Z a-z 0-9 . _ -")
	errSecret    = fmt.Errorf("an HS256 secret must be %d bytes or more", MinSecret)
	errPrivate   = errors.New("an Ed25519 private key must be 64 bytes whose second half is the public key of the first")
	errPublic    = fmt.Errorf("an Ed25519 public key must be %d bytes", ed25519.PublicKeySize)
	errWeakPoint = errors.New("this Ed25519 public key has no private key and lets anybody sign")
)

// Key is a signing or verifying key with its id, the kid of a token's header. It is made by HS256, Ed25519,
// Ed25519Public or ParseKeys; the zero value is refused by New. However it is printed, it shows only id and algorithm.
type Key struct {
	id       string
	material *material
}

// material is never changed once made. The keys are behind functions, which fmt cannot look into: pointers it follows,
// where it may not call String and the verb does not fit.
type material struct {
	method jwt.SigningMethod
	sign   func() any // nil: verifies only
	verify func() any
}

// HS256 is a key that signs and verifies with HMAC-SHA-256. id is 1 to 64 characters of A-Z a-z 0-9 . _ - and the secret,
// which is copied, 32 random bytes or more.
func HS256(id string, secret []byte) (Key, error) {
	if len(secret) < MinSecret {
		return Key{}, fmt.Errorf("tokens: %w", errSecret)
	}
	own := slices.Clone(secret)
	return newKey(id, material{method: jwt.SigningMethodHS256, sign: behind(own), verify: behind(own)})
}

// Ed25519 is a key that signs and verifies with EdDSA. Use ed25519.NewKeyFromSeed for a seed of 32 bytes. A private key
// whose public half is not its own is refused: signatures made with such a pair give the private half away.
func Ed25519(id string, private ed25519.PrivateKey) (Key, error) {
	if len(private) != ed25519.PrivateKeySize {
		return Key{}, fmt.Errorf("tokens: %w", errPrivate)
	}
	own := ed25519.NewKeyFromSeed(private.Seed())
	if !own.Equal(private) {
		return Key{}, fmt.Errorf("tokens: %w", errPrivate)
	}
	return newKey(id, material{method: jwt.SigningMethodEdDSA, sign: behind(own), verify: behind(own.Public())})
}

// Ed25519Public is a key that verifies what Ed25519 signed, and cannot sign. It does not notice 32 bytes that are no point
// of the curve: under such a key nothing verifies.
func Ed25519Public(id string, public ed25519.PublicKey) (Key, error) {
	if len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("tokens: %w", errPublic)
	}
	if lowOrder(public) {
		return Key{}, fmt.Errorf("tokens: %w", errWeakPoint)
	}
	return newKey(id, material{method: jwt.SigningMethodEdDSA, verify: behind(slices.Clone(public))})
}

func behind(key any) func() any { return func() any { return key } }

func newKey(id string, m material) (Key, error) {
	if !validKeyID(id) {
		return Key{}, fmt.Errorf("tokens: %w", errKeyID)
	}
	return Key{id: id, material: &m}, nil
}

// lowOrder finds the points, 32 zero bytes among them, for which one message in at most eight is "signed" by the neutral
// element and 0. RFC 8032 leaves refusing them to the caller; for an honest key no such signature exists.
func lowOrder(public ed25519.PublicKey) bool {
	signature := make([]byte, ed25519.SignatureSize)
	signature[0] = 1
	for message := range 128 {
		if ed25519.Verify(public, []byte{byte(message)}, signature) {
			return true
		}
	}
	return false
}

// ID is the key's kid.
func (k Key) ID() string { return k.id }

// Algorithm is the only alg that a token of this kid may have: HS256 or EdDSA; empty for the zero value.
func (k Key) Algorithm() string {
	if k.material == nil {
		return ""
	}
	return k.material.method.Alg()
}

// CanSign reports whether the key can sign, and so may stand first in the ring of an Issuer.
func (k Key) CanSign() bool { return k.material != nil && k.material.sign != nil }

// String is id and algorithm, never the key itself.
func (k Key) String() string { return k.id + " (" + k.Algorithm() + ")" }

// GoString is String: %#v shows no more than %v does.
func (k Key) GoString() string { return k.String() }
