package tokens_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/tokens"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func secret(fill byte) []byte { return bytes.Repeat([]byte{fill}, tokens.MinSecret) }

func private(fill byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(secret(fill)) }

func public(fill byte) ed25519.PublicKey {
	pub, _ := private(fill).Public().(ed25519.PublicKey)
	return pub
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func hs256(t testing.TB, id string, fill byte) tokens.Key {
	t.Helper()
	key, err := tokens.HS256(id, secret(fill))
	return must(t, key, err)
}

func edKey(t testing.TB, id string, fill byte) tokens.Key {
	t.Helper()
	key, err := tokens.Ed25519(id, private(fill))
	return must(t, key, err)
}

func edPublic(t testing.TB, id string, fill byte) tokens.Key {
	t.Helper()
	key, err := tokens.Ed25519Public(id, public(fill))
	return must(t, key, err)
}

func issuer(t testing.TB, c tokens.Config) *tokens.Issuer {
	t.Helper()
	i, err := tokens.New(c)
	return must(t, i, err)
}

func order() tokens.Grant {
	return tokens.Grant{Action: "order.create", RequestID: "request-0001", Subject: tokens.SubjectDigest("", "ann")}
}

// object is a JSON object; forged ones are signed by hand, with nothing of golang-jwt, as an oracle of its own.
type object map[string]any

func (o object) with(name string, value any) object {
	changed := maps.Clone(o)
	changed[name] = value
	return changed
}

func (o object) without(name string) object {
	changed := maps.Clone(o)
	delete(changed, name)
	return changed
}

func goodHeader() object { return object{"alg": "HS256", "kid": "a"} }

func goodClaims() object {
	return object{
		"jti": "MFRGGZDFMZTWQ2LKNNWG23TPOA", "rid": "request-0001", "act": "order.create",
		"sub": tokens.SubjectDigest("", "ann"), "iss": "idem",
		"iat": noon().Unix(), "exp": noon().Add(time.Hour).Unix(),
	}
}

func segment(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func unsigned(t testing.TB, header, claims any) string {
	t.Helper()
	return segment(asJSON(t, header)) + "." + segment(asJSON(t, claims))
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	if raw, ok := v.(string); ok {
		return []byte(raw)
	}
	raw, err := json.Marshal(v)
	return must(t, raw, err)
}

func signHMAC(text string, key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + segment(mac.Sum(nil))
}

func signEd25519(text string, key ed25519.PrivateKey) string {
	return text + "." + segment(ed25519.Sign(key, []byte(text)))
}

// decode shows a token's header and claims as they stand on the wire.
func decode(t testing.TB, token string) (header, claims object) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, into := range []*object{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err := json.Unmarshal(must(t, raw, err), into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}
