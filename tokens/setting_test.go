package tokens_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/idemkit/idem/tokens"
)

func TestParseKeys(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xfb, 0xef, 0xff}, 11) // 33 bytes: "++/v" in one alphabet, "--_v" in the other
	seed, pub := base64.StdEncoding.EncodeToString(secret(2)), base64.RawURLEncoding.EncodeToString(public(3))
	short := base64.StdEncoding.EncodeToString(secret(1)[:31])
	good := "a:" + base64.StdEncoding.EncodeToString(secret(1))
	for name, c := range map[string]struct {
		setting string
		ring    string // ids and algorithms
		says    string
	}{
		"standard base64":         {setting: "a:" + base64.StdEncoding.EncodeToString(raw), ring: "[a (HS256)]"},
		"URL base64":              {setting: "a:" + base64.URLEncoding.EncodeToString(raw), ring: "[a (HS256)]"},
		"padded":                  {setting: good, ring: "[a (HS256)]"},
		"not padded":              {setting: strings.TrimRight(good, "="), ring: "[a (HS256)]"},
		"all kinds":               {setting: "e:ed25519:" + seed + ",p:ed25519-pub:" + pub + "," + good, ring: "[e (EdDSA) p (EdDSA) a (HS256)]"},
		"blanks around":           {setting: " " + good + " ,\n e:ed25519:" + seed + "\n", ring: "[a (HS256) e (EdDSA)]"},
		"empty":                   {setting: "", says: "key 1: it must read kid:base64, kid:ed25519:SEED or kid:ed25519-pub:KEY"},
		"comma at the end":        {setting: good + ",", says: "key 2: it must read"},
		"no kid":                  {setting: base64.StdEncoding.EncodeToString(secret('S')), says: "key 1: it must read"},
		"empty kid":               {setting: good + ",:" + seed, says: "key 2: the kid must be 1 to 64 characters of A-Z a-z 0-9 . _ -"},
		"kid and key swapped":     {setting: base64.StdEncoding.EncodeToString(secret('S')) + ":a", says: "key 1: the kid must be"},
		"swapped, fits a kid":     {setting: base64.RawStdEncoding.EncodeToString(secret('S')) + ":abcd", says: "key 1: tokens: an HS256 secret must be 32 bytes or more"},
		"too many parts":          {setting: "a:ed25519:" + seed + ":x", says: "key 1: it must read"},
		"unknown kind":            {setting: "a:rsa:" + seed, says: "key 1: it must read"},
		"not base64":              {setting: good + ",b:SSSSSSSS!", says: "key 2: the key is not base64 (standard or URL alphabet, with or without padding)"},
		"line break inside":       {setting: "a:" + seed[:8] + "\n" + seed[8:], says: "key 1: the key is not base64"},
		"wrong padding":           {setting: good + "=", says: "key 1: the key is not base64"},
		"unused bits set":         {setting: "a:" + strings.TrimRight(seed, "I=") + "J", says: "key 1: the key is not base64"},
		"HS256 of 31 bytes":       {setting: "a:" + short, says: "key 1: tokens: an HS256 secret must be 32 bytes or more"},
		"HS256 without a secret":  {setting: "a:", says: "key 1: tokens: an HS256 secret must be 32 bytes or more"},
		"seed of 31 bytes":        {setting: "a:ed25519:" + short, says: "key 1: an Ed25519 seed must be 32 bytes"},
		"public key of 31 bytes":  {setting: "a:ed25519-pub:" + short, says: "key 1: tokens: an Ed25519 public key must be 32 bytes"},
		"blank public key":        {setting: "a:ed25519-pub:" + strings.Repeat("A", 43), says: "lets anybody sign"},
		"kind and no key":         {setting: "a:ed25519", says: "key 1:"},
		"kind and an empty key":   {setting: "a:ed25519:", says: "key 1: an Ed25519 seed must be 32 bytes"},
		"kind in capital letters": {setting: "a:Ed25519:" + seed, says: "key 1: it must read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring, err := tokens.ParseKeys(c.setting)
			if c.says == "" && (err != nil || fmt.Sprint(ring) != c.ring) {
				t.Fatalf("got %v, %v; want %s", ring, err, c.ring)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("got %v, %v; want %q", ring, err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "SSSS") {
				t.Errorf("%q shows a key", err)
			}
			if err != nil && strings.Contains(err.Error(), "U1NT") {
				t.Errorf("%q shows a key in base64", err)
			}
		})
	}
}

func TestBothAlphabetsGiveOneKey(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xfb, 0xef, 0xff, 0xbe}, 8)
	var token string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		ring, err := tokens.ParseKeys("a:" + encoding.EncodeToString(raw))
		i := issuer(t, tokens.Config{Keys: must(t, ring, err)})
		if token == "" {
			issued, err := i.Issue(order())
			token = must(t, issued, err).Token
		}
		if _, err := i.Verify(token); err != nil {
			t.Error(err)
		}
	}
}

func TestGeneratedKeysParse(t *testing.T) {
	t.Parallel()
	shared, err := tokens.GenerateHS256("shared")
	must(t, shared, err)
	again, err := tokens.GenerateHS256("shared")
	must(t, again, err)
	seed, pub, err := tokens.GenerateEd25519("pair")
	must(t, seed, err)
	if shared == again {
		t.Error("two secrets are equal")
	}
	ring, err := tokens.ParseKeys(seed + "," + shared)
	i := issuer(t, tokens.Config{Keys: must(t, ring, err)})
	issued, err := i.Issue(order())
	must(t, issued, err)
	ring, err = tokens.ParseKeys(pub)
	v, verr := tokens.NewVerifier(tokens.Config{Keys: must(t, ring, err)})
	if got, err := must(t, v, verr).Verify(issued.Token); err != nil || got.KeyID != "pair" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := tokens.GenerateHS256("a:b"); err == nil {
		t.Error("HS256 with a colon in the kid")
	}
	if _, _, err := tokens.GenerateEd25519(""); err == nil {
		t.Error("Ed25519 without a kid")
	}
}
