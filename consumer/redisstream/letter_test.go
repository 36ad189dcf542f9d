package redisstream_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
)

func fails(context.Context, consumer.Message) error { return errBroken }

// letters waits for so many dead letters.
func (s *stream) letters(a *redisstream.Adapter, n int) []redisstream.Letter {
	s.Helper()
	var letters []redisstream.Letter
	testkit.Eventually(s, 20*time.Second, fmt.Sprint(n, " dead letters"), func() bool {
		var err error
		letters, err = a.Dead(context.Background(), "points", 1000)
		return err == nil && len(letters) == n
	})
	return letters
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	t.Run("in a stream of one's own choice", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		s.publish(consumer.Message{ID: "1", Body: []byte("x"), Headers: map[string]string{"Trace": "t"}})
		a, _ := s.run(s.consumer(fails, consumer.Attempts(1)), func(config *redisstream.Config) { config.Dead = s.name + "-graveyard" })
		letter := s.letters(a, 1)[0]
		if letter.Message.ID != "1" || letter.Message.Headers["Trace"] != "t" || letter.Message.Headers[consumer.HeaderSource] != s.name {
			t.Errorf("letter %+v", letter)
		}
		entries, err := s.rdb.XRange(context.Background(), s.name+"-graveyard", "-", "+").Result()
		if err != nil || len(entries) != 1 || entries[0].ID != letter.Entry {
			t.Errorf("entries %v, error %v", entries, err)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		for i := range 300 {
			s.publish(consumer.Message{ID: fmt.Sprint(i), Body: []byte("x")})
		}
		a, _ := s.run(s.consumer(fails, consumer.Attempts(1)), func(config *redisstream.Config) { config.MaxDead, config.Concurrency = 10, 8 })
		s.drained()
		letters, err := a.Dead(context.Background(), "points", 1000)
		if err != nil || len(letters) < 10 || len(letters) > 200 { // trimmed by whole nodes of 100
			t.Errorf("%d letters, error %v", len(letters), err)
		}
	})
	t.Run("of an entry whose stream is gone", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		s.publish(consumer.Message{ID: "1", Body: []byte("x")})
		a, _ := s.run(s.consumer(func(ctx context.Context, _ consumer.Message) error {
			if err := s.rdb.Del(ctx, s.name).Err(); err != nil {
				t.Error(err)
			}
			return errBroken
		}, consumer.Attempts(1)), nil)
		if letter := s.letters(a, 1)[0]; string(letter.Message.Body) != "x" {
			t.Errorf("letter %+v", letter)
		}
	})
	t.Run("with headers that a Decode has named like fields", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		if err := s.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: s.name, Values: []string{"payload", "x", "no", "4711"}}).Err(); err != nil {
			t.Fatal(err)
		}
		a, _ := s.run(s.consumer(fails, consumer.Attempts(1)), func(config *redisstream.Config) {
			config.Decode = func(fields map[string]string) consumer.Message {
				return consumer.Message{ID: fields["no"], Body: []byte(fields["payload"]), Headers: map[string]string{"id": "mine"}}
			}
		})
		letter := s.letters(a, 1)[0].Message
		if letter.ID != "4711" || string(letter.Body) != "x" || letter.Headers["header-id"] != "mine" {
			t.Errorf("letter %+v", letter)
		}
	})
}

// An entry that another program wrote needs no id of its own, and keeps the entry's, with the stream's key, as a dead letter.
func TestEntryIDStandsIn(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	id, err := s.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: s.name, Values: []string{"body", "x", "kind", "order"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	id = s.name + "/" + id
	var got atomic.Pointer[consumer.Message]
	a, _ := s.run(s.consumer(func(_ context.Context, m consumer.Message) error {
		got.Store(&m)
		return errBroken
	}, consumer.Attempts(1)), nil)
	letter := s.letters(a, 1)[0].Message
	if m := got.Load(); m.ID != id || string(m.Body) != "x" || m.Headers["kind"] != "order" || len(m.Headers) != 1 {
		t.Errorf("message %+v, want the id %s", m, id)
	}
	if letter.ID != id || letter.Headers[consumer.HeaderID] != id {
		t.Errorf("letter %+v, want the id %s", letter, id)
	}
}

// go-redis repeats what was not answered. A proxy drops the reply of every command in turn: each message is handled once, each dead letter written once.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	link := testkit.Proxy(t, server.Addr)
	s := newStream(t, testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), memstore.New(memstore.Options{}))
	var mu sync.Mutex
	handled := map[string]int{}
	c := s.consumer(func(_ context.Context, m consumer.Message) error {
		mu.Lock()
		defer mu.Unlock()
		handled[m.ID]++
		if strings.HasPrefix(m.ID, "poison") {
			return errBroken
		}
		return nil
	}, consumer.Attempts(2))
	const n = 12
	for i := range n {
		link.DropReplies(1)
		s.publish(consumer.Message{ID: fmt.Sprint("good ", i), Body: []byte("x")})
		s.publish(consumer.Message{ID: fmt.Sprint("poison ", i), Body: []byte("x")})
	}
	a, _ := s.run(c, nil)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		link.DropReplies(1)
		if left, err := pending(context.Background(), server.Client(t), s.name, "points"); err == nil && left == 0 {
			break
		}
	}
	link.DropReplies(0)
	s.drained()
	letters, err := a.Dead(context.Background(), "points", 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, letter := range letters {
		seen[letter.Message.ID]++
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range n {
		if good, poison := handled[fmt.Sprint("good ", i)], handled[fmt.Sprint("poison ", i)]; good != 1 || poison != 2 {
			t.Errorf("message %d was handled %d times, the poison %d times; want 1 and 2", i, good, poison)
		}
		if got := seen[fmt.Sprint("poison ", i)]; got != 1 {
			t.Errorf("poison %d has %d dead letters, want one", i, got)
		}
	}
}

// On a cluster stream and dead letters lie in one slot.
func TestCluster(t *testing.T) {
	t.Parallel()
	rdb := testkit.Cluster(t, 3).Client(t)
	for name, stream := range map[string]string{"plain": "orders", "tagged": "{shop}:orders"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			c, err := consumer.New(memstore.New(memstore.Options{}), "points", fails, consumer.Attempts(2), consumer.Backoff(time.Millisecond, time.Millisecond),
				consumer.Logger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			a, err := redisstream.New(rdb, config(stream, 2))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- a.Run(ctx, c) }()
			for i := range 5 {
				if _, err := redisstream.Publish(ctx, rdb, stream, consumer.Message{ID: fmt.Sprint(i), Body: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Eventually(t, 20*time.Second, "dead letters", func() bool {
				letters, err := a.Dead(context.Background(), c.Name(), 10)
				return err == nil && len(letters) == 5
			})
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Lua takes fewer arguments than an entry may have fields.
func TestDeadLetterOfManyFields(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	many := map[string]string{}
	for i := range 5000 {
		many[fmt.Sprint("header ", i)] = "x"
	}
	s.publish(consumer.Message{ID: "1", Body: []byte("x"), Headers: many})
	a, _ := s.run(s.consumer(fails, consumer.Attempts(1)), func(config *redisstream.Config) { config.MaxDead = 10 })
	letter := s.letters(a, 1)[0].Message
	s.drained()
	if letter.Headers["header 4999"] != "x" || letter.Headers[consumer.HeaderError] != errBroken.Error() {
		t.Errorf("%d headers, error %q", len(letter.Headers), letter.Headers[consumer.HeaderError])
	}
}
