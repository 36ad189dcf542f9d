package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/redisstore"
)

// What vanished under an exclusive claim is lost, and nothing is written: another may hold it by now, and vanish as well.
func TestExclusiveClaims(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	extend := func(store *redisstore.Store, c idem.Claim) error {
		lost, err := store.Extend(ctx, []idem.Claim{c})
		if len(lost) == 1 {
			err = errors.Join(err, idem.ErrClaimLost)
		}
		return err
	}
	complete := func(store *redisstore.Store, c idem.Claim) error { return store.Complete(ctx, c, result) }
	release := func(as idem.State) func(*redisstore.Store, idem.Claim) error {
		return func(store *redisstore.Store, c idem.Claim) error { return store.Release(ctx, c, as, "") }
	}
	calls := map[string]func(*redisstore.Store, idem.Claim) error{
		"extend": extend, "complete": complete, "fail": release(idem.Failed), "cancel": release(idem.Cancelled), "leave unknown": release(idem.Processing),
	}
	states := map[string]struct {
		change func(*testing.T, *redis.Client, idem.Claim)
		want   error
	}{
		"held": {func(*testing.T, *redis.Client, idem.Claim) {}, nil},
		"lease run out": {func(t *testing.T, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			lapse(t, rdb, recordKey(c.Key))
		}, nil},
		"vanished": {func(t *testing.T, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			must(t, rdb.FlushAll(ctx).Err())
		}, idem.ErrClaimLost},
		"another's after it vanished": {func(t *testing.T, rdb *redis.Client, c idem.Claim) {
			t.Helper()
			must(t, rdb.FlushAll(ctx).Err())
			claim(t, redisstore.New(rdb, redisstore.Options{}), by(c.Request))
		}, idem.ErrClaimLost},
	}
	for state, change := range states {
		for name, call := range calls {
			t.Run(state+"/"+name, func(t *testing.T) {
				t.Parallel()
				store, rdb := open(t)
				q := request("r-00000001")
				q.Exclusive = true
				c := claim(t, store, q)
				change.change(t, rdb, c)
				before := allKeys(t, rdb)
				if err := call(store, c); !errors.Is(err, change.want) {
					t.Errorf("error %v", err)
				}
				if after := allKeys(t, rdb); !slices.Equal(before, after) {
					t.Errorf("keys %v, before %v", after, before)
				}
			})
		}
	}
}

// In one batch the claims that are not exclusive are written again.
func TestExclusiveInABatch(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	var claims []idem.Claim
	for i, id := range []string{"a", "b", "c", "d"} {
		q := request(id)
		q.Exclusive = i%2 == 1
		claims = append(claims, idem.Claim{Request: q, Attempt: 1})
	}
	lost, err := store.Extend(context.Background(), claims)
	if err != nil || !slices.Equal(lost, []int{1, 3}) {
		t.Errorf("lost %v, %v", lost, err)
	}
	if got := sorted(scan(t, store)); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("records %v", got)
	}
}

// A record read says how long its result is still kept, so that who writes it elsewhere keeps it no longer.
func TestResultTellsWhatIsLeftOfItsLife(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		keep        time.Duration
		atLeast, at time.Duration
	}{
		"as long as the record":          {0, 0, 0},
		"for a shorter time":             {10 * time.Minute, 9 * time.Minute, 10 * time.Minute},
		"not for longer than the record": {10 * time.Hour, 59 * time.Minute, time.Hour + time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := open(t)
			q, r := request("r-00000001"), result
			r.Keep = test.keep
			must(t, store.Complete(context.Background(), claim(t, store, q), r))
			answer, err := store.Claim(context.Background(), by(q))
			must(t, err)
			for name, got := range map[string]idem.Result{"lookup": lookup(t, store, q.Key).Result, "claim": answer.Record.Result} {
				if got.Keep < test.atLeast || got.Keep > test.at || !got.Kept || string(got.Body) != string(r.Body) {
					t.Errorf("%s gives %+v", name, got)
				}
			}
		})
	}
}
