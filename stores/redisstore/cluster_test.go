package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// Batches reach every node, one that has lost its scripts included; all keys of an operation lie in one slot.
func TestBatchesOnCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.Cluster(t, 3)
	rdb := cluster.Client(t)
	store := redisstore.New(rdb, redisstore.Options{})
	var tokens []idem.Token
	var claims []idem.Claim
	for i := range 32 {
		q := request(fmt.Sprint("cluster-", i))
		tokens = append(tokens, token(q, "jti"))
		claims = append(claims, idem.Claim{Request: q, Attempt: 1})
	}
	for _, flushed := range cluster.Nodes {
		must(t, flushed.Client(t).ScriptFlush(ctx).Err())
		must(t, store.Issue(ctx, tokens))
		must(t, flushed.Client(t).ScriptFlush(ctx).Err())
		if lost, err := store.Extend(ctx, claims); len(lost) != 0 || err != nil {
			t.Fatalf("lost %v, %v", lost, err)
		}
	}
	result := result
	result.Keep = claims[0].Retention / 2
	for i, c := range claims {
		if answer, err := store.Spend(ctx, "jti", c.Request); err != nil || answer.Outcome != idem.Won {
			t.Fatalf("spend: %v, %v", answer.Outcome, err)
		}
		if i%2 == 0 {
			must(t, store.Complete(ctx, c, result))
		}
	}
	lost, err := store.Extend(ctx, claims)
	if err != nil || len(lost) != 16 || !slices.IsSorted(lost) || lost[0] != 0 || lost[15] != 30 {
		t.Errorf("lost %v, %v", lost, err)
	}
	for _, node := range cluster.Nodes {
		if size := node.Client(t).DBSize(ctx).Val(); size < 5 {
			t.Errorf("%s holds %d keys", node.Addr, size)
		}
	}
	oneSlot(t, rdb, claims[0].Key)
}

func oneSlot(t *testing.T, rdb *redis.ClusterClient, key idem.Key) {
	t.Helper()
	ctx := context.Background()
	base := "idem:1:{" + key.Digest() + "}:"
	want := rdb.ClusterKeySlot(ctx, base+"r").Val()
	for _, other := range []string{"b", "t:jti", "t:{x}", "t:}{"} {
		if got := rdb.ClusterKeySlot(ctx, base+other).Val(); got != want {
			t.Errorf("%s lies in slot %d, the record in %d", other, got, want)
		}
	}
}

// A node that is away fails its own claims and nobody else's; the error says that not all could be asked.
func TestNodeAway(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.Cluster(t, 3)
	store := redisstore.New(cluster.Client(t), redisstore.Options{})
	var claims []idem.Claim
	for i := range 24 {
		claims = append(claims, claim(t, store, request(fmt.Sprint("away-", i))))
	}
	must(t, store.Release(ctx, claims[5], idem.Failed, ""))
	cluster.Nodes[0].Kill()
	lost, err := store.Extend(ctx, claims)
	var part *idem.PartError
	if documented(err) || !errors.As(err, &part) {
		t.Fatalf("error %v", err)
	}
	if n := len(part.Unasked); n == 0 || n == len(claims) || !slices.IsSorted(part.Unasked) {
		t.Errorf("unasked %v of %d", part.Unasked, len(claims))
	}
	for i, c := range claims {
		renewed := !slices.Contains(part.Unasked, i) && !slices.Contains(lost, i)
		if _, err := store.Lookup(ctx, c.Request); (err == nil) != (renewed || slices.Contains(lost, i)) {
			t.Errorf("claim %d: renewed %v, and then %v", i, renewed, err)
		}
	}
	for _, index := range lost {
		if index != 5 {
			t.Errorf("claim %d is called lost, its node was away", index)
		}
	}
}
