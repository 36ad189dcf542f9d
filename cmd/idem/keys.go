package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"strings"

	"github.com/idemkit/idem/tokens"
)

const ed25519 = "ed25519"

// keys prints one line, ready for IDEM_KEYS; of a pair the other half, for services that only verify, goes to standard error.
func (p program) keys(_ context.Context, arguments []string) error {
	kid := "k" + strings.ToLower(rand.Text()[:8])
	words, err := p.flags("keys", "keys [-kid NAME] [ed25519]", arguments, 1, func(set *flag.FlagSet) {
		set.StringVar(&kid, "kid", kid, "name of the key, which must not be used for another; 1 to 64 characters of A-Z a-z 0-9 . _ -")
	})
	if err != nil {
		return err
	}
	if len(words) == 0 {
		key, err := tokens.GenerateHS256(kid)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, key)
		return err
	}
	if words[0] != ed25519 {
		p.complain("idem keys: there are no keys of the kind %q; there is ed25519, and HS256 without a word\n", words[0])
		return errMisuse
	}
	private, public, err := tokens.GenerateEd25519(kid)
	if err != nil {
		return err
	}
	p.complain("for services that only verify: %s\n", public)
	_, err = fmt.Fprintln(p.out, private)
	return err
}
