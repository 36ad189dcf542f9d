package redisstore

import (
	"encoding/binary"

	"github.com/idemkit/idem"
)

// encodeKey joins tenant, type, scope and id, each with its length and one in front (a uvarint). A scope that is the record's subject and an id
// that is its request id, as those of tokens are, take one byte, a zero: a hash of short fields is stored at a third of the room, and 64 bytes are short.
// It is part of idem.Format.
func encodeKey(key idem.Key, subject, requestID string) []byte {
	parts, fields := [...]string{key.Tenant, key.Type, key.Scope, key.ID}, [...]string{"", "", subject, requestID}
	var out []byte
	for i, part := range parts {
		if part != "" && part == fields[i] {
			out = append(out, 0)
			continue
		}
		out = binary.AppendUvarint(out, uint64(len(part))+1)
		out = append(out, part...)
	}
	return out
}

// decodeKey is the reverse. False: these are not the parts of the key with this digest, be they damaged or left by a version that does not know of them
// and has written another subject or request id beside them.
func decodeKey(written, subject, requestID, digest string) (idem.Key, bool) {
	parts, fields := [4]string{}, [...]string{"", "", subject, requestID}
	rest := []byte(written)
	for i := range parts {
		size, left, err := length(rest)
		if err != nil || size > uint64(len(left))+1 {
			return idem.Key{}, false
		}
		if size == 0 {
			parts[i], rest = fields[i], left
			continue
		}
		parts[i], rest = string(left[:size-1]), left[size-1:]
	}
	key := idem.Key{Tenant: parts[0], Type: parts[1], Scope: parts[2], ID: parts[3]}
	return key, len(rest) == 0 && key.Digest() == digest
}
