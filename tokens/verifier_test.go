package tokens_test

import (
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

// verifier knows the kids a (HS256) and e (Ed25519, public half alone), at noon.
func verifier(t testing.TB) *tokens.Verifier {
	t.Helper()
	v, err := tokens.NewVerifier(tokens.Config{
		Keys: []tokens.Key{edPublic(t, "e", 2), hs256(t, "a", 1)}, Now: at(noon()),
	})
	return must(t, v, err)
}

func TestVerifyRefusesForgedTokens(t *testing.T) {
	t.Parallel()
	header, claims := goodHeader(), goodClaims()
	edHeader := object{"alg": "EdDSA", "kid": "e"}
	good := signHMAC(unsigned(t, header, claims), secret(1))
	signature := good[strings.LastIndex(good, ".")+1:]
	for name, token := range map[string]string{
		"empty":                           "",
		"blank":                           " ",
		"no dots":                         "token",
		"dots alone":                      "..",
		"two parts":                       unsigned(t, header, claims),
		"empty signature":                 unsigned(t, header, claims) + ".",
		"four parts":                      good + ".",
		"JWE, five parts":                 good + "." + signature + "." + signature,
		"wrong secret":                    signHMAC(unsigned(t, header, claims), secret(9)),
		"wrong private key":               signEd25519(unsigned(t, edHeader, claims), private(9)),
		"truncated by one":                good[:len(good)-1],
		"truncated signature":             good[:len(good)-20],
		"other claims, same signature":    unsigned(t, header, claims.with("act", "refund")) + "." + signature,
		"alg none, unsigned":              unsigned(t, object{"alg": "none", "kid": "a"}, claims) + ".",
		"alg none, signed":                signHMAC(unsigned(t, object{"alg": "none", "kid": "a"}, claims), secret(1)),
		"alg None":                        unsigned(t, object{"alg": "None", "kid": "a"}, claims) + ".",
		"alg missing":                     signHMAC(unsigned(t, object{"kid": "a"}, claims), secret(1)),
		"alg a number":                    signHMAC(unsigned(t, object{"alg": 256, "kid": "a"}, claims), secret(1)),
		"alg unknown":                     signHMAC(unsigned(t, object{"alg": "HS1", "kid": "a"}, claims), secret(1)),
		"alg HS512 for an HS256 kid":      signHMAC(unsigned(t, object{"alg": "HS512", "kid": "a"}, claims), secret(1)),
		"alg EdDSA for an HS256 kid":      signEd25519(unsigned(t, object{"alg": "EdDSA", "kid": "a"}, claims), private(2)),
		"HS256 with the public key":       signHMAC(unsigned(t, object{"alg": "HS256", "kid": "e"}, claims), public(2)),
		"HS256 kid with the public key":   signHMAC(unsigned(t, header, claims), public(2)),
		"kid unknown":                     signHMAC(unsigned(t, header.with("kid", "b"), claims), secret(1)),
		"kid missing":                     signHMAC(unsigned(t, header.without("kid"), claims), secret(1)),
		"kid empty":                       signHMAC(unsigned(t, header.with("kid", ""), claims), secret(1)),
		"kid null":                        signHMAC(unsigned(t, header.with("kid", nil), claims), secret(1)),
		"kid a list":                      signHMAC(unsigned(t, header.with("kid", []string{"a"}), claims), secret(1)),
		"kid of the other key":            signHMAC(unsigned(t, header.with("kid", "e"), claims), secret(1)),
		"crit":                            signHMAC(unsigned(t, header.with("crit", []string{"b64"}).with("b64", false), claims), secret(1)),
		"crit empty":                      signHMAC(unsigned(t, header.with("crit", []string{}), claims), secret(1)),
		"crit null":                       signHMAC(unsigned(t, header.with("crit", nil), claims), secret(1)),
		"embedded jwk":                    signHMAC(unsigned(t, header.with("jwk", object{"kty": "oct", "k": segment(secret(9))}), claims), secret(9)),
		"jku":                             signHMAC(unsigned(t, header.with("jku", "http://127.0.0.1/keys"), claims), secret(9)),
		"header not JSON":                 signHMAC(unsigned(t, "{", claims), secret(1)),
		"header null":                     signHMAC(unsigned(t, "null", claims), secret(1)),
		"header with trailing data":       signHMAC(unsigned(t, `{"alg":"HS256","kid":"a"}{}`, claims), secret(1)),
		"nested JSON":                     signHMAC(unsigned(t, strings.Repeat("[", 1000), claims), secret(1)),
		"padded base64":                   good + "=",
		"standard alphabet":               strings.ReplaceAll(strings.ReplaceAll(good, "-", "+"), "_", "/") + "+",
		"blank in front":                  " " + good,
		"line break behind":               good + "\n",
		"line break in the signature":     good[:len(good)-3] + "\n" + good[len(good)-3:],
		"carriage return in the header":   good[:3] + "\r" + good[3:],
		"NUL behind":                      good + "\x00",
		"scheme in front":                 "Bearer " + good,
		"JSON serialisation":              `{"payload":"` + segment(asJSON(t, claims)) + `"}`,
		"just above 4 KiB":                strings.Repeat("A", tokens.MaxLength+1),
		"authentic, but above 4 KiB":      signHMAC(unsigned(t, header.with("x", strings.Repeat("y", 4096)), claims), secret(1)),
		"1 MiB":                           strings.Repeat("A", 1<<20),
		"1 MiB of dots":                   strings.Repeat(".", 1<<20),
		"1 MiB behind an authentic token": good + strings.Repeat("A", 1<<20),
		"not UTF-8":                       "\xff\xfe.\xff.\xff",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := verifier(t).Verify(token)
			if !errors.Is(err, tokens.ErrInvalid) {
				t.Fatalf("got %+v, %v; want ErrInvalid", got, err)
			}
			if got != (tokens.Claims{}) {
				t.Errorf("claims %+v came with the error", got)
			}
		})
	}
}

func TestVerifyRefusesAuthenticTokensWithBadClaims(t *testing.T) {
	t.Parallel()
	claims := goodClaims()
	for name, bad := range map[string]any{
		"jti missing":                claims.without("jti"),
		"jti too short to be random": claims.with("jti", "1234567"),
		"jti with a brace":           claims.with("jti", "MFRGGZDFMZTWQ2LKNNWG23TPO}"),
		"rid missing":                claims.without("rid"),
		"rid too short":              claims.with("rid", "1234567"),
		"rid too long":               claims.with("rid", strings.Repeat("r", 129)),
		"rid with a blank":           claims.with("rid", "request 0001"),
		"rid a number":               claims.with("rid", 12345678),
		"act missing":                claims.without("act"),
		"act empty":                  claims.with("act", ""),
		"act too long":               claims.with("act", strings.Repeat("a", 129)),
		"act with a slash":           claims.with("act", "order/create"),
		"sub missing":                claims.without("sub"),
		"sub null":                   claims.with("sub", nil),
		"sub a raw session id":       claims.with("sub", "ann@example.com"),
		"sub 43 characters, one bad": claims.with("sub", strings.Repeat("a", 42)+"."),
		"iat missing":                claims.without("iat"),
		"iat null":                   claims.with("iat", nil),
		"iat a string":               claims.with("iat", "1"),
		"iat 61 s ahead":             claims.with("iat", noon().Add(61*time.Second).Unix()),
		"iat before the year 1":      claims.with("iat", -1<<62),
		"exp missing":                claims.without("exp"),
		"exp a fraction":             claims.with("exp", 1e9+0.5),
		"exp beyond the year 9999":   claims.with("exp", 1<<62),
		"exp beyond an int64":        claims.with("exp", 1e300),
		"exp before iat":             claims.with("exp", noon().Add(-time.Second).Unix()),
		"exp at iat":                 claims.with("exp", noon().Unix()),
		"iss missing":                claims.without("iss"),
		"iss another":                claims.with("iss", "Idem"),
		"iss a list":                 claims.with("iss", []string{"idem"}),
		"not an object":              "[]",
		"null":                       "null",
		"empty":                      "",
		"not JSON":                   `{"jti":`,
		"trailing data":              string(asJSON(t, claims)) + "{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := signHMAC(unsigned(t, goodHeader(), bad), secret(1))
			got, err := verifier(t).Verify(token)
			if !errors.Is(err, tokens.ErrInvalid) {
				t.Fatalf("got %+v, %v; want ErrInvalid", got, err)
			}
			if errors.Is(err, idem.ErrInvalid) {
				t.Error("a forged token must not pass for an invalid request")
			}
		})
	}
}

func TestVerifyAccepts(t *testing.T) {
	t.Parallel()
	claims := goodClaims()
	for name, c := range map[string]struct {
		header, claims object
		expired        bool
	}{
		"as issued":               {header: goodHeader(), claims: claims},
		"nobody in particular":    {header: goodHeader(), claims: claims.with("sub", "")},
		"iat 59 s ahead":          {header: goodHeader(), claims: claims.with("iat", noon().Add(59*time.Second).Unix())},
		"iat 60 s ahead":          {header: goodHeader(), claims: claims.with("iat", noon().Add(time.Minute).Unix())},
		"issued at the epoch":     {header: goodHeader(), claims: claims.with("iat", 0)},
		"a second left":           {header: goodHeader(), claims: claims.with("exp", noon().Add(time.Second).Unix()), expired: false},
		"expired at this instant": {header: goodHeader(), claims: claims.with("iat", 1).with("exp", noon().Unix()), expired: true},
		"expired long ago":        {header: goodHeader(), claims: claims.with("iat", 1).with("exp", 2), expired: true},
		"unknown header fields": {
			header: goodHeader().with("typ", "JWT").with("jku", "http://127.0.0.1/").with("jwk", object{"k": "x"}), claims: claims,
		},
		"unknown claims": {header: goodHeader(), claims: claims.with("aud", "x").with("nbf", noon().Add(time.Hour).Unix())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := verifier(t).Verify(signHMAC(unsigned(t, c.header, c.claims), secret(1)))
			if err != nil {
				t.Fatal(err)
			}
			if got.Expired != c.expired {
				t.Errorf("expired %v, want %v", got.Expired, c.expired)
			}
			if got.KeyID != "a" || got.ID != claims["jti"] || got.RequestID != "request-0001" || got.Subject != c.claims["sub"] {
				t.Errorf("claims %+v", got)
			}
		})
	}
}

func TestVerifyAcceptsEd25519(t *testing.T) {
	t.Parallel()
	token := signEd25519(unsigned(t, object{"alg": "EdDSA", "kid": "e"}, goodClaims()), private(2))
	got, err := verifier(t).Verify(token)
	if err != nil || got.Action != "order.create" || got.KeyID != "e" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// Decoding 1 MiB once would allocate more than a hundred refusals may. Not parallel: what others allocate would count.
func TestVerifyLooksAtNothingOversized(t *testing.T) {
	v := verifier(t)
	header := segment(asJSON(t, goodHeader()))
	token := header + "." + strings.Repeat("A", 1<<20) + "." + header
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := v.Verify(token); !errors.Is(err, tokens.ErrInvalid) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 256<<10 {
		t.Errorf("%d bytes allocated", spent)
	}
}

func TestVerifyReadsOneSpellingOnly(t *testing.T) {
	t.Parallel()
	c := tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}, Now: at(noon())}
	i := issuer(t, c)
	issued, err := i.Issue(order())
	must(t, issued, err)
	parts := strings.Split(issued.Token, ".")
	for n, name := range []string{"header", "payload", "signature"} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[n])
		must(t, raw, err)
		for spelling, text := range map[string]string{
			"padded":      base64.URLEncoding.EncodeToString(raw) + "=",
			"standard":    base64.RawStdEncoding.EncodeToString(raw) + "/",
			"zero behind": segment(append(raw, 0)),
		} {
			changed := append([]string{}, parts...)
			changed[n] = text
			if _, err := i.Verify(strings.Join(changed, ".")); !errors.Is(err, tokens.ErrInvalid) {
				t.Errorf("%s %s: %v", name, spelling, err)
			}
		}
	}
}
