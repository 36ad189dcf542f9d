package idem

import (
	"crypto/rand"
	"fmt"
	"time"
)

// Request asks a store for the right to execute one operation.
type Request struct {
	Key         Key           // what is to happen once
	Subject     string        // digest of who asks; empty: nobody in particular
	RequestID   string        // the intention behind the call; empty: none. Unique per tenant, type and subject in a ledger
	Fingerprint []byte        // digest of the payload; empty matches any
	Shared      bool          // another subject's record answers instead of being Foreign
	Owner       string        // unique for this call: by it a store recognises its own repeated command
	Lease       time.Duration // how long the claim stands without renewal; at least MinLease
	Retention   time.Duration // how long the record is kept after its last change, at least; no shorter than the lease
	Exclusive   bool          // a lock: a record that vanished is lost, not written again, for it may be somebody else's by now
	Ledger      string        // entrance stores only: the ledger that decides; a token they do not know is then vouched for
}

// MinLease is the shortest lease: Redis counts milliseconds.
const MinLease = time.Millisecond

// NewOwner returns an unguessable name for one call, 26 characters of base32.
func NewOwner() string { return rand.Text() }

// Validate reports ErrInvalid, with the field and what it may be. Zero is not "unset": a record
// without a lease would lock its key for ever, one without retention would never be cleaned up.
func (q Request) Validate() error {
	switch {
	case q.Key.Type == "":
		return fmt.Errorf("%w: the key has no type; name the business operation, such as \"order.create\"", ErrInvalid)
	case q.Key.ID == "":
		return fmt.Errorf("%w: the key has no id; an empty one would be shared by every caller", ErrInvalid)
	case q.Owner == "":
		return fmt.Errorf("%w: no owner; use NewOwner", ErrInvalid)
	case q.Lease < MinLease:
		return fmt.Errorf("%w: lease %v; it must be at least %v", ErrInvalid, q.Lease, MinLease)
	case q.Retention < q.Lease:
		return fmt.Errorf("%w: retention %v is shorter than the lease %v", ErrInvalid, q.Retention, q.Lease)
	}
	return nil
}

// Claim is the right to execute, held until its lease ends. Owner and Attempt together are the
// fence: a store accepts a write of this claim only while both still stand in the record.
type Claim struct {
	Request
	Attempt int // 1 for the first claim of a key; one more at each further claim
}

// OutboundKey is the same on every attempt of one operation, that of a janitor included, whose key a ledger's columns gave back: hand it to a gateway as its
// own idempotency key. 43 characters of base64url, unguessable only as far as the key is.
func (c Claim) OutboundKey() string { return c.Key.fitted().Digest() }

// Token is what an entrance store keeps of a one-time token.
type Token struct {
	ID        string        // the token's own random id (claim jti)
	Key       Key           // the record that it permits to claim; Key.ID is the request id
	TTL       time.Duration // life of the token, at least MinLease
	Retention time.Duration // the record, if there is one already, lives at least as long as this from now
}
