package tokens

import (
	"crypto/rand"

	"github.com/idemkit/idem"
)

// The bounds of what a token names, in characters.
const (
	minRequestID = 8
	maxName      = 128
	maxKeyID     = 64
	digestLength = 43
)

// ValidRequestID reports whether s can name an intention: 8 to 128 characters of A-Z a-z 0-9 . _ -
func ValidRequestID(s string) bool { return named(s, minRequestID, maxName) }

// ValidAction reports whether s can name what is permitted: 1 to 128 characters of A-Z a-z 0-9 . _ -
func ValidAction(s string) bool { return named(s, 1, maxName) }

// NewRequestID returns a fresh, unguessable request id: 26 characters of base32, at least 128 random bits.
func NewRequestID() string { return rand.Text() }

// SubjectDigest is what a token and a record say of a subject: 43 characters of base64url over tenant and subject, so
// that neither shows a session id, and no signing key takes part, so that rotating keys changes no record. The empty
// subject, nobody in particular, stays empty.
func SubjectDigest(tenant, subject string) string {
	if subject == "" {
		return ""
	}
	return idem.Digest(tenant, subject)
}

func validKeyID(s string) bool { return named(s, 1, maxKeyID) }

// validSubject holds a raw session id or an e-mail address back from being signed into something that anybody can read.
func validSubject(s string) bool {
	return s == "" || len(s) == digestLength && allBase64URL(s)
}

func named(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] != '.' && !base64URL(s[i]) {
			return false
		}
	}
	return true
}

func allBase64URL(s string) bool {
	for i := range len(s) {
		if !base64URL(s[i]) {
			return false
		}
	}
	return true
}

func base64URL(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
