package redisstore_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// A primary that was demoted keeps its connections and goes on reading what it last knew. It must not say of a claim that it is lost, or of a token that
// it is unknown, when the primary of now would not: READONLY makes go-redis drop the connection and ask the right one. A success is final, so that
// it may answer from anywhere.
func TestDemotedPrimaryAnswersNothingButASuccess(t *testing.T) {
	t.Parallel()
	for _, op := range append(operations(), taken()...) {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			ctx, q := context.Background(), request("r-00000001")
			load(t, redisstore.New(rdb, redisstore.Options{Prefix: "load"}))
			op.prepare(t, store, q)
			final := rdb.HGet(ctx, recordKey(q.Key), "state").Val() == string(idem.Succeeded)
			must(t, rdb.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(testkit.FreePort(t))).Err())
			answer, err := op.call(ctx, store, q)
			if final && err == nil {
				return
			}
			if !redis.HasErrorPrefix(err, "READONLY") {
				t.Errorf("answered %+v, %v", answer, err)
			}
		})
	}
}

// taken are calls about a claim that somebody else holds, as far as the record says.
func taken() []operation {
	byAnother := func(t *testing.T, store *redisstore.Store, q idem.Request) { t.Helper(); claim(t, store, by(q)) }
	newer := func(q idem.Request) idem.Claim { return idem.Claim{Request: q, Attempt: 2} }
	return []operation{
		{"claim what another holds", byAnother, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return store.Claim(ctx, q)
		}},
		{"extend what another holds", byAnother, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return store.Extend(ctx, []idem.Claim{newer(q)})
		}},
		{"complete what another holds", byAnother, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return nil, store.Complete(ctx, newer(q), result)
		}},
		{"fail what another holds", byAnother, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return nil, store.Release(ctx, newer(q), idem.Failed, "")
		}},
		{"lookup of what another holds", byAnother, func(ctx context.Context, store *redisstore.Store, q idem.Request) (any, error) {
			return store.Lookup(ctx, q)
		}},
	}
}
