package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// trips counts what a caller waits for: a command, or a pipeline of them.
type trips struct{ count *atomic.Int64 }

func (trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count.Add(1)
		return next(ctx, cmd)
	}
}

func (c trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count.Add(1)
		return next(ctx, cmds)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			ctx, q := context.Background(), request("r-00000001")
			load(t, store)
			op.prepare(t, store, q)
			counter := trips{new(atomic.Int64)}
			rdb.AddHook(counter)
			if _, err := op.call(ctx, store, q); err != nil && !documented(err) {
				t.Fatal(err)
			}
			if got := counter.count.Load(); got != 1 {
				t.Errorf("%d round trips", got)
			}
			must(t, rdb.ScriptFlush(ctx).Err())
			counter.count.Store(0)
			if _, err := op.call(ctx, store, q); err != nil && !documented(err) {
				t.Fatal(err)
			}
			if got := counter.count.Load(); got > 2 {
				t.Errorf("%d round trips where the script was not loaded", got)
			}
		})
	}
}

// load runs every script once.
func load(t *testing.T, store *redisstore.Store) {
	t.Helper()
	for i, op := range operations() {
		q := request(fmt.Sprint("load-", i))
		op.prepare(t, store, q)
		if _, err := op.call(context.Background(), store, q); err != nil && !documented(err) {
			t.Fatal(err)
		}
	}
}

// What is asked in one go takes one delay, not one for each.
func TestBatchesAreOneRoundTrip(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	server, ctx := testkit.Redis(t), context.Background()
	link := testkit.Proxy(t, server.Addr)
	store := redisstore.New(testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), redisstore.Options{})
	load(t, store)
	var tokens []idem.Token
	var claims []idem.Claim
	for i := range 32 {
		q := request(fmt.Sprint("batch-", i))
		tokens = append(tokens, token(q, "jti"))
		claims = append(claims, claim(t, store, q))
	}
	link.Latency(delay)
	for name, call := range map[string]func() error{
		"issue of 32 tokens":  func() error { return store.Issue(ctx, tokens) },
		"extend of 32 claims": func() error { _, err := store.Extend(ctx, claims); return err },
	} {
		start := time.Now()
		must(t, call())
		if took := time.Since(start); took >= 2*delay {
			t.Errorf("%s took %v at %v a round trip", name, took, delay)
		}
	}
}

// The server is asked by one command each, whatever the client counts.
func TestCommandsAtServer(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx, q := context.Background(), request("r-00000001")
	load(t, store)
	must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	must(t, rdb.ConfigResetStat(ctx).Err())
	answer, err := store.Spend(ctx, "jti", q)
	must(t, err)
	must(t, store.Complete(ctx, answer.Claim, result))
	stats, err := rdb.Info(ctx, "commandstats").Result()
	must(t, err)
	if !strings.Contains(stats, "cmdstat_evalsha:calls=2,") || strings.Contains(stats, "cmdstat_eval:") {
		t.Errorf("spend and complete took\n%s", stats)
	}
}
