package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/web"
)

func TestNew(t *testing.T) {
	t.Parallel()
	issuer, store := newIssuer(t, &clock{}, "idem"), memstore.New(memstore.Options{})
	for name, c := range map[string]struct {
		config web.Config
		says   string // empty: accepted
	}{
		"store alone":                 {config: web.Config{Store: store}},
		"ledger alone":                {config: web.Config{Ledger: store}},
		"tokens, ledger alone":        {config: web.Config{Tokens: issuer, Ledger: store}},
		"negative wait: none":         {config: web.Config{Store: store, Wait: -1}},
		"retention of a token's life": {config: web.Config{Tokens: issuer, Store: store, Retention: 30 * time.Minute}},
		"short retention, no tokens":  {config: web.Config{Store: store, Retention: time.Minute}},
		"nothing":                     {config: web.Config{}, says: "Store, a Ledger"},
		"tokens alone":                {config: web.Config{Tokens: issuer}, says: "Store, a Ledger"},
		"retention below a token's":   {config: web.Config{Tokens: issuer, Store: store, Retention: 29 * time.Minute}, says: "Retention 29m0s"},
		"retention below the lease":   {config: web.Config{Store: store, Retention: time.Second}, says: "Retention 1s"},
		"lease too short":             {config: web.Config{Store: store, Lease: time.Microsecond}, says: "Lease 1µs"},
		"negative lease":              {config: web.Config{Store: store, Lease: -time.Second}, says: "Lease -1s"},
		"negative limit":              {config: web.Config{Store: store, Limit: -time.Second}, says: "Limit -1s"},
		"negative result retention":   {config: web.Config{Store: store, ResultRetention: -1}, says: "ResultRetention"},
		"negative body limit":         {config: web.Config{Store: store, BodyLimit: -1}, says: "BodyLimit"},
		"negative response limit":     {config: web.Config{Store: store, ResponseLimit: -1}, says: "ResponseLimit"},
		"prefix without slash":        {config: web.Config{Store: store, Prefix: "idem"}, says: "Prefix"},
		"prefix with a slash behind":  {config: web.Config{Store: store, Prefix: "/idem/"}, says: "Prefix"},
		"origin with a path":          {config: web.Config{Store: store, Origins: []string{"https://a.example/x"}}, says: "Origins"},
		"origin that is none":         {config: web.Config{Store: store, Origins: []string{"a.example"}}, says: "Origins"},
		"language that is none":       {config: web.Config{Store: store, Messages: map[string]web.Messages{"not a tag": {}}}, says: "not a language tag"},
		"negative pause":              {config: web.Config{Ledger: store, PurgeEvery: -1}, says: "PurgeEvery"},
		"compensations":               {config: web.Config{Ledger: store, Compensations: map[string]idem.Work{"a": nil}}},
		"compensations, no ledger":    {config: web.Config{Store: store, Compensations: map[string]idem.Work{"a": nil}}, says: "Compensations"},
		"service keys":                {config: web.Config{Store: store, ServiceKeys: []string{"a", "b"}}},
		"an empty service key":        {config: web.Config{Store: store, ServiceKeys: []string{"a", ""}}, says: "ServiceKeys"},
		"a service key with a blank":  {config: web.Config{Store: store, ServiceKeys: []string{"a b"}}, says: "ServiceKeys"},
		"message of no code":          {config: web.Config{Store: store, Messages: map[string]web.Messages{"de": {"nonsense": {}}}}, says: `"nonsense"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := web.New(c.config)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// A route that could never work is found when the program starts.
func TestRoutesThatPanic(t *testing.T) {
	t.Parallel()
	nobody := func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil }
	key := web.HeaderKey("Idempotency-Key")
	for name, c := range map[string]struct {
		stores string
		route  func(g *web.Guard)
		says   string // empty: accepted
	}{
		"token":                       {route: func(g *web.Guard) { g.Token("order.create") }},
		"empty action":                {route: func(g *web.Guard) { g.Token("") }, says: "action"},
		"action with a slash":         {route: func(g *web.Guard) { g.Token("a/b") }, says: "a/b"},
		"token without an issuer":     {stores: "no tokens", route: func(g *web.Guard) { g.Token("a") }, says: "Tokens"},
		"key, no issuer":              {stores: "no tokens", route: func(g *web.Guard) { g.Key("a", key) }},
		"key without a type":          {route: func(g *web.Guard) { g.Key("", key) }, says: "business type"},
		"zero key function":           {route: func(g *web.Guard) { g.Key("a", web.KeyFunc{}) }, says: "KeyFunc"},
		"same transaction, no ledger": {stores: "store", route: func(g *web.Guard) { g.Key("a", key, web.SameTx()) }, says: "Ledger"},
		"business key, no ledger":     {stores: "store", route: func(g *web.Guard) { g.Token("a", web.BusinessKey(key)) }, says: "Ledger"},
		"same transaction, resolver":  {route: func(g *web.Guard) { g.Key("a", key, web.SameTx(), web.Resolver(nobody)) }, says: "Resolver"},
		"lease too short":             {route: func(g *web.Guard) { g.Token("a", web.Lease(0)) }, says: "Lease"},
		"limit too short":             {route: func(g *web.Guard) { g.Token("a", web.Limit(0)) }, says: "Limit"},
		"negative wait":               {route: func(g *web.Guard) { g.Token("a", web.Wait(-1)) }, says: "Wait"},
		"retention below the lease":   {route: func(g *web.Guard) { g.Key("a", key, web.Retention(time.Second)) }, says: "Retention"},
		"retention below a token's":   {route: func(g *web.Guard) { g.Token("a", web.Retention(time.Minute)) }, says: "Retention"},
		"negative body limit":         {route: func(g *web.Guard) { g.Token("a", web.BodyLimit(-1)) }, says: "BodyLimit"},
		"negative response limit":     {route: func(g *web.Guard) { g.Token("a", web.ResponseLimit(-1)) }, says: "ResponseLimit"},
		"window":                      {route: func(g *web.Guard) { g.Window("a", time.Second, key) }},
		"window, no ledger":           {stores: "store", route: func(g *web.Guard) { g.Window("a", time.Second, key, web.ReopenOnFailure()) }},
		"window, no store":            {stores: "ledger", route: func(g *web.Guard) { g.Window("a", time.Second, key) }, says: "windows need Config.Store"},
		"window without a name":       {route: func(g *web.Guard) { g.Window("", time.Second, key) }, says: "needs a name"},
		"window without a key":        {route: func(g *web.Guard) { g.Window("a", time.Second, web.KeyFunc{}) }, says: "KeyFunc"},
		"window too short":            {route: func(g *web.Guard) { g.Window("a", 0, key) }, says: "1 ms"},
		"window, same transaction":    {route: func(g *web.Guard) { g.Window("a", time.Second, key, web.SameTx()) }, says: "SameTx"},
		"lock":                        {route: func(g *web.Guard) { g.Lock("a", key) }},
		"lock, no store":              {stores: "ledger", route: func(g *web.Guard) { g.Lock("a", key) }, says: "locks need Config.Store"},
		"lock without a name":         {route: func(g *web.Guard) { g.Lock("", key) }, says: "needs a name"},
		"lock, resolver":              {route: func(g *web.Guard) { g.Lock("a", key, web.Resolver(nobody)) }, says: "Resolver"},
		"lock, dropped":               {route: func(g *web.Guard) { g.Lock("a", key, web.DropWhenDone()) }, says: "DropWhenDone"},
		"lock, reopened":              {route: func(g *web.Guard) { g.Lock("a", key, web.ReopenOnFailure()) }, says: "windows"},
		"key, reopened":               {route: func(g *web.Guard) { g.Key("a", key, web.ReopenOnFailure()) }, says: "windows"},
		"dropped":                     {route: func(g *web.Guard) { g.Key("a", key, web.DropWhenDone()) }},
		"dropped, no store":           {stores: "ledger", route: func(g *web.Guard) { g.Key("a", key, web.DropWhenDone()) }, says: "Config.Store"},
		"dropped, token":              {route: func(g *web.Guard) { g.Token("a", web.DropWhenDone()) }, says: "one-time tokens"},
		"dropped, resolver":           {route: func(g *web.Guard) { g.Key("a", key, web.DropWhenDone(), web.Resolver(nobody)) }, says: "leaves nothing"},
		"dropped, same transaction":   {route: func(g *web.Guard) { g.Key("a", key, web.DropWhenDone(), web.SameTx()) }, says: "leaves nothing"},
		"a message of no code":        {route: func(g *web.Guard) { g.Key("a", key, web.Say("nonsense", web.Message{})) }, says: "nonsense"},
		"negative result retention":   {route: func(g *web.Guard) { g.Token("a", web.ResultRetention(-1)) }, says: "ResultRetention"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(c.stores), func(config *web.Config) {
				if c.stores == "no tokens" {
					config.Tokens = nil
				}
			})
			defer func() {
				with := recover()
				if (with == nil) != (c.says == "") || with != nil && !strings.Contains(fmt.Sprint(with), c.says) {
					t.Errorf("panicked with %v, want %q", with, c.says)
				}
			}()
			c.route(f.guard)
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stores        string
		store, ledger bool // away
		state         string
	}{
		"all there":          {stores: "both", state: "ok"},
		"store away":         {stores: "both", store: true, state: "degraded"},
		"ledger away":        {stores: "both", ledger: true, state: "unavailable"},
		"both away":          {stores: "both", store: true, ledger: true, state: "unavailable"},
		"only store, there":  {stores: "store", state: "ok"},
		"only store, away":   {stores: "store", store: true, state: "unavailable"},
		"only ledger, there": {stores: "ledger", state: "ok"},
		"only ledger, away":  {stores: "ledger", ledger: true, state: "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(c.stores))
			f.store.setAway(c.store)
			f.ledger.setAway(c.ledger)
			got := f.guard.Check(t.Context())
			if got.State != c.state || errors.Is(got.Store, errAway) != c.store || errors.Is(got.Ledger, errAway) != c.ledger {
				t.Errorf("status %+v", got)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores), func(c *web.Config) { c.PurgeEvery = time.Minute })
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- f.guard.Run(ctx) }()
				pass(10 * time.Minute)
				f.ledger.setFault("Purge", errAway) // a failed round is no end
				pass(10 * time.Minute)
				stop()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v", err)
				}
				if n := f.ledger.count("Purge"); (n >= 16) != (stores == "both") {
					t.Errorf("purged %d times", n)
				}
			})
		})
	}
}

func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		stuck := make(chan struct{})
		f.store.onBefore("Restore", func(context.Context) error { <-stuck; return nil })
		executed(t, f.do(f.guard.Token("order.create")(f.handler), f.order(f.token("order.create").Token)), 201)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.guard.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drained with %v", err)
		}
		close(stuck)
		synctest.Wait()
	})
}

// What an observer sees has no key, payload or token in it, and comes for each call.
func TestObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	f := newFixture(t, func(c *web.Config) {
		c.Observe = func(_ context.Context, e idem.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf("%s %s %d %v", e.Kind, e.Type, e.Attempt, e.Replayed))
		}
	})
	token := f.token("order.create").Token
	guarded := f.guard.Token("order.create")(f.handler)
	executed(t, f.do(guarded, f.order(token)), 201)
	f.do(guarded, f.order(token))
	f.settle()
	f.store.setAway(true)
	f.do(guarded, f.order(token))
	want := "answered order.create 1 false, answered order.create 0 true, entrance_failed order.create 0 false, answered order.create 0 true"
	f.settle()
	mu.Lock()
	defer mu.Unlock()
	// The repair behind the answer fails, too, before or after it.
	if got := strings.Join(slices.Compact(seen), ", "); !strings.HasPrefix(got, want) {
		t.Errorf("saw %s", got)
	}
}

func TestFormsWithoutIssuerPanics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *web.Config) { c.Tokens = nil })
	if _, with := panics(f.guard.Forms(http.NotFoundHandler()), f.request("/", "", "")); with == nil {
		t.Error("pages without an issuer were served")
	}
}
