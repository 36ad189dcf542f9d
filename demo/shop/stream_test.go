package shop_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/demo/shop"
	"github.com/idemkit/idem/internal/testkit"
)

// Over Redis Streams two processes share the work, and what Redis forgets is published again.
func TestPointsOverAStream(t *testing.T) {
	t.Parallel()
	for name, made := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, parts := testkit.Redis(t), made(t)
			stream := shop.NewStream(server.Client(t), parts.ledger, time.Second, slog.New(slog.DiscardHandler))
			one, other := openWith(t, parts, stream), openWith(t, parts, stream)
			ids := []string{one.ordering(), other.ordering()}
			server.FlushAll(t)
			ids = append(ids, one.ordering(), other.ordering())
			for _, id := range ids {
				one.wantGranted(id, 20)
			}
			id := one.ordering()
			one.wantGranted(id, 20)
			must(t, stream.Publish(t.Context(), consumer.Message{ID: id, Body: []byte(`{"orderId":"` + id + `","points":20}`)})) // a duplicate
			one.wantGranted(other.ordering(), 20)
			one.wantGranted(id, 20)
		})
	}
}

// While Redis is away points wait, and orders do not.
func TestPointsWithoutTheirBroker(t *testing.T) {
	t.Parallel()
	server, parts := testkit.Redis(t), onSQLite(t)
	s := openWith(t, parts, shop.NewStream(server.Client(t), parts.ledger, time.Second, slog.New(slog.DiscardHandler)))
	server.Kill()
	id := s.ordering()
	server.Restart(t)
	s.wantGranted(id, 20)
}

// Two ledgers in one Redis have two streams.
func TestStreamsOfTwoLedgers(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	rdb := server.Client(t)
	for _, p := range []parts{onSQLite(t), onSQLite(t)} {
		s := openWith(t, p, shop.NewStream(rdb, p.ledger, time.Second, slog.New(slog.DiscardHandler)))
		testkit.Eventually(t, 10*time.Second, "every key has a time to live before anything is ordered", func() bool { return mortal(t, rdb) })
		s.wantGranted(s.ordering(), 20)
	}
	if n := len(rdb.Keys(t.Context(), "idem-demo:orders:*").Val()); n != 2 || !mortal(t, rdb) {
		t.Errorf("%d streams, mortal %v", n, mortal(t, rdb))
	}
}

// mortal reports whether there are keys, and every one of them has a time to live.
func mortal(t *testing.T, rdb *redis.Client) bool {
	t.Helper()
	keys := rdb.Keys(t.Context(), "*").Val()
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return rdb.TTL(t.Context(), key).Val() < 0 })
}

// A header that the stream has another use for is refused.
func TestStreamRefusesHeaders(t *testing.T) {
	t.Parallel()
	stream := shop.NewStream(testkit.Redis(t).Client(t), onSQLite(t).ledger, time.Second, slog.New(slog.DiscardHandler))
	if err := stream.Publish(t.Context(), consumer.Message{ID: "m", Body: []byte("b"), Headers: map[string]string{"body": "x"}}); err == nil {
		t.Error("published")
	}
}
