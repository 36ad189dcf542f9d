package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
)

// Guard is the middleware and the routes that go with it. It is safe for concurrent use.
type Guard struct {
	config      Config
	engine      *idem.Engine
	entrance    *idem.Engine // on the store alone, for keys that are dropped when done; nil without one
	origins     *http.CrossOriginProtection
	texts       *texts
	assets      templates.Assets
	serviceKeys [][sha256.Size]byte
	upkeep      upkeep
	longest     atomic.Int64 // retention of any of its routes
}

// New returns an error that names the field of the Config that is out of range.
func New(c Config) (*Guard, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &Guard{config: c, origins: http.NewCrossOriginProtection(), assets: templates.NewAssets(c.Prefix)}
	for _, origin := range c.Origins {
		if err := g.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("web: Origins: %w", err)
		}
	}
	texts, err := newTexts(c.Messages)
	if err != nil {
		return nil, err
	}
	g.texts = texts
	if g.config.Labels, err = wholeLabels(c.Labels); err != nil {
		return nil, err
	}
	for _, key := range c.ServiceKeys {
		g.serviceKeys = append(g.serviceKeys, sha256.Sum256([]byte(key)))
	}
	if c.Store != nil {
		if g.entrance, err = idem.NewEngine(idem.EngineConfig{Store: c.Store, Observe: g.observe}); err != nil {
			return nil, err
		}
	}
	g.engine, err = idem.NewEngine(idem.EngineConfig{Store: c.Store, Ledger: c.Ledger, Observe: g.observe})
	return g, err
}

// Token guards a route with one-time tokens for the action: 1 to 128 characters of A-Z a-z 0-9 . _ and -. It panics where the
// options contradict each other or the Config.
func (g *Guard) Token(action string, options ...Option) func(http.Handler) http.Handler {
	if !tokens.ValidAction(action) {
		panic("web: action " + action + ": must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
	}
	rt := g.route(action, options)
	rt.byToken = true
	return rt.check().known().middleware((*submission).once)
}

// Key guards a route with a key that the request names. It panics where the options contradict each other or the Config.
//
// A caller without a subject is refused with subject_missing, unless the route is [Anonymous]. Without Config.Subject, the subject is the cookie
// that [Guard.Forms] and the token service set, which no service or curl has. The refusal has no WWW-Authenticate, which RFC 9110 asks for with a
// 401: how to log in is the application's to say, whose authentication stands in front.
func (g *Guard) Key(businessType string, key KeyFunc, options ...Option) func(http.Handler) http.Handler {
	rt := g.keyed(businessType, key, options)
	return rt.check().known().middleware((*submission).once)
}

// keyed is a route that is guarded by a key of the request, whichever way.
func (g *Guard) keyed(name string, key KeyFunc, options []Option) *route {
	if name == "" || key.read == nil {
		panic("web: a route guarded by a key needs a name, its business type, and a KeyFunc")
	}
	rt := g.route(name, options)
	if rt.key.read != nil {
		panic("web: route " + name + ": BusinessKey is for token-guarded routes; this one has its key already")
	}
	rt.key = key
	return rt
}

// Drain waits until what finishes behind the answers is written. Call it after the server's Shutdown.
func (g *Guard) Drain(ctx context.Context) error { return g.engine.Drain(ctx) }

// Status is what Check found.
type Status struct {
	State  string // "ok"; "degraded": the store is away, ledger-backed routes are served; "unavailable": what decides is away
	Store  error  // nil: it answers, or there is none
	Ledger error  // likewise
}

// Check asks both stores, at once: one that hangs until ctx ends must not make the other look away.
func (g *Guard) Check(ctx context.Context) Status {
	status := Status{State: "ok"}
	var asked sync.WaitGroup
	if g.config.Store != nil {
		asked.Go(func() { status.Store = g.config.Store.Ping(ctx) })
	}
	if g.config.Ledger != nil {
		asked.Go(func() { status.Ledger = g.config.Ledger.Ping(ctx) })
	}
	asked.Wait()
	switch {
	case status.Ledger != nil, status.Store != nil && g.config.Ledger == nil:
		status.State = "unavailable"
	case status.Store != nil:
		status.State = "degraded"
	}
	return status
}

func (g *Guard) observe(ctx context.Context, e idem.Event) {
	if e.Kind != idem.Answered {
		g.config.Logger.WarnContext(ctx, "idem: "+string(e.Kind), "type", e.Type, "attempt", e.Attempt, "error", e.Err)
	}
	if g.config.Observe != nil {
		g.config.Observe(ctx, e)
	}
}
