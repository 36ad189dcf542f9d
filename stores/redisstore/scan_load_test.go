package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// fill claims so many keys, a few hundred in a round trip, and returns their ids in order.
func fill(t *testing.T, store *redisstore.Store, count int) []string {
	t.Helper()
	var ids []string
	for part := range slices.Chunk(slices.Repeat([]int{0}, count), 500) {
		var claims []idem.Claim
		for range part {
			q := request(fmt.Sprintf("r-%08d", len(ids)))
			claims, ids = append(claims, idem.Claim{Request: q, Attempt: 1}), append(ids, q.Key.ID)
		}
		if lost, err := store.Extend(context.Background(), claims); len(lost) != 0 || err != nil {
			t.Fatalf("lost %v, %v", lost, err)
		}
	}
	return ids
}

// Every record of a cluster is found, on whichever node, and each is visited by one goroutine after the other.
func TestScanOfACluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.Cluster(t, 3)
	store := redisstore.New(cluster.Client(t), redisstore.Options{})
	other := redisstore.New(cluster.Client(t), redisstore.Options{Prefix: "other"})
	want := fill(t, store, 500)
	fill(t, other, 100)
	found := scan(t, store)
	if got := sorted(found); !slices.Equal(got, want) || found.visits != len(want) {
		t.Fatalf("%d visits of %d records, want %d", found.visits, len(got), len(want))
	}
	for _, r := range found.records {
		if dropped, err := store.Drop(ctx, r); !dropped || err != nil {
			t.Fatalf("dropped %v, %v", dropped, err)
		}
	}
	if left := scan(t, store).visits; left != 0 {
		t.Errorf("%d left", left)
	}
	if left := scan(t, other).visits; left != 100 {
		t.Errorf("%d of another prefix left", left)
	}
	cluster.Nodes[1].Kill()
	if err := store.Scan(ctx, func(idem.Record, string) error { return nil }); err == nil {
		t.Error("complete, with a node away")
	}
}

// A slot that is to move is scanned as long as its records are there.
func TestScanMeetsAMovingSlot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.Cluster(t, 3)
	rdb := cluster.Client(t)
	store := redisstore.New(rdb, redisstore.Options{})
	want := fill(t, store, 50)
	slot := rdb.ClusterKeySlot(ctx, recordKey(request(want[0]).Key)).Val()
	from, err := rdb.MasterForKey(ctx, recordKey(request(want[0]).Key))
	must(t, err)
	for _, node := range cluster.Nodes {
		client := node.Client(t)
		if client.Options().Addr != from.Options().Addr {
			must(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", client.Do(ctx, "CLUSTER", "MYID").Val()).Err())
			break
		}
	}
	found := scan(t, store)
	if got := sorted(found); !slices.Equal(got, want) {
		t.Errorf("saw %d of %d", len(got), len(want))
	}
}

// Ten thousand records are all found while others write, finish and vanish.
func TestScanWhileOthersWrite(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	want := fill(t, store, 10_000)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var others sync.WaitGroup
	for worker := range 4 {
		others.Go(func() { disturb(ctx, store, rdb, worker) })
	}
	for range 3 {
		found := scan(t, store)
		if missing := slices.DeleteFunc(slices.Clone(want), func(id string) bool {
			_, there := found.records[request(id).Key]
			return there
		}); len(missing) != 0 {
			t.Fatalf("%d missing, %s first", len(missing), missing[0])
		}
		if found.visits > 2*len(found.records) {
			t.Errorf("%d visits of %d records", found.visits, len(found.records))
		}
	}
	stop()
	others.Wait()
}

// disturb makes records and removes them, so that Redis' table grows and shrinks, and takes others through their states.
func disturb(ctx context.Context, store *redisstore.Store, rdb *redis.Client, worker int) {
	for round := 0; ctx.Err() == nil; round++ {
		q := request(fmt.Sprintf("disturb-%d-%d", worker, round))
		c, err := store.Claim(ctx, q)
		if err != nil {
			continue
		}
		_ = store.Complete(ctx, c.Claim, result)
		if round%2 == 0 {
			rdb.Del(ctx, recordKey(q.Key))
		}
		_, _ = store.Extend(ctx, []idem.Claim{{Request: request(fmt.Sprintf("r-%08d", round%10_000)), Attempt: 1}})
	}
}

// A scan asks twice for each page, whatever the number of records in it, and never uses KEYS.
func TestScanRoundTrips(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	fill(t, store, 3_000)
	counter := trips{new(atomic.Int64)}
	rdb.AddHook(counter)
	must(t, rdb.ConfigResetStat(context.Background()).Err())
	counter.count.Store(0)
	scan(t, store)
	// Three pages and what the table's buckets hold beyond.
	if got := counter.count.Load(); got > 10 {
		t.Errorf("%d round trips", got)
	}
	if stats := rdb.Info(context.Background(), "commandstats").Val(); strings.Contains(stats, "cmdstat_keys") || strings.Contains(stats, "cmdstat_hgetall") {
		t.Errorf("commands\n%s", stats)
	}
}

// sorted are the ids that were visited, in order.
func sorted(found seen) []string {
	var ids []string
	for key := range found.records {
		ids = append(ids, key.ID)
	}
	slices.Sort(ids)
	return ids
}
