package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
	"github.com/idemkit/idem/stores/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	rdb, second := server.Client(t), server.Client(t)
	storetest.Run(t, func(t testing.TB) storetest.Backend {
		b := backend(rdb, second)
		prefix := b.Store.(prefixed).prefix
		b.Lossy = func(t testing.TB) idem.Store {
			lossy, _ := lossy(t, server.Addr)
			return redisstore.New(lossy, redisstore.Options{Prefix: prefix})
		}
		return b
	})
}

// autumn#1341: CROSSSLOT on a cluster.
func TestContractOnCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.Cluster(t, 3)
	rdb, second := cluster.Client(t), cluster.Client(t)
	storetest.Run(t, func(testing.TB) storetest.Backend { return backend(rdb, second) })
}

// prefixed is a store with a prefix of its own, which keeps the tests on one Redis apart.
type prefixed struct {
	*redisstore.Store
	prefix string
}

func backend(rdb, second redis.UniversalClient) storetest.Backend {
	prefix := "test-" + idem.NewOwner()
	return storetest.Backend{
		Store:   prefixed{redisstore.New(rdb, redisstore.Options{Prefix: prefix}), prefix},
		Another: redisstore.New(second, redisstore.Options{Prefix: prefix}),
		Lapse: func(t testing.TB, key idem.Key) {
			lapse(t, rdb, prefix+":1:{"+key.Digest()+"}:r")
		},
		Forget: func(t testing.TB) { forget(t, rdb, prefix+":*") },
	}
}

// forget deletes all keys of a pattern, on every node.
func forget(t testing.TB, rdb redis.UniversalClient, pattern string) {
	t.Helper()
	ctx := context.Background()
	clean := func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if err := node.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		return keys.Err()
	}
	var err error
	switch client := rdb.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, clean)
	case *redis.Client:
		err = clean(ctx, client)
	}
	if err != nil {
		t.Fatal(err)
	}
}
