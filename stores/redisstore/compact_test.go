package redisstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// A field of more than 64 bytes makes Redis store a hash as a table, at three times the room: 1,300 bytes instead of 430 to 490, as MEMORY USAGE counts.
// The parts of usual keys bring no record there.
func TestRecordIsStoredCompactly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	subject, id := idem.Digest("alice"), idem.NewOwner()
	for name, key := range map[string]idem.Key{
		"of a token":    {Tenant: "acme", Type: "order.create", Scope: subject, ID: id},
		"of a header":   {Type: "transfer.create", Scope: subject, ID: strings.Repeat("k", 36)},
		"of a business": {Tenant: "acme", Type: "refund.create", ID: "RF-2024-000001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			compact := func(when string) {
				t.Helper()
				encoding, err := rdb.ObjectEncoding(ctx, recordKey(key)).Result()
				size := rdb.MemoryUsage(ctx, recordKey(key), 0).Val()
				if err != nil || !slices.Contains([]string{"listpack", "ziplist"}, encoding) || size > 640 {
					t.Errorf("%s: %s of %d bytes, %v", when, encoding, size, err)
				}
			}
			c := claim(t, store, idem.Request{
				Key: key, Subject: subject, RequestID: id, Fingerprint: []byte(strings.Repeat("f", 32)), Owner: idem.NewOwner(),
				Lease: time.Minute, Retention: time.Hour, Ledger: "postgres/shop/public.idem_records",
			})
			compact("claimed")
			beside := result
			beside.Keep = time.Minute
			must(t, store.Complete(ctx, c, beside))
			compact("done, its result beside")
		})
	}
}

// A ring's shards are scanned like a cluster's primaries.
func TestScanOfARing(t *testing.T) {
	t.Parallel()
	first, second := testkit.Redis(t), testkit.Redis(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"first": first.Addr, "second": second.Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	store := redisstore.New(ring, redisstore.Options{})
	want := fill(t, store, 64)
	if found := scan(t, store); !slices.Equal(sorted(found), want) {
		t.Errorf("saw %d of %d", len(found.records), len(want))
	}
	for _, node := range []*testkit.RedisServer{first, second} {
		if size := node.Client(t).DBSize(context.Background()).Val(); size == 0 {
			t.Errorf("%s holds nothing", node.Addr)
		}
	}
}
