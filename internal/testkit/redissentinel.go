package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinelMaster is what the sentinel calls the primary.
const sentinelMaster = "shop"

// RedisSentinel is a private primary with one replica, watched by one sentinel. There is one, with a quorum of one, because several may split their
// votes and then wait for seconds: the time of a fail-over would be theirs, not the client's.
type RedisSentinel struct {
	Nodes []*RedisServer // both servers, whatever their roles are now
	Addr  string         // the sentinel's "host:port"
}

// Sentinel starts the three, with the replica in step and ready to be promoted. They end with the test.
func Sentinel(t testing.TB) *RedisSentinel {
	t.Helper()
	primary := Redis(t, "--repl-diskless-sync-delay", "0")
	replica := Redis(t, "--repl-diskless-sync-delay", "0")
	follow(t, replica, primary)
	inStep(t, replica)
	port := strconv.Itoa(FreePort(t))
	s := &RedisSentinel{Nodes: []*RedisServer{primary, replica}, Addr: net.JoinHostPort("127.0.0.1", port)}
	host, at, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor %[2]s %s %s 1\nsentinel down-after-milliseconds %[2]s 1000\nsentinel failover-timeout %[2]s 5000\n",
		port, sentinelMaster, host, at)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	Start(t, exec.CommandContext(context.Background(), Binary(t, "redis-server", "redis-server"), settings, "--sentinel"), syscall.SIGTERM)
	s.awaitReplica(t)
	return s
}

// awaitReplica waits until the sentinel could promote the replica: it has connected to it and asked it.
func (s *RedisSentinel) awaitReplica(t testing.TB) {
	t.Helper()
	Eventually(t, 20*time.Second, "the sentinel knows the replica", func() bool {
		known := false
		s.ask(func(ctx context.Context, c *redis.SentinelClient) {
			replicas, err := c.Replicas(ctx, sentinelMaster).Result()
			known = err == nil && len(replicas) == 1 && replicas[0]["flags"] == "slave" && replicas[0]["master-link-status"] == "ok"
		})
		return known
	})
}

// Client returns a client that asks the sentinel for the primary. It is closed with the test.
func (s *RedisSentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	o := RedisOptions("")
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            sentinelMaster,
		SentinelAddrs:         []string{s.Addr},
		DialTimeout:           o.DialTimeout,
		DialerRetries:         o.DialerRetries,
		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		PoolTimeout:           o.PoolTimeout,
		PoolSize:              o.PoolSize,
		MaxRetries:            o.MaxRetries,
		MinRetryBackoff:       o.MinRetryBackoff,
		MaxRetryBackoff:       o.MaxRetryBackoff,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		DisableIdentity:       o.DisableIdentity,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Primary is the server that the sentinel names now.
func (s *RedisSentinel) Primary(t testing.TB) *RedisServer {
	t.Helper()
	var named *RedisServer
	Eventually(t, 10*time.Second, "the sentinel names a primary", func() bool {
		named = s.named()
		return named != nil
	})
	return named
}

// KillPrimary ends the primary as a crash does and returns at once, with what was the primary. The sentinel promotes the replica, which takes it
// about a second and a half.
func (s *RedisSentinel) KillPrimary(t testing.TB) *RedisServer {
	t.Helper()
	old := s.Primary(t)
	old.Kill()
	return old
}

// Demote makes the primary a replica, so that it refuses writes on the connections that it keeps, and then lets the sentinel promote the other. It returns
// what was the primary, after the sentinel has changed its mind.
func (s *RedisSentinel) Demote(t testing.TB) *RedisServer {
	t.Helper()
	old := s.Primary(t)
	follow(t, old, s.other(old))
	s.promote(t, old)
	return old
}

// Failover lets the sentinel promote the replica while the primary is well. It returns what was the primary, which goes on taking writes, soon to be
// lost, until the sentinel makes a replica of it some seconds later.
func (s *RedisSentinel) Failover(t testing.TB) *RedisServer {
	t.Helper()
	old := s.Primary(t)
	s.promote(t, old)
	return old
}

// AwaitFailover waits until the sentinel names another primary than the old one, and returns it.
func (s *RedisSentinel) AwaitFailover(t testing.TB, old *RedisServer) *RedisServer {
	t.Helper()
	var now *RedisServer
	Eventually(t, 20*time.Second, "the sentinel names another primary than "+old.Addr, func() bool {
		now = s.named()
		return now != nil && now != old
	})
	return now
}

func (s *RedisSentinel) promote(t testing.TB, old *RedisServer) {
	t.Helper()
	var refused error
	Eventually(t, 10*time.Second, "the sentinel begins a fail-over", func() bool {
		s.ask(func(ctx context.Context, c *redis.SentinelClient) { refused = c.Failover(ctx, sentinelMaster).Err() })
		return refused == nil
	})
	s.AwaitFailover(t, old)
}

func (s *RedisSentinel) other(node *RedisServer) *RedisServer {
	if s.Nodes[0] == node {
		return s.Nodes[1]
	}
	return s.Nodes[0]
}

// named is nil where the sentinel does not answer, or names neither.
func (s *RedisSentinel) named() *RedisServer {
	var found *RedisServer
	s.ask(func(ctx context.Context, c *redis.SentinelClient) {
		addr, err := c.GetMasterAddrByName(ctx, sentinelMaster).Result()
		if err != nil || len(addr) != 2 {
			return
		}
		for _, node := range s.Nodes {
			if node.Addr == net.JoinHostPort(addr[0], addr[1]) {
				found = node
			}
		}
	})
	return found
}

func (s *RedisSentinel) ask(question func(context.Context, *redis.SentinelClient)) {
	c := redis.NewSentinelClient(RedisOptions(s.Addr))
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	question(ctx, c)
}

// follow makes node a replica of primary. Its connections stay.
func follow(t testing.TB, node, primary *RedisServer) {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(RedisOptions(node.Addr))
	defer func() { _ = rdb.Close() }()
	if err := rdb.ReplicaOf(context.Background(), host, port).Err(); err != nil {
		t.Fatalf("REPLICAOF on %s: %v", node.Addr, err)
	}
}

// inStep waits until the replica has all that its primary has.
func inStep(t testing.TB, replica *RedisServer) {
	t.Helper()
	rdb := redis.NewClient(RedisOptions(replica.Addr))
	defer func() { _ = rdb.Close() }()
	Eventually(t, 20*time.Second, replica.Addr+" is in step with its primary", func() bool {
		return rdb.InfoMap(context.Background(), "replication").Item("Replication", "master_link_status") == "up"
	})
}
