package tokens

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	kindSeed   = "ed25519"
	kindPublic = "ed25519-pub"
)

var (
	errForm   = errors.New("it must read kid:base64, kid:ed25519:SEED or kid:ed25519-pub:KEY")
	errBase64 = errors.New("the key is not base64 (standard or URL alphabet, with or without padding)")
	errSeed   = fmt.Errorf("an Ed25519 seed must be %d bytes", ed25519.SeedSize)
)

// ParseKeys reads a ring from a setting such as IDEM_KEYS: keys parted by commas, the first of which signs. Each is
// kid:base64 (HS256, 32 bytes or more), kid:ed25519:SEED or kid:ed25519-pub:KEY (32 bytes of base64); base64 may use either
// alphabet and need not be padded. Blanks around a key are ignored. An error names the position, from 1, and what is
// allowed there, and shows nothing of the setting. Whether kids repeat is for New and NewVerifier to say.
func ParseKeys(setting string) ([]Key, error) {
	var ring []Key
	for i, entry := range strings.Split(setting, ",") {
		key, err := parseKey(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("tokens: key %d: %w", i+1, err)
		}
		ring = append(ring, key)
	}
	return ring, nil
}

func parseKey(entry string) (Key, error) {
	parts := strings.Split(entry, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return Key{}, errForm
	}
	id := parts[0]
	if !validKeyID(id) {
		return Key{}, errKeyID
	}
	if len(parts) == 3 && parts[1] != kindSeed && parts[1] != kindPublic {
		return Key{}, errForm
	}
	raw, err := decodeKey(parts[len(parts)-1])
	switch {
	case err != nil:
		return Key{}, err
	case len(parts) == 2:
		return HS256(id, raw)
	case parts[1] == kindPublic:
		return Ed25519Public(id, raw)
	case len(raw) != ed25519.SeedSize:
		return Key{}, errSeed
	}
	return Ed25519(id, ed25519.NewKeyFromSeed(raw))
}

// decodeKey reports no cause: base64's own error would show a position, and so the length, of a secret.
func decodeKey(text string) ([]byte, error) {
	encoding := base64.RawStdEncoding
	if strings.HasSuffix(text, "=") {
		encoding = base64.StdEncoding
	}
	if strings.ContainsAny(text, "\r\n") {
		return nil, errBase64
	}
	raw, err := encoding.Strict().DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(text))
	if err != nil {
		return nil, errBase64
	}
	return raw, nil
}

// GenerateHS256 returns a fresh secret in the form that ParseKeys reads. It fails only for an id that is no kid.
func GenerateHS256(id string) (string, error) {
	if !validKeyID(id) {
		return "", fmt.Errorf("tokens: %w", errKeyID)
	}
	return id + ":" + randomText(MinSecret), nil
}

// GenerateEd25519 returns a fresh pair in the form that ParseKeys reads: private for who issues, public for who only
// verifies. It fails only for an id that is no kid.
func GenerateEd25519(id string) (private, public string, err error) {
	if !validKeyID(id) {
		return "", "", fmt.Errorf("tokens: %w", errKeyID)
	}
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", "", fmt.Errorf("tokens: generating a key: %w", err)
	}
	private = id + ":" + kindSeed + ":" + base64.RawURLEncoding.EncodeToString(priv.Seed())
	public = id + ":" + kindPublic + ":" + base64.RawURLEncoding.EncodeToString(pub)
	return private, public, nil
}

// randomText needs no error: since Go 1.24 crypto/rand.Read never returns one.
func randomText(bytes int) string {
	raw := make([]byte, bytes)
	rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}
