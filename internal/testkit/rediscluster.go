package testkit

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisCluster is a private Redis Cluster.
type RedisCluster struct {
	Nodes    []*RedisServer // the primaries, which share the slots evenly
	Replicas []*RedisServer // one for each primary, in no order; none unless asked for
}

// Cluster starts a Redis Cluster of so many primaries, 3 at least, without replicas. It ends with the test.
func Cluster(t testing.TB, nodes int) *RedisCluster {
	t.Helper()
	cluster := &RedisCluster{Nodes: clusterNodes(t, nodes)}
	cluster.create(t, "0")
	return cluster
}

// ReplicatedCluster starts a Redis Cluster of so many primaries, 3 at least, with a replica each, which takes its primary's place two seconds after
// its death. It ends with the test.
func ReplicatedCluster(t testing.TB, primaries int) *RedisCluster {
	t.Helper()
	cluster := &RedisCluster{Nodes: clusterNodes(t, primaries), Replicas: clusterNodes(t, primaries)}
	cluster.create(t, "1")
	for _, replica := range cluster.Replicas {
		inStep(t, replica)
	}
	return cluster
}

func clusterNodes(t testing.TB, count int) []*RedisServer {
	t.Helper()
	var nodes []*RedisServer
	for range count {
		nodes = append(nodes, Redis(t,
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
			// The default, 10,000 above the client's port, overflows from most free ports.
			"--cluster-port", strconv.Itoa(FreePort(t))))
	}
	return nodes
}

// create joins the nodes; redis-cli makes primaries of the first ones.
func (c *RedisCluster) create(t testing.TB, replicas string) {
	t.Helper()
	cli := Binary(t, "redis-cli", "redis-tools")
	args := append([]string{"--cluster", "create"}, c.Addrs()...)
	output, err := exec.CommandContext(t.Context(), cli, append(args, "--cluster-replicas", replicas, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, output)
	}
	for _, node := range c.all() {
		rdb := node.Client(t)
		Eventually(t, 20*time.Second, "the cluster is up on "+node.Addr, func() bool {
			info, err := rdb.ClusterInfo(context.Background()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		})
	}
}

func (c *RedisCluster) all() []*RedisServer { return slices.Concat(c.Nodes, c.Replicas) }

// Addrs are the nodes' addresses, the primaries' first.
func (c *RedisCluster) Addrs() []string {
	var addrs []string
	for _, node := range c.all() {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Client returns a client of the whole cluster that is closed with the test.
func (c *RedisCluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(),
		// At the default, 60 seconds, go-redis goes on asking a dead primary for as long.
		ClusterStateReloadInterval: time.Second,
		MaxRedirects:               8,
		DialTimeout:                2 * time.Second,
		DialerRetries:              1,
		ReadTimeout:                5 * time.Second,
		WriteTimeout:               5 * time.Second,
		PoolTimeout:                10 * time.Second,
		PoolSize:                   16,
		MaxRetries:                 3,
		MinRetryBackoff:            time.Millisecond,
		MaxRetryBackoff:            20 * time.Millisecond,
		ContextTimeoutEnabled:      true,
		DisableIdentity:            true,
		MaintNotificationsConfig:   &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
