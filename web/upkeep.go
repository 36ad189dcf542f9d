package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/idemkit/idem"
)

// upkeep knows the business types of the guard's routes that have records in the ledger. Routes may be made while Run goes on.
type upkeep struct {
	mu     sync.Mutex
	routes map[string]*route // by business type, those with a resolver first
	served map[string]bool   // business types that services have claimed here
}

// serves makes a service's business type one that Run looks after.
func (u *upkeep) serves(businessType string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.served == nil {
		u.served = map[string]bool{}
	}
	u.served[businessType] = true
}

// known makes the route's business type one that Run looks after. Two routes of one type must not give two answers to what became of a claim; functions
// are told apart by their code, so two closures of one function pass for the same.
func (rt *route) known() *route {
	if rt.drop {
		return rt
	}
	u := &rt.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.routes == nil {
		u.routes = map[string]*route{}
	}
	other := u.routes[rt.businessType]
	switch {
	case other == nil, other.resolver == nil:
		u.routes[rt.businessType] = rt
	case rt.resolver != nil && reflect.ValueOf(rt.resolver).Pointer() != reflect.ValueOf(other.resolver).Pointer():
		panic("web: route " + rt.businessType + ": another route of this business type has another Resolver")
	}
	return rt
}

// resolver of a business type; nil where no route has one.
func (u *upkeep) resolver(businessType string) idem.Resolver {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rt := u.routes[businessType]; rt != nil {
		return rt.resolved()
	}
	return nil
}

// janitor is for one round, with the routes that there are by then.
func (g *Guard) janitor() idem.Janitor {
	j := idem.Janitor{
		Ledger: g.config.Ledger, Store: g.config.Store,
		Resolvers: map[string]idem.Resolver{}, Compensations: map[string]idem.Work{}, Retentions: map[string]time.Duration{},
	}
	g.upkeep.mu.Lock()
	defer g.upkeep.mu.Unlock()
	for businessType, work := range g.config.Compensations {
		keep := g.config.ResultRetention
		if rt := g.upkeep.routes[businessType]; rt != nil {
			keep = rt.keep
		}
		j.Compensations[businessType] = func(ctx context.Context) idem.Ending { return keeping(work(ctx), keep) }
		j.Retentions[businessType] = g.config.Retention
	}
	abandoned := maps.Clone(g.upkeep.served)
	if abandoned == nil {
		abandoned = map[string]bool{}
	}
	for _, businessType := range g.config.Abandoned {
		abandoned[businessType] = true
	}
	for businessType, rt := range g.upkeep.routes {
		j.Retentions[businessType] = rt.retention
		if rt.resolver == nil {
			abandoned[businessType] = true
			continue
		}
		j.Resolvers[businessType] = rt.resolved()
		delete(abandoned, businessType)
	}
	j.Abandoned = slices.Sorted(maps.Keys(abandoned))
	return j
}

// Run looks after the ledger until the context ends, whose error it returns: it recovers claims of routes with a Resolver, runs Config.Compensations,
// deletes what is past its retention and reconciles the Store with the Ledger, one process at a time. Without a ledger it only waits.
func (g *Guard) Run(ctx context.Context) error {
	if g.config.Ledger == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	every := cmp.Or(g.config.PurgeEvery, idem.DefaultPurgeEvery)
	for {
		pause := time.NewTimer(every*4/5 + rand.N(every*2/5+1)) // processes that start together are not to ask together
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
		done, err := g.janitor().Round(ctx)
		g.tidied(ctx, done, err)
	}
}

func (g *Guard) tidied(ctx context.Context, done idem.Tidied, err error) {
	switch {
	case errors.Is(err, idem.ErrInProgress): // another process is at it
	case err != nil && ctx.Err() == nil:
		g.config.Logger.WarnContext(ctx, "idem: looking after the ledger failed", "done", done, "error", err)
	case done != idem.Tidied{}:
		g.config.Logger.InfoContext(ctx, "idem: looked after the ledger", "recovered", done.Recovered, "compensated", done.Compensated,
			"purged", done.Purged, "repaired", done.Repaired, "removed", done.Removed)
	}
}
