package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// forgery is a token that is not one of ours, made from one that is; with what it is to be refused.
type forgery struct {
	forge  func(token string) string
	status int
	code   string
}

// forgeries never reach a store.
func forgeries() map[string]forgery {
	invalid := func(forge func(string) string) forgery { return forgery{forge, http.StatusForbidden, "token_invalid"} }
	return map[string]forgery{
		"blank":             {func(string) string { return "  " }, http.StatusBadRequest, "token_missing"},
		"no token at all":   invalid(func(string) string { return "hello" }),
		"truncated":         invalid(func(t string) string { return t[:len(t)-3] }),
		"without signature": invalid(func(t string) string { return t[:strings.LastIndex(t, ".")+1] }),
		"two parts":         invalid(func(t string) string { return t[:strings.LastIndex(t, ".")] }),
		"four parts":        invalid(func(t string) string { return t + ".x" }),
		"another signature": invalid(func(t string) string { return t[:strings.LastIndex(t, ".")+1] + strings.Repeat("A", 43) }),
		"padded":            invalid(func(t string) string { return t + "=" }),
		"alg none": invalid(func(t string) string {
			head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"e2e"}`))
			return head + "." + strings.Split(t, ".")[1] + "."
		}),
		"alg none, its kid kept": invalid(func(t string) string {
			return resigned(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil)
		}),
		"unknown kid":       invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS256, []byte("guess"), "nobody") }),
		"no kid":            invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS256, []byte("guess"), "") }),
		"kid is a path":     invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS256, nil, "../../dev/null") }),
		"kid is a number":   invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS256, []byte("guess"), 7) }),
		"guessed secret":    invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS256, []byte("guess"), nil) }),
		"another algorithm": invalid(func(t string) string { return resigned(t, jwt.SigningMethodHS512, []byte("guess"), nil) }),
		"60 KiB":            invalid(func(t string) string { return t + strings.Repeat("x", 60<<10) }),
		"binary":            invalid(func(string) string { return "\xff\xfe.\x80.\xc3" }),
	}
}

// resigned has the claims of a token under another signature. A nil kid: the token's own; an empty one: none.
func resigned(token string, method jwt.SigningMethod, key, kid any) string {
	claims := jwt.MapClaims{}
	old, _, err := jwt.NewParser().ParseUnverified(token, claims)
	if err != nil {
		panic(err)
	}
	forged := jwt.NewWithClaims(method, claims)
	switch kid {
	case nil:
		forged.Header["kid"] = old.Header["kid"]
	case "":
	default:
		forged.Header["kid"] = kid
	}
	if key == nil {
		key = []byte{}
	}
	text, err := forged.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(t *testing.T) *backend{"memory and SQLite": embedded, "Redis and Postgres": redisAndPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, made(t))
			for name, f := range forgeries() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					v := visit(t, d)
					token, item := v.token(), v.item()
					a := v.submit(f.forge(token), "", one(item))
					v.wantRefused(a, f.status, f.code)
					v.discreet(a)
					v.wantFirst(v.submit(token, "", one(item)), 1)
					v.wantOrders(item, 1)
				})
			}
			for _, size := range []int{100 << 10, 1 << 20} {
				t.Run(fmt.Sprintf("%d KiB, which Go's server refuses by itself", size>>10), func(t *testing.T) {
					t.Parallel()
					v := visit(t, d)
					a := v.submit(strings.Repeat("x", size), "", one(v.item()))
					v.want(a, http.StatusRequestHeaderFieldsTooLarge)
					v.discreet(a)
				})
			}
		})
	}
}

// TestExpiredToken: refused where nothing was done under it, and the answer repeated where something was.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b, "IDEM_TOKEN_TTL=2s"))
		used, item := v.token(), v.item()
		first := v.submit(used, "", one(item))
		v.wantFirst(first, 1)
		unused, requestID := v.tokenFor("order.create")
		other := v.item()
		<-time.After(3100 * time.Millisecond) // exp is rounded up to a whole second
		v.wantRefused(v.submit(unused, "", one(other)), http.StatusConflict, "token_expired")
		v.wantReplay(v.submit(used, "", one(item)), first)

		renewal := v.post("/idem/token", fmt.Sprintf(`{"action":"order.create","requestId":%q}`, requestID))
		renewed := member[string](v, renewal, "token")
		v.demo.secret(renewed)
		v.wantFirst(v.submit(renewed, "", one(other)), 1)
		v.wantOrders(other, 1)
	})
}
