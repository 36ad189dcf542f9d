package tokens_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idemkit/idem/tokens"
)

// Each step of a rotation runs beside the one before it while it is deployed: both must take what the other signs.
func TestRotationRefusesNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after tokens.Key }{
		"HS256 to HS256": {before: hs256(t, "old", 1), after: hs256(t, "new", 2)},
		"HS256 to EdDSA": {before: hs256(t, "old", 1), after: edKey(t, "new", 2)},
		"EdDSA to HS256": {before: edKey(t, "old", 1), after: hs256(t, "new", 2)},
		"same material":  {before: hs256(t, "old", 1), after: hs256(t, "new", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []*tokens.Issuer{
				issuer(t, tokens.Config{Keys: []tokens.Key{c.before}}),
				issuer(t, tokens.Config{Keys: []tokens.Key{c.before, c.after}}),
				issuer(t, tokens.Config{Keys: []tokens.Key{c.after, c.before}}),
				issuer(t, tokens.Config{Keys: []tokens.Key{c.after}}),
			}
			signedBy := []string{"old", "old", "new", "new"}
			var signed []tokens.Issued
			for n, step := range steps {
				issued, err := step.Issue(order())
				signed = append(signed, must(t, issued, err))
				for _, neighbour := range steps[max(0, n-1):min(len(steps), n+2)] {
					got, err := neighbour.Verify(issued.Token)
					if err != nil || got.KeyID != signedBy[n] {
						t.Errorf("token of step %d: %+v, %v", n, got, err)
					}
				}
			}
			if _, err := steps[3].Verify(signed[0].Token); !errors.Is(err, tokens.ErrInvalid) {
				t.Errorf("the removed key still verifies: %v", err)
			}
			if signed[0].Key("shop") != signed[3].Key("shop") {
				t.Error("rotating changed the record")
			}
		})
	}
}

func TestVerifyOnlyRing(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{edKey(t, "e", 2)}})
	issued, err := i.Issue(order())
	must(t, issued, err)
	only := tokens.Config{Keys: []tokens.Key{edPublic(t, "e", 2)}}
	v, err := tokens.NewVerifier(only)
	if got, err := must(t, v, err).Verify(issued.Token); err != nil || got.Grant != order() {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := tokens.New(only); err == nil {
		t.Error("a ring of public keys must not issue")
	}
	for name, c := range map[string]tokens.Config{
		"no keys":   {},
		"zero key":  {Keys: []tokens.Key{{}}},
		"kid twice": {Keys: []tokens.Key{edPublic(t, "e", 2), hs256(t, "e", 1)}},
	} {
		if _, err := tokens.NewVerifier(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestIssuersWithOneKeyAndTwoNamesStayApart(t *testing.T) {
	t.Parallel()
	keys := []tokens.Key{hs256(t, "a", 1)}
	shop := issuer(t, tokens.Config{Keys: keys, Issuer: "shop"})
	club := issuer(t, tokens.Config{Keys: keys, Issuer: "club"})
	issued, err := shop.Issue(order())
	must(t, issued, err)
	if _, err := club.Verify(issued.Token); !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// Rotating a signing key in three deployments. The keys here stand for secrets from the environment.
func Example_rotation() {
	const (
		march = "2026-03:bWFyY2gtbWFyY2gtbWFyY2gtbWFyY2gtbWFyY2gtbWFyY2g"
		april = "2026-04:YXByaWwtYXByaWwtYXByaWwtYXByaWwtYXByaWwtYXByaWw"
	)
	var waiting string // a token in a form that somebody fills in meanwhile
	for _, setting := range []string{march, march + "," + april, april + "," + march, april} {
		keys, err := tokens.ParseKeys(setting)
		if err != nil {
			fmt.Println(err)
			return
		}
		issuer, err := tokens.New(tokens.Config{Keys: keys, TTL: 30 * time.Minute})
		if err != nil {
			fmt.Println(err)
			return
		}
		if waiting != "" {
			_, err = issuer.Verify(waiting)
			fmt.Println(keys, "taken:", err == nil)
		}
		if issued, err := issuer.Issue(tokens.Grant{Action: "order.create"}); waiting == "" && err == nil {
			waiting = issued.Token
		}
	}
	// Output:
	// [2026-03 (HS256) 2026-04 (HS256)] taken: true
	// [2026-04 (HS256) 2026-03 (HS256)] taken: true
	// [2026-04 (HS256)] taken: false
}

func ExampleIssuer() {
	setting, err := tokens.GenerateHS256("first")
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := tokens.ParseKeys(setting)
	if err != nil {
		fmt.Println(err)
		return
	}
	issuer, err := tokens.New(tokens.Config{Keys: keys})
	if err != nil {
		fmt.Println(err)
		return
	}
	issued, err := issuer.Issue(tokens.Grant{Action: "order.create", Subject: tokens.SubjectDigest("", "ann")})
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := issuer.Verify(issued.Token)
	fmt.Println(claims.Action, claims.RequestID == issued.RequestID, claims.Expired, err)
	// Output: order.create true false <nil>
}
