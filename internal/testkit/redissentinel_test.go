package testkit_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/idemkit/idem/internal/testkit"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, fault := range map[string]func(*testing.T, *testkit.RedisSentinel) *testkit.RedisServer{
		"killed": func(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer { return s.KillPrimary(t) },
		"demoted": func(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer {
			old := s.Demote(t)
			if err := old.Client(t).Set(ctx, "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "READONLY") {
				t.Errorf("the old primary answers a write with %v", err)
			}
			return old
		},
		"replaced while well": func(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer { return s.Failover(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sentinel := testkit.Sentinel(t)
			rdb := sentinel.Client(t)
			first := sentinel.Primary(t)
			if err := rdb.Set(ctx, "before", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := rdb.Wait(ctx, 1, 10*time.Second).Err(); err != nil {
				t.Fatal(err)
			}
			old := fault(t, sentinel)
			now := sentinel.AwaitFailover(t, old)
			if old != first || now == first {
				t.Fatalf("from %s to %s, the first was %s", old.Addr, now.Addr, first.Addr)
			}
			direct := now.Client(t)
			testkit.Eventually(t, 10*time.Second, "the client writes to the new primary", func() bool {
				return rdb.Set(ctx, "after", "v", 0).Err() == nil && direct.Exists(ctx, "after").Val() == 1
			})
			if held := direct.Exists(ctx, "before").Val(); held != 1 {
				t.Error("what was replicated is gone")
			}
		})
	}
}

func TestReplicatedCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.ReplicatedCluster(t, 3)
	for _, replica := range cluster.Replicas {
		if role := replica.Client(t).InfoMap(ctx, "replication").Item("Replication", "role"); role != "slave" {
			t.Errorf("%s is a %s", replica.Addr, role)
		}
	}
	rdb := cluster.Client(t)
	for i := range 100 {
		if err := rdb.Set(ctx, strconv.Itoa(i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Nodes[0].Kill()
	testkit.Eventually(t, 20*time.Second, "every slot takes writes again", func() bool {
		for i := range 100 {
			if rdb.Set(ctx, strconv.Itoa(i), i, 0).Err() != nil {
				return false
			}
		}
		return true
	})
}

// Not parallel: it looks at all goroutines.
func TestSentinelLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("used", func(t *testing.T) {
		sentinel := testkit.Sentinel(t)
		if err := sentinel.Client(t).Ping(context.Background()).Err(); err != nil {
			t.Error(err)
		}
		sentinel.KillPrimary(t)
	})
	goleak.VerifyNone(t, before)
}
