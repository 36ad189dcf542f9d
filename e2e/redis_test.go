package e2e_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// TestRedisForgets everything at any moment: nothing is ordered twice and nothing honest is refused.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		token, item := v.token(), v.item()
		b.redis.FlushAll(t)
		first := v.submit(token, "", one(item))
		v.wantFirst(first, 1)
		b.redis.FlushAll(t)
		v.wantReplay(v.submit(token, "", one(item)), first)
		v.wantReplay(v.submit(token, "", one(item)), first) // Redis was told again
		v.wantOrders(item, 1)
	})
}

// TestRedisForgetsWhileWorkRuns: the duplicate that comes then waits at the ledger.
func TestRedisForgetsWhileWorkRuns(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		token, item := v.token(), v.item()
		running := v.begin(v.ordering(token, "?delay=1s", one(item)))
		b.running(t, "order.create")
		b.redis.FlushAll(t)
		duplicates := v.together(5, func(int) *http.Request { return v.ordering(token, "?delay=1s", one(item)) })
		v.wantOneFirst(append(duplicates, v.wait(running)))
		v.wantOrders(item, 1)
	})
}

// TestRedisAway: with a ledger everything goes on.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		v.becomes(http.StatusOK, "ok")
		token, item := v.token(), v.item()
		b.redis.Kill()
		v.becomes(http.StatusOK, "degraded")
		begun := time.Now()
		first := v.submit(token, "", one(item))
		v.wantFirst(first, 1)
		v.wantReplay(v.submit(token, "", one(item)), first)
		other := v.item()
		v.wantFirst(v.submit(v.token(), "", one(other)), 1) // issued without Redis
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("without Redis four calls took %v", took)
		}
		v.want(v.get("/form"), http.StatusOK)

		b.redis.Restart(t)
		v.becomes(http.StatusOK, "ok")
		v.wantReplay(v.submit(token, "", one(item)), first)
		v.wantOrders(item, 1)
		v.wantOrders(other, 1)
	})
}

// TestRedisAwayAtStart: the shop opens all the same.
func TestRedisAwayAtStart(t *testing.T) {
	t.Parallel()
	b := embedded(t).withRedis(t)
	b.redis.Kill()
	v := visit(t, start(t, b))
	v.becomes(http.StatusOK, "degraded")
	item := v.item()
	v.wantFirst(v.submit(v.token(), "", one(item)), 1)
	b.redis.Restart(t)
	v.becomes(http.StatusOK, "ok")
}

// TestRedisFrozen takes commands and does not answer: it counts as away, within seconds.
func TestRedisFrozen(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		token, item := v.token(), v.item()
		must(t, b.redis.Signal(syscall.SIGSTOP))
		begun := time.Now()
		v.wantOneFirst(v.together(10, func(int) *http.Request { return v.ordering(token, "?delay=300ms", one(item)) }))
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the answers took %v", took)
		}
		must(t, b.redis.Signal(syscall.SIGCONT))
		v.becomes(http.StatusOK, "ok")
		v.want(v.submit(token, "", one(item)), http.StatusCreated)
		v.wantOrders(item, 1)
	})
}

// TestRedisSlow: racers at one process and at two, with each round trip so much slower - above a second Redis counts as away.
func TestRedisSlow(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(fmt.Sprint(latency), func(t *testing.T) {
			t.Parallel()
			b := redisAndPostgres(t)
			v := visit(t, start(t, b))
			both := []*visitor{v, v.at(start(t, b))}
			token, item := v.token(), v.item()
			b.link.Latency(latency)
			v.wantOneFirst(v.together(20, func(i int) *http.Request { return both[i%2].ordering(token, "?delay=200ms", one(item)) }))
			v.wantOrders(item, 1)
		})
	}
}

// TestRedisRepliesLost: what Redis was asked for is done, and nobody hears of it.
func TestRedisRepliesLost(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		for _, lost := range []int{1, 2, 5} {
			token, item := v.token(), v.item()
			b.link.DropReplies(lost)
			v.wantOneFirst(v.together(5, func(int) *http.Request { return v.ordering(token, "", one(item)) }))
			b.link.DropReplies(0)
			v.wantOrders(item, 1)
		}
	})
}
