package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
)

// Config is what a guard is made from. At least a store or a ledger is needed.
type Config struct {
	// Tokens signs and verifies. Nil: this guard has key-guarded routes only.
	Tokens *tokens.Issuer
	// Store guards the entrance. Nil: the ledger does all of it, one round trip to it a call.
	Store idem.TokenStore
	// Ledger decides. Nil: what the store forgets can run again, and what it does not know is refused.
	Ledger idem.Ledger

	// Subject tells whose request it is, such as the owner of the session; it is called once a request, after the application's own
	// authentication. Empty: nobody is logged in, and tokens are bound to the browser by a cookie. Nil: always by the cookie.
	Subject func(*http.Request) string
	// Tenant separates the customers of one installation. Nil: there is one.
	Tenant func(*http.Request) string

	// ErrorPage puts the content of a refusal, HTML, into the application's own layout. Nil: a plain page of the kit's own.
	ErrorPage func(r *http.Request, p Problem, content templ.Component) templ.Component
	// Messages adds languages, or changes what the kit says in one: by language tag, such as "de" or "zh-Hant", then by code.
	// Languages without a text for a code fall back to English. A text has both title and detail.
	Messages map[string]Messages
	// Labels are the words around a refusal on a page, by the same tags. Languages without them, and each field that is empty, have the English ones.
	// RetryAfter has exactly one %d, for the seconds.
	Labels map[string]templates.Texts

	// Prefix is where Routes is mounted, as a problem's type, the components and the browser client name it. Default "/idem".
	Prefix string
	// TLS says that browsers see HTTPS although this process does not: TLS ends in front of it.
	TLS bool
	// Origins may use guarded routes and the token service from other origins' pages, such as "https://shop.example". Default: none. The preflight of a
	// guarded route is for the application's own CORS middleware: it must allow the headers Idempotent-Token and RequestIDHeader. To another
	// site browsers send no subject cookie, which is SameSite=Lax: there callers need a Subject.
	Origins []string
	// RequestIDHeader carries the request id in requests and answers: a header's name. Default "Idempotent-Request-Id".
	RequestIDHeader string

	// Lease is how long a claim stands without renewal; it is renewed every third while work goes on. Default 15 s, at least 1 ms.
	Lease time.Duration
	// Wait is how long a duplicate waits for the first. Default 10 s; negative: not at all, as the option Wait(0) of a route.
	Wait time.Duration
	// Limit is how long a handler's context lives. Default 30 s.
	Limit time.Duration
	// Retention is how long key and fingerprint are kept after the last change. Default 720 h, at least the life of a token.
	Retention time.Duration
	// ResultRetention is how long a result's headers and body are kept. Default 24 h; a redirect's, which has no body, for the Retention.
	ResultRetention time.Duration
	// BodyLimit is the largest request body in bytes. Default 10 MiB.
	BodyLimit int64
	// ResponseLimit is the largest answer in bytes that is kept and replayed; larger ones go through. Default 256 KiB.
	ResponseLimit int

	// TokenLimit is asked before the token service signs n tokens; a positive duration refuses, and is what Retry-After says. Nil: no limit.
	// subject is the digest that the tokens would be bound to, and empty for a browser that has no cookie yet.
	TokenLimit func(r *http.Request, subject string, n int) time.Duration

	// ServiceKeys let other services make the calls consume, extend, complete and fail of Routes, as Authorization: Bearer. Any of them will do, so that a key
	// can be changed without a gap; one that is taken away takes the claims along that were given out under it. None: these calls answer 404. Visible ASCII
	// without blanks; let them be long and random.
	ServiceKeys []string

	// PurgeEvery is the pause between rounds of Run. Default 10 min.
	PurgeEvery time.Duration
	// Compensations are run by Run for failed records of their business type; see idem.Janitor. They need the Ledger.
	Compensations map[string]idem.Work
	// Abandoned are business types besides those of this guard's routes, and those that services have claimed at it, that are this process's own, such as a
	// consumer's: what their claimers left behind is deleted by Run when lease and retention are over. Types with a Resolver are kept.
	Abandoned []string

	// Observe sees every event of the engine. It must be quick. Nil: nobody looks.
	Observe func(context.Context, idem.Event)
	// Logger gets what users are not shown. It never gets tokens, keys or payloads. Default slog.Default().
	Logger *slog.Logger
}

// Defaults of Config.
const (
	DefaultPrefix          = "/idem"
	DefaultRequestIDHeader = "Idempotent-Request-Id"
	DefaultBodyLimit       = 10 << 20
	DefaultResponseLimit   = 256 << 10
)

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.RequestIDHeader = http.CanonicalHeaderKey(cmp.Or(c.RequestIDHeader, DefaultRequestIDHeader))
	c.Lease = cmp.Or(c.Lease, idem.DefaultLease)
	c.Wait = max(cmp.Or(c.Wait, idem.DefaultWait), 0)
	c.Limit = cmp.Or(c.Limit, idem.DefaultLimit)
	c.Retention = cmp.Or(c.Retention, idem.DefaultRetention)
	c.ResultRetention = cmp.Or(c.ResultRetention, idem.DefaultResultRetention)
	c.BodyLimit = cmp.Or(c.BodyLimit, DefaultBodyLimit)
	c.ResponseLimit = cmp.Or(c.ResponseLimit, DefaultResponseLimit)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// validate is called with the defaults set.
func (c Config) validate() error {
	switch {
	case c.Store == nil && c.Ledger == nil:
		return errors.New("web: a guard needs a Store, a Ledger, or both")
	case c.Tokens != nil && c.Retention < c.Tokens.TTL():
		return fmt.Errorf("web: Retention %v is below the life of a token, %v: a spent token would be taken for a fresh one", c.Retention, c.Tokens.TTL())
	case c.Lease < idem.MinLease, c.Limit < idem.MinLease, c.Retention < c.Lease, c.ResultRetention < 0:
		return fmt.Errorf("web: Lease %v and Limit %v must be at least %v, Retention %v at least the lease, ResultRetention %v not negative",
			c.Lease, c.Limit, idem.MinLease, c.Retention, c.ResultRetention)
	case c.BodyLimit < 0, c.ResponseLimit < 0, c.PurgeEvery < 0:
		return errors.New("web: BodyLimit, ResponseLimit and PurgeEvery must not be negative")
	case len(c.Compensations) > 0 && c.Ledger == nil:
		return errors.New("web: Compensations need a Ledger")
	case slices.ContainsFunc(c.ServiceKeys, func(key string) bool { return key == "" || !visible(key) }):
		return errors.New("web: ServiceKeys must be visible ASCII without blanks, and not empty") // which one is not said: logs are no place for it
	case !isToken(c.RequestIDHeader):
		return fmt.Errorf("web: RequestIDHeader %q is not the name of a header", c.RequestIDHeader)
	case c.Prefix[0] != '/' || (len(c.Prefix) > 1 && c.Prefix[len(c.Prefix)-1] == '/'):
		return fmt.Errorf("web: Prefix %q must begin with a slash and not end with one", c.Prefix)
	}
	return nil
}
