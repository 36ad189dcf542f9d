package redisstream_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/consumertest"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	shared := testkit.Redis(t, durable()...)
	consumertest.Run(t, func(t testing.TB, need consumertest.Need) consumertest.Backend {
		server := shared
		if need.Alone {
			server = testkit.Redis(t, durable()...)
		}
		return backend(t, server)
	})
}

func backend(t testing.TB, server *testkit.RedisServer) consumertest.Backend {
	ledger, path := newLedger(t)
	link := testkit.Proxy(t, server.Addr)
	rdb, producer := testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), server.Client(t)
	stream := "orders-" + idem.NewOwner()
	return consumertest.Backend{
		Ledger: ledger,
		Publish: func(ctx context.Context, m consumer.Message) error {
			_, err := redisstream.Publish(ctx, producer, stream, m)
			return err
		},
		Run: func(ctx context.Context, c *consumer.Consumer, concurrency int) error {
			adapter, err := redisstream.New(rdb, config(stream, concurrency))
			if err != nil {
				return err
			}
			return adapter.Run(ctx, c)
		},
		Dead: func(ctx context.Context, name string) ([]consumer.Message, error) {
			return letters(ctx, producer, stream, name)
		},
		Pending: func(ctx context.Context, name string) (int, error) { return pending(ctx, producer, stream, name) },
		Kill:    func(testing.TB) { server.Kill() },
		Restart: server.Restart,
		Cut:     func(testing.TB) { link.Cut() },
		Delete: func(t testing.TB, _ string) {
			if err := producer.Del(context.Background(), stream).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Crash: func(t testing.TB, name string) { crash(t, name, server.Addr, stream, path) },
	}
}

// letters reads the dead letters as somebody would who knows only the keys.
func letters(ctx context.Context, rdb *redis.Client, stream, group string) ([]consumer.Message, error) {
	entries, err := rdb.XRange(ctx, "{"+stream+"}:dead:"+group, "-", "+").Result()
	var found []consumer.Message
	for _, entry := range entries {
		m := consumer.Message{Headers: map[string]string{}}
		for name, value := range entry.Values {
			switch text := value.(string); name {
			case redisstream.FieldID:
				m.ID = text
			case redisstream.FieldBody:
				m.Body = []byte(text)
			default:
				m.Headers[name] = text
			}
		}
		found = append(found, m)
	}
	return found, err
}
