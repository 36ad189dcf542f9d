package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// only finds the one record that there is, as a scan gives it.
func only(t *testing.T, store *redisstore.Store) idem.Record {
	t.Helper()
	found := scan(t, store)
	if len(found.records) != 1 {
		t.Fatalf("%d records", len(found.records))
	}
	for _, r := range found.records {
		return r
	}
	return idem.Record{}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	beside := result
	beside.Keep = time.Minute
	nothing := func(*testing.T, *redisstore.Store, *redis.Client, idem.Claim) {}
	complete := func(t *testing.T, store *redisstore.Store, _ *redis.Client, c idem.Claim) {
		t.Helper()
		must(t, store.Complete(ctx, c, beside))
	}
	release := func(as idem.State) func(*testing.T, *redisstore.Store, *redis.Client, idem.Claim) {
		return func(t *testing.T, store *redisstore.Store, _ *redis.Client, c idem.Claim) {
			t.Helper()
			must(t, store.Release(ctx, c, as, ""))
		}
	}
	tests := map[string]struct {
		before, between func(*testing.T, *redisstore.Store, *redis.Client, idem.Claim)
		dropped         bool
		left            int64
	}{
		"a success and its result": {complete, nothing, true, 0},
		"a claim":                  {nothing, nothing, true, 0},
		"a failure":                {release(idem.Failed), nothing, true, 0},
		"a cancellation":           {release(idem.Cancelled), nothing, true, 0},
		"an unknown outcome":       {release(idem.Processing), nothing, true, 0},
		"a renewed claim is still the same": {nothing, func(t *testing.T, store *redisstore.Store, _ *redis.Client, c idem.Claim) {
			t.Helper()
			_, err := store.Extend(ctx, []idem.Claim{c})
			must(t, err)
		}, true, 0},
		"a state that changed":       {nothing, complete, false, 2},
		"an owner that was given up": {nothing, release(idem.Processing), false, 1},
		"a takeover": {nothing, func(t *testing.T, store *redisstore.Store, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			lapse(t, rdb, recordKey(c.Key))
			claim(t, store, by(c.Request))
		}, false, 1},
		"an attempt that was restored": {complete, func(t *testing.T, store *redisstore.Store, _ *redis.Client, c idem.Claim) {
			t.Helper()
			c.Attempt = 2
			must(t, store.Restore(ctx, c, result))
		}, false, 1},
		"a newer format": {nothing, func(t *testing.T, _ *redisstore.Store, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			must(t, rdb.HSet(ctx, recordKey(c.Key), "format", idem.Format+1).Err())
		}, false, 1},
		"one that is gone": {nothing, func(t *testing.T, _ *redisstore.Store, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			must(t, rdb.Del(ctx, recordKey(c.Key)).Err())
		}, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			c := claim(t, store, request("r-00000001"))
			test.before(t, store, rdb, c)
			found := only(t, store)
			test.between(t, store, rdb, c)
			if dropped, err := store.Drop(ctx, found); dropped != test.dropped || err != nil {
				t.Errorf("dropped %v, %v", dropped, err)
			}
			if left := rdb.DBSize(ctx).Val(); left != test.left {
				t.Errorf("%d keys left", left)
			}
			if dropped, err := store.Drop(ctx, found); dropped || err != nil {
				t.Errorf("again: dropped %v, %v", dropped, err)
			}
			if left := rdb.DBSize(ctx).Val(); left != test.left {
				t.Errorf("again: %d keys left", left)
			}
		})
	}
}

// A token is no part of the record: it permits the next claim, or proves to a ledger that its request is honest.
func TestDropLeavesTokens(t *testing.T) {
	t.Parallel()
	ctx, q := context.Background(), request("r-00000001")
	store, _ := open(t)
	claim(t, store, q)
	must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	if dropped, err := store.Drop(ctx, only(t, store)); !dropped || err != nil {
		t.Fatalf("dropped %v, %v", dropped, err)
	}
	if answer, err := store.Spend(ctx, "jti", by(q)); err != nil || answer.Outcome != idem.Won || answer.Claim.Attempt != 1 {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// Of a lapsed claim that is dropped and taken over at once, either the taker begins anew or the drop finds another's claim: never is the taker's removed.
func TestDropRacesWithATakeover(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	var wins atomic.Int64
	const rounds = 200
	for round := range rounds {
		q := request(fmt.Sprint("race-", round))
		claim(t, store, q)
		lapse(t, rdb, recordKey(q.Key))
		found := lookup(t, store, q.Key)
		taker := by(q)
		var gone atomic.Bool
		var answer idem.Answer
		var racers sync.WaitGroup
		for range 2 {
			racers.Go(func() {
				if dropped, err := store.Drop(ctx, found); err == nil && dropped {
					wins.Add(1)
					gone.Store(true)
				}
			})
		}
		racers.Go(func() { answer, _ = store.Claim(ctx, taker) })
		racers.Wait()
		dropped, want := gone.Load(), 2
		if dropped {
			want = 1
		}
		if answer.Outcome != idem.Won || answer.Claim.Attempt != want {
			t.Fatalf("dropped %v, answer %+v", dropped, answer)
		}
		if got := lookup(t, store, q.Key); got.Owner != taker.Owner || got.Attempt != want {
			t.Fatalf("dropped %v, record %+v", dropped, got)
		}
	}
	t.Logf("%d of %d dropped first", wins.Load(), rounds)
}

// The repetition of a lost reply cannot say that the call before it dropped the record, but does no harm.
func TestDropWhoseReplyIsLost(t *testing.T) {
	t.Parallel()
	server, ctx, q := testkit.Redis(t), context.Background(), request("r-00000001")
	direct := redisstore.New(server.Client(t), redisstore.Options{})
	rdb, lost := lossy(t, server.Addr)
	claim(t, direct, q)
	dropped, err := redisstore.New(rdb, redisstore.Options{}).Drop(ctx, only(t, direct))
	if dropped || err != nil || lost.Load() == 0 {
		t.Errorf("dropped %v, %v; %d replies lost", dropped, err, lost.Load())
	}
	if left := scan(t, direct).visits; left != 0 {
		t.Errorf("%d left", left)
	}
}

func TestDropAtAFormerPrimary(t *testing.T) {
	t.Parallel()
	ctx, q := context.Background(), request("r-00000001")
	for name, owner := range map[string]string{"as seen": q.Owner, "of another": "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			claim(t, store, q)
			found := only(t, store)
			found.Owner = owner
			must(t, rdb.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(testkit.FreePort(t))).Err())
			if dropped, err := store.Drop(ctx, found); dropped || !redis.HasErrorPrefix(err, "READONLY") {
				t.Errorf("dropped %v, %v", dropped, err)
			}
		})
	}
}

func TestDropIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	for _, id := range []string{"first", "second"} {
		claim(t, store, request(id))
	}
	first, second := lookup(t, store, request("first").Key), lookup(t, store, request("second").Key)
	_, err := store.Drop(ctx, first)
	must(t, err)
	counter := trips{new(atomic.Int64)}
	rdb.AddHook(counter)
	dropped, err := store.Drop(ctx, second)
	if got := counter.count.Load(); !dropped || err != nil || got != 1 {
		t.Errorf("dropped %v, %v in %d round trips", dropped, err, got)
	}
}
