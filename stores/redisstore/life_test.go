package redisstore_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
)

// bounded checks that every key lives at most so long, and the millisecond that arguments adds.
func bounded(t *testing.T, rdb *redis.Client, longest time.Duration) {
	t.Helper()
	for _, key := range allKeys(t, rdb) {
		left, err := rdb.PTTL(context.Background(), key).Result()
		if err != nil || left <= 0 || left > longest+time.Millisecond {
			t.Errorf("%s lives %v, %v; at most %v", key, left, err, longest)
		}
	}
}

func TestEveryKeyHasATimeToLive(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			ctx, q := context.Background(), request("r-00000001")
			op.prepare(t, store, q)
			bounded(t, rdb, q.Retention)
			for range 2 {
				if _, err := op.call(ctx, store, q); err != nil && !documented(err) {
					t.Fatal(err)
				}
				bounded(t, rdb, q.Retention)
			}
		})
	}
}

func TestLifeOfKeys(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	life := func(t *testing.T, key string, at, most time.Duration) {
		t.Helper()
		left, err := rdb.PTTL(ctx, key).Result()
		if err != nil || left <= at || left > most+time.Millisecond {
			t.Errorf("lives %v, %v; want (%v, %v]", left, err, at, most)
		}
	}
	kept := func(q idem.Request) string { return strings.TrimSuffix(recordKey(q.Key), "r") + "b" }
	complete := func(t *testing.T, q idem.Request, keep time.Duration) {
		t.Helper()
		r := result
		r.Keep = keep
		must(t, store.Complete(ctx, claim(t, store, q), r))
	}
	tests := map[string]func(*testing.T, idem.Request){
		"a token, its own": func(t *testing.T, q idem.Request) {
			must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
			life(t, strings.TrimSuffix(recordKey(q.Key), "r")+"t:jti", 50*time.Second, time.Minute)
		},
		"a renewal prolongs the record": func(t *testing.T, q idem.Request) {
			claim(t, store, q)
			renewed := token(q, "jti")
			renewed.Retention = 5 * time.Hour
			must(t, store.Issue(ctx, []idem.Token{renewed}))
			life(t, recordKey(q.Key), 4*time.Hour, 5*time.Hour)
		},
		"a renewal never shortens the record": func(t *testing.T, q idem.Request) {
			claim(t, store, q)
			renewed := token(q, "jti")
			renewed.Retention = time.Minute
			must(t, store.Issue(ctx, []idem.Token{renewed}))
			life(t, recordKey(q.Key), 50*time.Minute, time.Hour)
		},
		"neither does a completion": func(t *testing.T, q idem.Request) {
			renewed := token(q, "jti")
			renewed.Retention = 5 * time.Hour
			claimed := claim(t, store, q)
			must(t, store.Issue(ctx, []idem.Token{renewed}))
			must(t, store.Complete(ctx, claimed, result))
			life(t, recordKey(q.Key), 4*time.Hour, 5*time.Hour)
		},
		"a result kept for a shorter time": func(t *testing.T, q idem.Request) {
			complete(t, q, 10*time.Minute)
			life(t, kept(q), 9*time.Minute, 10*time.Minute)
			life(t, recordKey(q.Key), 50*time.Minute, time.Hour)
		},
		"a result never outlives its record": func(t *testing.T, q idem.Request) {
			complete(t, q, 10*time.Hour)
			life(t, kept(q), 50*time.Minute, time.Hour)
		},
		"a result kept as long as its record has no key of its own": func(t *testing.T, q idem.Request) {
			complete(t, q, 0)
			if n := rdb.Exists(ctx, kept(q)).Val(); n != 0 {
				t.Error("a key of its own")
			}
		},
		"a result whose time is over is done, not kept": func(t *testing.T, q idem.Request) {
			complete(t, q, 10*time.Minute)
			must(t, rdb.Del(ctx, kept(q)).Err())
			answer, err := store.Claim(ctx, by(q))
			if got := answer.Record.Result; err != nil || answer.Outcome != idem.Done || got.Kept || got.Status != 201 || got.Body != nil {
				t.Errorf("answer %+v, %v", answer, err)
			}
		},
		"a result of a forgotten record is not another's": func(t *testing.T, q idem.Request) {
			complete(t, q, 10*time.Minute)
			must(t, rdb.Del(ctx, recordKey(q.Key)).Err())
			must(t, store.Complete(ctx, claim(t, store, by(q)), idem.Result{Status: 204}))
			if got := lookup(t, store, q.Key).Result; got.Kept || got.Status != 204 {
				t.Errorf("result %+v", got)
			}
		},
		"the longest there is": func(t *testing.T, q idem.Request) {
			q.Lease, q.Retention = math.MaxInt64, math.MaxInt64
			claim(t, store, q)
			if left := lookup(t, store, q.Key).LeaseLeft; left < math.MaxInt64-time.Hour {
				t.Errorf("lease left %v", left)
			}
			if left, err := rdb.Do(ctx, "PTTL", recordKey(q.Key)).Int64(); err != nil || left < math.MaxInt64/1_000_000-1000 {
				t.Errorf("lives %d ms, %v", left, err)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, request(name))
		})
	}
}

func TestNoMemoryLeftLosesNoToken(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx, q := context.Background(), request("r-00000001")
	must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	must(t, rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	if _, err := store.Spend(ctx, "jti", q); !redis.HasErrorPrefix(err, "OOM") {
		t.Fatalf("error %v", err)
	}
	must(t, rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	if answer, err := store.Spend(ctx, "jti", q); err != nil || answer.Outcome != idem.Won || answer.Claim.Attempt != 1 {
		t.Errorf("answer %+v, %v", answer, err)
	}
}
