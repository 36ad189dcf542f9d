package idem

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key names one operation. Two calls with equal keys are the same operation, whoever makes them.
//
// The zero value is not a valid key: Type and ID must not be empty. Every part may hold any bytes;
// stores never put a raw part where its bytes could change the meaning of something else.
type Key struct {
	Tenant string // separates the customers of one installation; empty: none
	Type   string // the business type, or the action of a token, such as "order.create"
	Scope  string // the subject that the key belongs to; empty: every subject of the tenant shares it
	ID     string // the business key, the request id or the client-chosen key
}

// K is the key of a business operation without tenant or scope.
func K(businessType, id string) Key { return Key{Type: businessType, ID: id} }

// Digest is 43 characters of base64url over the length-prefixed parts. Lengths keep ("a","bc") and
// ("ab","c") apart, and the alphabet has no braces, so it can stand inside a Redis hash tag.
func (k Key) Digest() string { return Digest(k.Tenant, k.Type, k.Scope, k.ID) }

// Column is the key as one readable column of a ledger, next to columns for tenant and type.
// A scoped key reads "~scope~id"; parts that do not fit a column are replaced as Column describes.
func (k Key) Column() string {
	if k.Scope == "" {
		return Column(k.ID)
	}
	return "~" + Column(k.Scope) + "~" + Column(k.ID)
}

// fitted is the key with its parts as a ledger's columns have them; its Column is the same.
func (k Key) fitted() Key {
	return Key{Tenant: Column(k.Tenant), Type: Column(k.Type), Scope: Column(k.Scope), ID: Column(k.ID)}
}

// KeyOf is the inverse of Column for what a ledger reads from its columns. Parts that did not fit come back as Column replaced them, and claim
// the same record: Column leaves its own replacements alone.
func KeyOf(tenant, businessType, column string) Key {
	k := Key{Tenant: tenant, Type: businessType, ID: column}
	if rest, scoped := strings.CutPrefix(column, "~"); scoped && !replaced(column) {
		// The scope is up to the last "~" but one that can begin the id: an id that was replaced begins with one itself.
		at := strings.LastIndexByte(rest, '~')
		if at > 0 && rest[at-1] == '~' && replaced(rest[at:]) {
			at--
		}
		if at >= 0 { // else it is no row of ours
			k.Scope, k.ID = rest[:at], rest[at+1:]
		}
	}
	return k
}

// replaced reports whether a string has the form of Column's replacements.
func replaced(s string) bool {
	if len(s) != 1+2*sha256.Size || s[0] != '~' {
		return false
	}
	_, err := hex.DecodeString(s[1:])
	return err == nil && strings.ToLower(s) == s
}

// Digest is SHA-256 over the parts, each with its length in front, as base64url without padding.
func Digest(parts ...string) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}

// maxColumn keeps the primary key below the 2,704 bytes that a Postgres B-tree entry may have.
const maxColumn = 512

// Column makes any string fit a text column: as it is where it is at most 512 bytes of printable
// UTF-8 without "~", otherwise "~" and the hexadecimal SHA-256. Postgres text takes neither NUL nor
// broken UTF-8, and its index entries are bounded. Distinct strings stay distinct, save that a replacement stands for itself, too: whoever can send it
// knows the string.
func Column(s string) string {
	if replaced(s) {
		return s
	}
	if len(s) <= maxColumn && utf8.ValidString(s) && strings.IndexFunc(s, unfitting) < 0 {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "~" + hex.EncodeToString(sum[:])
}

// maxReason is how many bytes of a reason are kept.
const maxReason = 1000

// Reason makes a text that people wrote, or a driver, fit a text column: its first 1,000 bytes of whole UTF-8 without NUL.
func Reason(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "")
}

func unfitting(r rune) bool { return r == '~' || (!unicode.IsPrint(r) && r != ' ') }
