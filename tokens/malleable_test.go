package tokens_test

import (
	"strings"
	"testing"

	"github.com/idemkit/idem/tokens"
)

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func signers(t testing.TB) map[string]*tokens.Issuer {
	t.Helper()
	return map[string]*tokens.Issuer{
		"HS256": issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1), edPublic(t, "e", 2)}, Now: at(noon())}),
		"EdDSA": issuer(t, tokens.Config{Keys: []tokens.Key{edKey(t, "e", 2), hs256(t, "a", 1)}, Now: at(noon())}),
	}
}

// One changed character anywhere, the unused bits at the end of each part included, must cost the token its authenticity.
func TestNoChangedCharacterVerifies(t *testing.T) {
	t.Parallel()
	for name, i := range signers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issued, err := i.Issue(order())
			token := must(t, issued, err).Token
			for at := range len(token) {
				for _, with := range replacements(token, at) {
					if _, err := i.Verify(token[:at] + with + token[at+1:]); err == nil {
						t.Errorf("%q at %d verifies", with, at)
					}
				}
			}
		})
	}
}

// replacements are all 64 characters where bits may be unused, and the neighbours elsewhere; and removing the character.
func replacements(token string, at int) []string {
	all := []string{"", ".", "=", "\n", "+"}
	here := strings.IndexByte(base64Alphabet, token[at])
	lastOfPart := at == len(token)-1 || token[at+1] == '.'
	for i := range base64Alphabet {
		if i != here && (lastOfPart || i == here^1 || i == here^32) {
			all = append(all, base64Alphabet[i:i+1])
		}
	}
	kept := all[:0]
	for _, with := range all {
		if with != token[at:at+1] {
			kept = append(kept, with)
		}
	}
	return kept
}

func TestNothingInsertedVerifies(t *testing.T) {
	t.Parallel()
	for name, i := range signers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issued, err := i.Issue(order())
			token := must(t, issued, err).Token
			for at := range len(token) + 1 {
				for _, with := range []string{"A", ".", "=", "\n", "\r", " ", "\x00"} {
					if _, err := i.Verify(token[:at] + with + token[at:]); err == nil {
						t.Errorf("%q inserted at %d verifies", with, at)
					}
				}
			}
		})
	}
}

// FuzzVerify: never a panic, and nothing verifies but what a holder of the keys signed, in its one spelling. Both algorithms
// are deterministic, so signing again by hand tells.
func FuzzVerify(f *testing.F) {
	all := signers(f)
	for _, i := range all {
		issued, err := i.Issue(tokens.Grant{Action: "order.create"})
		token := must(f, issued, err).Token
		f.Add(token)
		f.Add(token + "=")
		f.Add(token[:len(token)-1])
		f.Add(strings.Replace(token, ".", "..", 1))
	}
	f.Add(unsigned(f, object{"alg": "none", "kid": "a"}, goodClaims()) + ".")
	f.Add(signHMAC(unsigned(f, object{"alg": "HS256", "kid": "e"}, goodClaims()), public(2)))
	f.Fuzz(func(t *testing.T, token string) {
		text := token[:max(0, strings.LastIndexByte(token, '.'))]
		genuine := token == signHMAC(text, secret(1)) || token == signEd25519(text, private(2))
		for name, i := range all {
			if _, err := i.Verify(token); err == nil && !genuine {
				t.Errorf("%s: accepts %q", name, token)
			}
		}
	})
}
