package tokens_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/idemkit/idem/tokens"
)

func TestKeysAreChecked(t *testing.T) {
	t.Parallel()
	swapped := append(append(ed25519.PrivateKey{}, private(1)[:32]...), public(2)...)
	for name, c := range map[string]struct {
		make func() (tokens.Key, error)
		says string // empty: accepted
	}{
		"HS256, 32 bytes":        {make: func() (tokens.Key, error) { return tokens.HS256("a", secret(1)) }},
		"HS256, 64 bytes":        {make: func() (tokens.Key, error) { return tokens.HS256("a", make([]byte, 64)) }},
		"HS256, 31 bytes":        {make: func() (tokens.Key, error) { return tokens.HS256("a", make([]byte, 31)) }, says: "32 bytes or more"},
		"HS256, nil":             {make: func() (tokens.Key, error) { return tokens.HS256("a", nil) }, says: "32 bytes or more"},
		"Ed25519":                {make: func() (tokens.Key, error) { return tokens.Ed25519("a", private(1)) }},
		"Ed25519, nil":           {make: func() (tokens.Key, error) { return tokens.Ed25519("a", nil) }, says: "64 bytes"},
		"Ed25519, a seed":        {make: func() (tokens.Key, error) { return tokens.Ed25519("a", secret(1)) }, says: "64 bytes"},
		"Ed25519, another half":  {make: func() (tokens.Key, error) { return tokens.Ed25519("a", swapped) }, says: "second half"},
		"public":                 {make: func() (tokens.Key, error) { return tokens.Ed25519Public("a", public(1)) }},
		"public, a private key":  {make: func() (tokens.Key, error) { return tokens.Ed25519Public("a", ed25519.PublicKey(private(1))) }, says: "must be 32 bytes"},
		"public, nil":            {make: func() (tokens.Key, error) { return tokens.Ed25519Public("a", nil) }, says: "must be 32 bytes"},
		"kid of 64 characters":   {make: func() (tokens.Key, error) { return tokens.HS256(strings.Repeat("k", 64), secret(1)) }},
		"kid of every character": {make: func() (tokens.Key, error) { return tokens.HS256("azAZ09._-", secret(1)) }},
		"kid empty":              {make: func() (tokens.Key, error) { return tokens.HS256("", secret(1)) }, says: "kid must be 1 to 64"},
		"kid of 65 characters":   {make: func() (tokens.Key, error) { return tokens.Ed25519(strings.Repeat("k", 65), private(1)) }, says: "kid must be 1 to 64"},
		"kid with a slash":       {make: func() (tokens.Key, error) { return tokens.Ed25519Public("a/b", public(1)) }, says: "kid must be 1 to 64"},
		"kid not ASCII":          {make: func() (tokens.Key, error) { return tokens.HS256("schlüssel", secret(1)) }, says: "kid must be 1 to 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := c.make()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, %v; want %q", key, err, c.says)
			}
		})
	}
}

// The points of order 1, 2, 4 and 8: a blank public key in a setting would let anybody sign.
func TestWeakPublicKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]string{
		"blank, order 4":       strings.Repeat("00", 32),
		"order 4, negative":    strings.Repeat("00", 31) + "80",
		"neutral element":      "01" + strings.Repeat("00", 31),
		"order 2":              "ec" + strings.Repeat("ff", 30) + "7f",
		"order 8":              "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"order 8, negative":    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"order 8, the other":   "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"order 8, its inverse": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := hex.DecodeString(point)
			if key, err := tokens.Ed25519Public("a", must(t, raw, err)); err == nil {
				t.Errorf("accepted as %v", key)
			}
		})
	}
}

func TestKeyTellsWhatItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key     tokens.Key
		id, alg string
		signs   bool
	}{
		"HS256":   {key: hs256(t, "a", 1), id: "a", alg: "HS256", signs: true},
		"Ed25519": {key: edKey(t, "e", 1), id: "e", alg: "EdDSA", signs: true},
		"public":  {key: edPublic(t, "p", 1), id: "p", alg: "EdDSA"},
		"zero":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.key.ID() != c.id || c.key.Algorithm() != c.alg || c.key.CanSign() != c.signs {
				t.Errorf("id %q, alg %q, signs %v", c.key.ID(), c.key.Algorithm(), c.key.CanSign())
			}
			if want := c.id + " (" + c.alg + ")"; c.key.String() != want {
				t.Errorf("reads %q, want %q", c.key, want)
			}
		})
	}
}

// A configuration that lands in a log must not give the ring away, wherever the key stands in it.
func TestPrintingShowsNoKeyMaterial(t *testing.T) {
	t.Parallel()
	key := hs256(t, "a", 'S')
	type hidden struct{ keys []tokens.Key } // unexported: fmt calls no String here
	for name, value := range map[string]any{
		"key": key, "pointer": &key, "config": tokens.Config{Keys: []tokens.Key{key}}, "hidden": hidden{keys: []tokens.Key{key}},
		"issuer": issuer(t, tokens.Config{Keys: []tokens.Key{key}}),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, value)
			for _, trace := range []string{"SSSS", "83 83 83", "0x53, 0x53", hex.EncodeToString(secret('S'))} {
				if strings.Contains(text, trace) {
					t.Errorf("%s of %s shows %q", verb, name, text)
				}
			}
		}
	}
	raw, err := json.Marshal(key)
	if string(must(t, raw, err)) != "{}" {
		t.Errorf("JSON %s", raw)
	}
}

func TestKeysAreCopied(t *testing.T) {
	t.Parallel()
	own := secret(1)
	key, err := tokens.HS256("a", own)
	must(t, key, err)
	i := issuer(t, tokens.Config{Keys: []tokens.Key{key}})
	first, err := i.Issue(order())
	must(t, first, err)
	clear(own)
	if _, err := i.Verify(first.Token); err != nil {
		t.Errorf("the ring changed with the caller's slice: %v", err)
	}
}
