package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

func done(context.Context, idem.Claim) (idem.Ending, error) {
	return idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Kept: true}}, nil
}

func notDone(context.Context, idem.Claim) (idem.Ending, error) {
	return idem.Ending{State: idem.Failed}, nil
}

// running keeps Run going for a while, and returns what was logged.
func running(t *testing.T, f *fixture, log *bytes.Buffer, d time.Duration) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.guard.Run(ctx) }()
	pass(d)
	synctest.Wait()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	return log.String()
}

func upkeepFixture(t *testing.T, change ...func(*web.Config)) (*fixture, *bytes.Buffer) {
	var log bytes.Buffer
	return newFixture(t, append(change, func(c *web.Config) {
		c.PurgeEvery = time.Minute
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})...), &log
}

// left makes a record whose claimer died.
func left(t *testing.T, f *fixture, key idem.Key) {
	t.Helper()
	q := idem.Request{Key: key, Owner: idem.NewOwner(), Lease: time.Millisecond, Retention: time.Hour}
	if answer, err := f.ledger.real.Claim(t.Context(), q); err != nil || answer.Outcome != idem.Won {
		t.Fatal(answer.Outcome, err)
	}
}

// What becomes of a claim that somebody left behind: its own route's resolver is asked, and other processes' types are untouched.
func TestRunRecovers(t *testing.T) {
	t.Parallel()
	key := web.JSONKey("no")
	for name, c := range map[string]struct {
		routes func(g *web.Guard)
		state  idem.State // after a round; empty: as it was
		keep   time.Duration
	}{
		"done":                     {routes: func(g *web.Guard) { g.Key("refund", key, web.Resolver(done)) }, state: idem.Succeeded},
		"not done":                 {routes: func(g *web.Guard) { g.Key("refund", key, web.Resolver(notDone)) }, state: idem.Failed},
		"of a token route":         {routes: func(g *web.Guard) { g.Token("refund", web.Resolver(done)) }, state: idem.Succeeded},
		"second route has it":      {routes: func(g *web.Guard) { g.Token("refund"); g.Key("refund", key, web.Resolver(done)) }, state: idem.Succeeded},
		"first route has it":       {routes: func(g *web.Guard) { g.Key("refund", key, web.Resolver(done)); g.Token("refund") }, state: idem.Succeeded},
		"both have it":             {routes: func(g *web.Guard) { g.Key("refund", key, web.Resolver(done)); g.Token("refund", web.Resolver(done)) }, state: idem.Succeeded},
		"no resolver":              {routes: func(g *web.Guard) { g.Key("refund", key) }, state: idem.Processing},
		"another type":             {routes: func(g *web.Guard) { g.Key("transfer", key, web.Resolver(done)) }, state: idem.Processing},
		"a lock of the name":       {routes: func(g *web.Guard) { g.Lock("refund", key) }, state: idem.Processing},
		"nobody's":                 {routes: func(*web.Guard) {}, state: idem.Processing},
		"a resolver that is stuck": {routes: func(g *web.Guard) { g.Key("refund", key, web.Resolver(cannotSay)) }, state: idem.Processing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f, log := upkeepFixture(t)
				left(t, f, idem.K("refund", "r-1"))
				go c.routes(f.guard) // Run may have begun by then
				logged := running(t, f, log, 90*time.Second)
				record, err := f.ledger.real.Lookup(t.Context(), idem.Request{Key: idem.K("refund", "r-1")})
				if err != nil || record.State != c.state {
					t.Errorf("record %+v, %v", record, err)
				}
				if told := strings.Contains(logged, "recovered=1"); told != (c.state != idem.Processing) {
					t.Errorf("logged %s", logged)
				}
			})
		})
	}
}

func cannotSay(context.Context, idem.Claim) (idem.Ending, error) {
	return idem.Ending{}, errors.New("the gateway is away")
}

// What was left behind and cannot be asked about goes when its time is over, if it is this process's own.
func TestRunPurges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*web.Config)
		routes func(g *web.Guard)
		gone   bool
	}{
		"a route's":              {routes: func(g *web.Guard) { g.Key("refund", web.JSONKey("no")) }, gone: true},
		"a service's":            {change: func(c *web.Config) { c.Abandoned = []string{"refund"} }, gone: true},
		"one with a resolver":    {routes: func(g *web.Guard) { g.Key("refund", web.JSONKey("no"), web.Resolver(cannotSay)) }},
		"both":                   {change: func(c *web.Config) { c.Abandoned = []string{"refund"} }, routes: func(g *web.Guard) { g.Key("refund", web.JSONKey("no"), web.Resolver(cannotSay)) }},
		"another process's":      {},
		"a dropped key's":        {routes: func(g *web.Guard) { g.Key("refund", web.JSONKey("no"), web.DropWhenDone()) }},
		"a window's of the name": {routes: func(g *web.Guard) { g.Window("refund", time.Second, web.JSONKey("no")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f, log := upkeepFixture(t, func(config *web.Config) {
					if c.change != nil {
						c.change(config)
					}
				})
				if c.routes != nil {
					c.routes(f.guard)
				}
				running(t, f, log, 90*time.Second)
				if told := f.ledger.abandoned.Load(); told == nil || slices.Equal(*told, []string{"refund"}) != c.gone || !c.gone && len(*told) > 0 {
					t.Errorf("given up: %v", told)
				}
			})
		})
	}
}

func TestRunCompensates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ending idem.Ending
		code   string // of what a duplicate gets an hour later
	}{
		"cancelled": {idem.Ending{State: idem.Cancelled}, web.Cancelled},
		"succeeded": {idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Body: []byte("paid back"), Kept: true}}, web.AlreadyDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				attempts := 0
				f, log := upkeepFixture(t, func(config *web.Config) {
					config.ResultRetention = 30 * time.Minute
					config.Compensations = map[string]idem.Work{"refund": func(ctx context.Context) idem.Ending {
						attempts = idem.FromContext(ctx).Attempt
						return c.ending
					}}
				})
				f.handler.then = status(500)
				refund := f.guard.Key("refund", web.JSONKey("no"), web.Anonymous())(f.handler)
				executed(t, f.do(refund, keyed("application/json", `{"no":7}`)), 500)
				logged := running(t, f, log, 3*time.Minute)
				f.clock.advance(time.Hour)
				refused(t, f.do(refund, keyed("application/json", `{"no":7}`)), 409, c.code)
				if attempts != 2 || !strings.Contains(logged, "compensated=1") {
					t.Errorf("attempt %d, logged %s", attempts, logged)
				}
			})
		})
	}
}

// What a resolver ended is kept for as long as what the route ended.
func TestRunKeepsTheRoutesRetention(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f, log := upkeepFixture(t)
		refund := f.guard.Key("refund", web.JSONKey("no"), web.Anonymous(), web.Retention(time.Hour), web.ResultRetention(time.Hour), web.Resolver(done))(f.handler)
		left(t, f, idem.K("refund", "7"))
		running(t, f, log, 90*time.Second)
		f.clock.advance(2 * time.Hour)
		executed(t, f.do(refund, keyed("application/json", `{"no":7}`)), 201)
	})
}

// A service that never came back leaves nothing for ever.
func TestRunGivesUpWhatServicesLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f, log := upkeepFixture(t, withServices)
		accepts(t, f.service("consume", f.grant()), 1)
		running(t, f, log, 90*time.Second)
		if told := f.ledger.abandoned.Load(); told == nil || !slices.Equal(*told, []string{"order.create"}) {
			t.Errorf("given up: %v", told)
		}
	})
}

// The store says done, and the ledger knows of nothing: the ledger wins.
func TestRunReconciles(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f, log := upkeepFixture(t)
		token := f.token("order.create").Token
		guarded := f.guard.Token("order.create")(f.handler)
		executed(t, f.do(guarded, f.order(token)), 201)
		f.settle()
		f.ledger.real.Forget() // restored from a backup
		logged := running(t, f, log, 90*time.Second)
		executed(t, f.do(guarded, f.order(token)), 201)
		f.handler.ran(t, 2)
		if !strings.Contains(logged, "removed=1") {
			t.Errorf("logged %s", logged)
		}
	})
}

// A round in which nothing happened is not worth a line; one that failed is; another process's is not this one's failure.
func TestRunLogs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(f *fixture)
		says  string
	}{
		"nothing to do": {fault: func(*fixture) {}},
		"a failure":     {fault: func(f *fixture) { f.ledger.setFault("Purge", errAway) }, says: "looking after the ledger failed"},
		"somebody else": {fault: func(f *fixture) {
			q := idem.Request{Key: idem.K("lock/idem.janitor", "round"), Owner: "another", Lease: time.Hour, Retention: time.Hour}
			if _, err := f.ledger.real.Claim(context.Background(), q); err != nil {
				panic(fmt.Sprint(err))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f, log := upkeepFixture(t)
				c.fault(f)
				logged := running(t, f, log, 90*time.Second)
				if c.says == "" && logged != "" || !strings.Contains(logged, c.says) {
					t.Errorf("logged %q, want %q", logged, c.says)
				}
			})
		})
	}
}

// Two answers to what became of a claim are a mistake of the program.
func TestResolversThatContradict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.guard.Token("refund", web.Resolver(done))
	f.guard.Key("refund", web.JSONKey("no"), web.Resolver(done))
	func() {
		defer func() {
			if with := fmt.Sprint(recover()); !strings.Contains(with, "refund") || !strings.Contains(with, "Resolver") {
				t.Errorf("panicked with %s", with)
			}
		}()
		f.guard.Key("refund", web.JSONKey("no"), web.Resolver(notDone))
	}()
	var all sync.WaitGroup
	for i := range 20 { // routes may be made at once
		all.Go(func() { f.guard.Key(fmt.Sprintf("type%d", i%5), web.JSONKey("no"))(http.NotFoundHandler()) })
	}
	all.Wait()
}
