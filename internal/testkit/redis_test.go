package testkit_test

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/idemkit/idem/internal/testkit"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	set := func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		if err := rdb.Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(t *testing.T, rdb *redis.Client, want int64) {
		t.Helper()
		if got, err := rdb.Exists(ctx, "k").Result(); got != want || err != nil {
			t.Errorf("%d keys, %v; want %d", got, err, want)
		}
	}
	tests := map[string]func(*testing.T){
		"servers share nothing": func(t *testing.T) {
			one, other := testkit.Redis(t), testkit.Redis(t)
			set(t, one.Client(t))
			holds(t, other.Client(t), 0)
		},
		"flush": func(t *testing.T) {
			server := testkit.Redis(t)
			rdb := server.Client(t)
			set(t, rdb)
			server.FlushAll(t)
			holds(t, rdb, 0)
		},
		"killed and restarted, it forgot": func(t *testing.T) {
			server := testkit.Redis(t)
			rdb := server.Client(t)
			set(t, rdb)
			server.Kill()
			if err := rdb.Ping(ctx).Err(); err == nil {
				t.Error("a dead server answers")
			}
			server.Restart(t)
			holds(t, rdb, 0)
		},
		"restarted with its append-only file, it remembers": func(t *testing.T) {
			server := testkit.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			rdb := server.Client(t)
			set(t, rdb)
			server.Restart(t)
			holds(t, rdb, 1)
		},
		"stopped in order": func(t *testing.T) {
			server := testkit.Redis(t, "--save", "3600 1")
			rdb := server.Client(t)
			set(t, rdb)
			server.Stop()
			server.Restart(t)
			holds(t, rdb, 1)
		},
		"frozen": func(t *testing.T) {
			server := testkit.Redis(t)
			rdb := server.Client(t)
			if err := server.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if err := rdb.Ping(short).Err(); err == nil {
				t.Error("a frozen server answers")
			}
			if err := server.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			holds(t, rdb, 0)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.Cluster(t, 3)
	rdb := cluster.Client(t)
	for i := range 100 {
		if err := rdb.Set(ctx, strconv.Itoa(i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range cluster.Nodes {
		if size, err := node.Client(t).DBSize(ctx).Result(); size == 0 || err != nil {
			t.Errorf("%s holds %d keys, %v", node.Addr, size, err)
		}
	}
}

// Not parallel: it looks at all goroutines.
func TestRedisLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("used", func(t *testing.T) {
		server := testkit.Redis(t)
		server.FlushAll(t)
		server.Client(t).Ping(context.Background())
		server.Restart(t)
	})
	goleak.VerifyNone(t, before)
}
