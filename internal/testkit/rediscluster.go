package testkit

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisCluster is a private Redis Cluster.
type RedisCluster struct {
	Nodes []*RedisServer // the primaries, which share the slots evenly
}

// Cluster starts a Redis Cluster of so many primaries, 3 at least, without replicas. It ends with the test.
func Cluster(t testing.TB, nodes int) *RedisCluster {
	t.Helper()
	cluster := &RedisCluster{}
	for range nodes {
		cluster.Nodes = append(cluster.Nodes, Redis(t,
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			// The default, 10,000 above the client's port, overflows from most free ports.
			"--cluster-port", strconv.Itoa(FreePort(t))))
	}
	cli := Binary(t, "redis-cli", "redis-tools")
	args := append([]string{"--cluster", "create"}, cluster.Addrs()...)
	output, err := exec.CommandContext(t.Context(), cli, append(args, "--cluster-replicas", "0", "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, output)
	}
	for _, node := range cluster.Nodes {
		rdb := node.Client(t)
		Eventually(t, 20*time.Second, "the cluster is up on "+node.Addr, func() bool {
			info, err := rdb.ClusterInfo(context.Background()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		})
	}
	return cluster
}

// Addrs are the nodes' addresses.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
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
