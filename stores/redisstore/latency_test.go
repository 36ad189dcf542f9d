package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/redisstore"
)

// newEngine is an engine on the store, with a ledger in memory behind it where there is to be one.
func newEngine(t *testing.T, store *redisstore.Store, withLedger bool, observe func(context.Context, idem.Event)) *idem.Engine {
	t.Helper()
	config := idem.EngineConfig{Store: store, Observe: observe}
	if withLedger {
		config.Ledger = memstore.New(memstore.Options{})
	}
	engine, err := idem.NewEngine(config)
	must(t, err)
	t.Cleanup(func() { drain(t, engine) })
	return engine
}

func drain(t *testing.T, engine *idem.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(t, engine.Drain(ctx))
}

// order is a call with a token.
func order(id string) idem.Call {
	q := request(id)
	q.Owner = "" // the engine's to set
	return idem.Call{Request: q, TokenID: "jti", Entrance: q.Key, Wait: 30 * time.Second, Limit: time.Minute}
}

// IdempotentAPI#23: a slow Redis let several run. The work takes longer than its lease, so that renewals are slow too.
func TestSlowRedisLetsOneOfFiftyRun(t *testing.T) {
	t.Parallel()
	const delay, racers = 200 * time.Millisecond, 50
	for name, withLedger := range map[string]bool{"with a ledger": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link := testkit.Proxy(t, testkit.Redis(t).Addr)
			store := redisstore.New(testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), redisstore.Options{})
			engine := newEngine(t, store, withLedger, nil)
			call := order("r-00000001")
			call.Lease = 2 * time.Second
			link.Latency(delay)
			must(t, store.Issue(context.Background(), []idem.Token{token(call.Request, call.TokenID)}))

			var runs, replayed atomic.Int64
			work := func(ctx context.Context) idem.Ending {
				runs.Add(1)
				select {
				case <-time.After(call.Lease + call.Lease/4):
				case <-ctx.Done():
					t.Errorf("the work was cancelled: %v", context.Cause(ctx))
				}
				return idem.Ending{State: idem.Succeeded, Result: result}
			}
			var all sync.WaitGroup
			for range racers {
				all.Go(func() {
					reply, err := engine.Do(context.Background(), call, work)
					if err != nil || string(reply.Result.Body) != string(result.Body) {
						t.Errorf("answered %q, %v", reply.Result.Body, err)
					}
					if reply.Replayed {
						replayed.Add(1)
					}
				})
			}
			all.Wait()
			if runs.Load() != 1 || replayed.Load() != racers-1 {
				t.Errorf("executed %d times, replayed %d times", runs.Load(), replayed.Load())
			}
		})
	}
}
