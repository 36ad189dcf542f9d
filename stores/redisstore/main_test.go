package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

func TestMain(m *testing.M) {
	// Faults are what is tested; go-redis would print each.
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// open returns a store on a Redis of its own.
func open(t *testing.T) (*redisstore.Store, *redis.Client) {
	t.Helper()
	rdb := testkit.Redis(t).Client(t)
	return redisstore.New(rdb, redisstore.Options{}), rdb
}

func request(id string) idem.Request {
	return idem.Request{
		Key: idem.Key{Type: "order.create", Scope: "alice", ID: id}, Subject: "alice", RequestID: id,
		Fingerprint: []byte("payload"), Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour,
	}
}

// by is the same request from another call.
func by(q idem.Request) idem.Request {
	q.Owner = idem.NewOwner()
	return q
}

func token(q idem.Request, id string) idem.Token {
	return idem.Token{ID: id, Key: q.Key, TTL: time.Minute, Retention: q.Retention}
}

func recordKey(key idem.Key) string { return "idem:1:{" + key.Digest() + "}:r" }

func claim(t *testing.T, store idem.Store, q idem.Request) idem.Claim {
	t.Helper()
	answer, err := store.Claim(context.Background(), q)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("claim: %v, %v", answer.Outcome, err)
	}
	return answer.Claim
}

func lookup(t *testing.T, store idem.Store, key idem.Key) idem.Record {
	t.Helper()
	found, err := store.Lookup(context.Background(), idem.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// must is for calls that prepare a test.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lapse ends a lease as time would; where there is no record it makes none.
func lapse(t testing.TB, rdb redis.UniversalClient, recordKey string) {
	t.Helper()
	const script = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'lease', redis.call('TIME')[1] * 1e6 - 1) end`
	err := rdb.Eval(context.Background(), script, []string{recordKey}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
}

// state is everything that Redis holds, without what differs from run to run: times, and owners' names.
func state(t *testing.T, rdb *redis.Client) map[string]map[string]string {
	t.Helper()
	ctx := context.Background()
	found := map[string]map[string]string{}
	for _, key := range allKeys(t, rdb) {
		if !strings.HasSuffix(key, ":r") {
			found[key] = map[string]string{"": rdb.Get(ctx, key).Val()}
			continue
		}
		record := rdb.HGetAll(ctx, key).Val()
		delete(record, "lease")
		found[key] = record
	}
	return found
}

func allKeys(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	keys, err := rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// operation is one call of the contract on a store that prepare has brought into the state that the call needs.
type operation struct {
	name    string
	prepare func(t *testing.T, store *redisstore.Store, q idem.Request)
	call    func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error)
}

var result = idem.Result{Status: 201, Header: [][2]string{{"Location", "/orders/1"}}, Body: []byte(`{"id":1}`), Kept: true}

// operations are all calls that reach Redis, in each of the states that matter to it. The claim's owner is the request's.
func operations() []operation {
	ctx := context.Background()
	nothing := func(*testing.T, *redisstore.Store, idem.Request) {}
	claimed := func(t *testing.T, store *redisstore.Store, q idem.Request) { t.Helper(); claim(t, store, q) }
	issued := func(t *testing.T, store *redisstore.Store, q idem.Request) {
		t.Helper()
		must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	}
	failed := func(t *testing.T, store *redisstore.Store, q idem.Request) {
		t.Helper()
		must(t, store.Release(ctx, claim(t, store, by(q)), idem.Failed, ""))
	}
	done := func(t *testing.T, store *redisstore.Store, q idem.Request) {
		t.Helper()
		must(t, store.Complete(ctx, claim(t, store, by(q)), result))
	}
	held := func(q idem.Request) idem.Claim { return idem.Claim{Request: q, Attempt: 1} }
	release := func(as idem.State) func(context.Context, *redisstore.Store, idem.Request) (any, error) {
		return func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return nil, store.Release(ctx, held(q), as, "because")
		}
	}
	claims := func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
		return store.Claim(ctx, q)
	}
	spend := func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
		return store.Spend(ctx, "jti", q)
	}
	extend := func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
		other := held(q)
		other.Key.ID += "-other"
		return store.Extend(ctx, []idem.Claim{held(q), other})
	}
	complete := func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
		return nil, store.Complete(ctx, held(q), result)
	}
	return []operation{
		{"issue", nothing, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return nil, store.Issue(ctx, []idem.Token{token(q, "jti"), token(q, "second")})
		}},
		{"spend a token", issued, spend},
		{"spend a token of a finished record", func(t *testing.T, store *redisstore.Store, q idem.Request) {
			t.Helper()
			issued(t, store, q)
			done(t, store, q)
		}, spend},
		{"spend an unknown token", nothing, spend},
		{"claim", nothing, claims},
		{"claim after a failure", failed, claims},
		{"claim what is done", done, claims},
		{"extend", claimed, extend},
		{"extend what is forgotten", nothing, extend},
		{"complete", claimed, complete},
		{"complete what is forgotten", nothing, complete},
		{"fail", claimed, release(idem.Failed)},
		{"cancel", claimed, release(idem.Cancelled)},
		{"leave unknown", claimed, release(idem.Processing)},
		{"restore", claimed, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return nil, store.Restore(ctx, idem.Claim{Request: by(q), Attempt: 7}, result)
		}},
		{"lookup", done, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return store.Lookup(ctx, q)
		}},
		{"lookup of nothing", nothing, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return store.Lookup(ctx, q)
		}},
	}
}
