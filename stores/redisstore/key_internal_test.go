package redisstore

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
)

func TestKeyComesBackByteForByte(t *testing.T) {
	t.Parallel()
	// Few letters, so that parts are often alike.
	part := rapid.OneOf(rapid.StringMatching(`[ab]{0,2}`), rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }))
	rapid.Check(t, func(t *rapid.T) {
		key := idem.Key{Tenant: part.Draw(t, "tenant"), Type: part.Draw(t, "type"), Scope: part.Draw(t, "scope"), ID: part.Draw(t, "id")}
		subject, requestID := part.Draw(t, "subject"), part.Draw(t, "request id")
		written := string(encodeKey(key, subject, requestID))
		if got, ok := decodeKey(written, subject, requestID, key.Digest()); !ok || got != key {
			t.Fatalf("%+v came back as %+v, %v", key, got, ok)
		}
		if _, ok := decodeKey(written[:rapid.IntRange(0, len(written)-1).Draw(t, "cut")], subject, requestID, key.Digest()); ok {
			t.Fatal("cut short it is still read")
		}
		if _, ok := decodeKey(written+"x", subject, requestID, key.Digest()); ok {
			t.Fatal("with more behind it is still read")
		}
	})
}

func TestKeyThatDoesNotBelong(t *testing.T) {
	t.Parallel()
	key := idem.Key{Type: "t", Scope: "alice", ID: "r"}
	written := string(encodeKey(key, "alice", "r"))
	tests := map[string]struct{ written, subject, requestID, digest string }{
		"nothing":             {"", "alice", "r", key.Digest()},
		"another subject":     {written, "bob", "r", key.Digest()},
		"another request id":  {written, "alice", "s", key.Digest()},
		"another digest":      {written, "alice", "r", idem.K("t", "r").Digest()},
		"a length beyond all": {strings.Repeat("\xff", 9) + "\x01", "alice", "r", key.Digest()},
		"no length":           {strings.Repeat("\xff", 11), "alice", "r", key.Digest()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := decodeKey(test.written, test.subject, test.requestID, test.digest); ok {
				t.Errorf("read as %+v", got)
			}
		})
	}
}

// A token's key, with digests of 43 characters as scope and request ids of 26, stays within what a compact hash may hold.
func TestKeyIsShort(t *testing.T) {
	t.Parallel()
	subject, id := strings.Repeat("s", 43), strings.Repeat("i", 26)
	for name, key := range map[string]idem.Key{
		"of a token":    {Tenant: "acme", Type: "order.create", Scope: subject, ID: id},
		"of a header":   {Type: "POST /api/transfers", Scope: subject, ID: strings.Repeat("k", 36)},
		"of a business": {Tenant: "acme", Type: "refund.create", ID: strings.Repeat("k", 36)},
	} {
		if got := len(encodeKey(key, subject, id)); got > 64 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
