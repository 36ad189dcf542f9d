package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/idemkit/idem"
)

// Option changes one guarded route.
type Option func(*route)

// route is how one route is guarded. It does not change after construction.
type route struct {
	*Guard
	businessType  string
	byToken       bool
	key           KeyFunc // the business key; its zero value: the request identity of the token
	wait          time.Duration
	lease         time.Duration
	limit         time.Duration
	retention     time.Duration
	keep          time.Duration
	bodyLimit     int64
	responseLimit int
	length        time.Duration // of a window; 0: it is none
	reopen        bool
	resultless    bool // a window or a lock
	sameTx        bool
	drop          bool
	shared        bool
	anonymous     bool
	cookies       bool
	resolver      idem.Resolver
	own           Messages
	ignored       map[string]bool
	secret        map[string]bool
}

func (g *Guard) route(businessType string, options []Option) *route {
	rt := &route{
		Guard: g, businessType: businessType,
		wait: g.config.Wait, lease: g.config.Lease, limit: g.config.Limit,
		retention: g.config.Retention, keep: g.config.ResultRetention,
		bodyLimit: g.config.BodyLimit, responseLimit: g.config.ResponseLimit,
		own: Messages{}, ignored: map[string]bool{}, secret: map[string]bool{},
	}
	for _, option := range options {
		option(rt)
	}
	return rt
}

// Wait sets how long a duplicate waits for the first; 0: not at all. A negative one panics: in the Config, where 0 is the default, it is that which
// says "not at all".
func Wait(d time.Duration) Option { return func(rt *route) { rt.wait = d } }

// Lease sets how long a claim stands without renewal.
func Lease(d time.Duration) Option { return func(rt *route) { rt.lease = d } }

// Limit sets how long the handler's context lives.
func Limit(d time.Duration) Option { return func(rt *route) { rt.limit = d } }

// Retention sets how long key and fingerprint are kept after the last change.
func Retention(d time.Duration) Option { return func(rt *route) { rt.retention = d } }

// ResultRetention sets how long headers and body of a result are kept.
func ResultRetention(d time.Duration) Option { return func(rt *route) { rt.keep = d } }

// BodyLimit sets the largest request body in bytes.
func BodyLimit(bytes int64) Option { return func(rt *route) { rt.bodyLimit = bytes } }

// ResponseLimit sets the largest answer in bytes that is kept and replayed.
func ResponseLimit(bytes int) Option { return func(rt *route) { rt.responseLimit = bytes } }

// SameTx runs claim, work and result in one transaction of the ledger.
func SameTx() Option { return func(rt *route) { rt.sameTx = true } }

// DropWhenDone lets the key of a Guard.Key route be used again at once when its work has succeeded: the key guards only while the work runs. A duplicate
// meanwhile is in_progress, without waiting, for there will be no result to wait for; one that comes later runs. A failure ends as on every route.
//
// Such a key leaves nothing behind, so it stands in the Config.Store alone: the ledger knows nothing of it, its package's Tx is not to be had from the
// handler's context, and while the store is away the route answers store_unavailable. Attempts are counted for the length of a lease; a key that could not be
// dropped is already_done for that long. Each use of the key has the same OutboundKey. Use it where a repetition is wanted and only its overlap is not; to run
// one after the other, use Guard.Lock. It is not for one-time tokens: those are spent.
func DropWhenDone() Option { return func(rt *route) { rt.drop = true } }

// Shared lets another subject of the same tenant that names the same business key have the replay, instead of key_taken.
func Shared() Option { return func(rt *route) { rt.shared = true } }

// Anonymous lets callers without a subject in. They share one space of keys.
func Anonymous() Option { return func(rt *route) { rt.anonymous = true } }

// ReplayCookies also records and replays Set-Cookie lines. By default a duplicate gets none: a session cookie is not for whoever asks later.
func ReplayCookies() Option { return func(rt *route) { rt.cookies = true } }

// Resolver is asked what became of an earlier attempt before there is another. Nil panics.
func Resolver(ask idem.Resolver) Option {
	if ask == nil {
		panic("web: Resolver needs a function")
	}
	return func(rt *route) { rt.resolver = ask }
}

// BusinessKey gives a token-guarded route a business key of its own: the operation happens once for the key, whatever token it comes with.
// The zero KeyFunc panics, and so does a route of Guard.Key, which has its key already.
func BusinessKey(key KeyFunc) Option {
	if key.read == nil {
		panic("web: BusinessKey needs a KeyFunc")
	}
	return func(rt *route) { rt.key = key }
}

// Say replaces what the route tells people with a code, in every language. A code that does not exist panics.
func Say(code string, m Message) Option {
	if statusOf(code) == 0 {
		panic("web: Say: there is no code " + code)
	}
	return func(rt *route) { rt.own[code] = m }
}

// Ignore leaves form fields and query parameters out of the fingerprint.
func Ignore(names ...string) Option { return func(rt *route) { add(rt.ignored, names) } }

// Secret names form fields that an error page does not give back. Those whose name begins with "password" are secret anyway.
func Secret(names ...string) Option { return func(rt *route) { add(rt.secret, names) } }

func add(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
}

func (rt *route) isSecret(field string) bool {
	return rt.secret[field] || strings.HasPrefix(strings.ToLower(field), "password")
}

// check panics where a route could never work: a mistake in the program, found when it starts.
func (rt *route) check() *route {
	wrong := rt.contradiction()
	for code := range rt.own {
		if statusOf(code) == 0 {
			wrong = "Say: there is no code " + code
		}
	}
	if wrong != "" {
		panic("web: route " + rt.businessType + ": " + wrong)
	}
	if rt.drop {
		rt.wait = 0
	}
	rt.outlive(rt.retention)
	return rt
}

func (rt *route) contradiction() string {
	switch {
	case rt.byToken && rt.config.Tokens == nil:
		return "Config.Tokens is needed"
	case rt.sameTx && rt.config.Ledger == nil:
		return "SameTx needs Config.Ledger"
	case rt.byToken && rt.key.read != nil && rt.config.Ledger == nil:
		return "BusinessKey needs Config.Ledger"
	case rt.sameTx && rt.resolver != nil:
		return "SameTx and Resolver exclude each other: a rolled-back attempt leaves nothing to ask about"
	case rt.resultless && (rt.sameTx || rt.resolver != nil || rt.drop):
		return "a window or a lock has no record of its work: SameTx, Resolver and DropWhenDone are not for it"
	case rt.reopen && rt.length == 0:
		return "ReopenOnFailure is for windows"
	case rt.drop && rt.byToken:
		return "DropWhenDone is not for one-time tokens: a token is spent, and its duplicate must find what came of it"
	case rt.drop && rt.config.Store == nil:
		return "DropWhenDone needs Config.Store"
	case rt.drop && (rt.sameTx || rt.resolver != nil):
		return "DropWhenDone leaves nothing behind: SameTx and Resolver are not for it"
	case rt.lease < idem.MinLease || rt.limit < idem.MinLease || rt.retention < rt.lease || rt.wait < 0 || rt.keep < 0:
		return "Lease and Limit must be at least 1 ms, Retention at least the lease, Wait and ResultRetention not negative"
	case rt.bodyLimit < 0 || rt.responseLimit < 0:
		return "BodyLimit and ResponseLimit must not be negative"
	case rt.byToken && rt.retention < rt.config.Tokens.TTL():
		return "Retention must be at least the life of a token"
	}
	return ""
}

// safe methods have no effect to guard (RFC 9110, section 9.2.1); a browser repeats the token header on the GET after a 303.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "":
		return true
	}
	return false
}
