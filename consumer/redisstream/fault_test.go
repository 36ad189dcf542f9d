package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
)

// A dead letter that Redis refuses stays pending, and is written when the reason is gone: neither lost nor forgotten.
func TestDeadLetterThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	admin := server.Client(t)
	for name, tt := range map[string]struct{ hinder, mend func(dead string) []any }{
		"its key is no stream": {
			func(dead string) []any { return []any{"SET", dead, "x"} },
			func(dead string) []any { return []any{"DEL", dead} },
		},
		"the user may not add": {
			func(string) []any { return []any{"ACL", "SETUSER", "adder", "on", ">secret", "~*", "+@all", "-xadd"} },
			func(string) []any { return []any{"ACL", "SETUSER", "adder", "+xadd"} },
		},
		"the user may not write there": {
			func(string) []any { return []any{"ACL", "SETUSER", "writer", "on", ">secret", "~orders-*", "+@all"} },
			func(string) []any { return []any{"ACL", "SETUSER", "writer", "~*"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStream(t, admin, memstore.New(memstore.Options{}))
			s.publish(consumer.Message{ID: "1", Body: []byte("x")})
			words := tt.hinder("{" + s.name + "}:dead:points")
			if err := admin.Do(context.Background(), words...).Err(); err != nil {
				t.Fatal(err)
			}
			if words[0] == "ACL" {
				options := testkit.RedisOptions(server.Addr)
				options.Username, options.Password = words[2].(string), "secret"
				s.rdb = testkit.RedisClient(t, options)
			}
			var refused counter
			a, _ := s.run(s.consumer(fails, consumer.Attempts(1)), func(config *redisstream.Config) { config.Logger = slog.New(&refused) })
			testkit.Eventually(t, 10*time.Second, "refused twice", func() bool { return refused.Load() > 1 })
			s.rdb = admin
			if owner, _ := s.counts(); owner == "" {
				t.Error("acknowledged without a dead letter")
			}
			if err := admin.Do(context.Background(), tt.mend("{"+s.name+"}:dead:points")...).Err(); err != nil {
				t.Fatal(err)
			}
			if letter := s.letters(a, 1)[0].Message; letter.Headers[consumer.HeaderError] != errBroken.Error() {
				t.Errorf("letter %+v, want the last error", letter)
			}
			s.drained()
		})
	}
}

// counter counts the warnings of a log.
type counter struct{ atomic.Int32 }

func (*counter) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (c *counter) Handle(context.Context, slog.Record) error      { c.Add(1); return nil }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler             { return c }
func (c *counter) WithGroup(string) slog.Handler                  { return c }

// What this process still has in memory is handled, whatever became of the entry.
func TestRestingOutlivesItsEntry(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	for name, lose := range map[string]func(s *stream, id string){
		"trimmed":        func(s *stream, id string) { s.delete(id) },
		"stream deleted": func(s *stream, _ string) { s.rdb.Del(context.Background(), s.name) },
		"group destroyed, entry trimmed": func(s *stream, id string) {
			s.delete(id)
			s.rdb.XGroupDestroy(context.Background(), s.name, "points")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
			id := s.publish(consumer.Message{ID: "1", Body: []byte("x")})
			var runs, empty atomic.Int32
			s.run(s.consumer(func(_ context.Context, m consumer.Message) error {
				if runs.Add(1) == 1 {
					return errBroken
				}
				if string(m.Body) != "x" || m.ID != "1" || m.Delivery != 2 {
					t.Errorf("message %+v", m)
				}
				return nil
			}, consumer.Backoff(500*time.Millisecond, time.Second), consumer.Observe(func(_ context.Context, e consumer.Event) {
				if errors.Is(e.Err, consumer.ErrNoBody) {
					empty.Add(1)
				}
			})), nil)
			testkit.Eventually(t, 10*time.Second, "failed", func() bool { return runs.Load() == 1 })
			lose(s, id)
			testkit.Eventually(t, 10*time.Second, "handled", func() bool { return runs.Load() == 2 })
			s.drained()
			if empty.Load() != 0 {
				t.Error("told to be without a body")
			}
		})
	}
}

// An entry that was trimmed while a living process works on it is that one's to end.
func TestTrimmedInLivingHands(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	id := s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	s.member("living", id)
	s.delete(id)
	var events, runs atomic.Int32
	s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil },
		consumer.Observe(func(context.Context, consumer.Event) { events.Add(1) })),
		func(config *redisstream.Config) { config.MinIdle = time.Hour })
	s.publish(consumer.Message{ID: "2", Body: []byte("x")})
	testkit.Eventually(t, 10*time.Second, "the other message handled and acknowledged, and the living one's left to it", func() bool {
		owner, _ := s.counts()
		return owner == "living" && runs.Load() == 1 && events.Load() == 1
	})
}

// However much the living have in hand, what a dead process left is found at once.
func TestSilentAmongMany(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	ctx := context.Background()
	const n = 300
	var last string
	for i := range n {
		last = s.publish(consumer.Message{ID: fmt.Sprint(i), Body: []byte("x")})
	}
	if err := s.rdb.XGroupCreate(ctx, s.name, "points", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "points", Consumer: "living", Streams: []string{s.name, ">"}, Count: n}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.Do(ctx, "XCLAIM", s.name, "points", "dead", 0, last, "IDLE", 10*time.Hour.Milliseconds()).Err(); err != nil {
		t.Fatal(err)
	}
	var got atomic.Value
	s.run(s.consumer(func(_ context.Context, m consumer.Message) error { got.Store(m.ID); return nil }),
		func(config *redisstream.Config) { config.MinIdle = time.Hour })
	testkit.Eventually(t, 10*time.Second, "taken over", func() bool { return got.Load() == fmt.Sprint(n-1) })
}

// A process that was killed leaves its name in the group; the next one to begin removes it.
func TestNamesOfKilledProcesses(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	ctx := context.Background()
	id := s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	s.member("dead with a message", id)
	if err := s.rdb.XGroupCreateConsumer(ctx, s.name, "points", "dead").Err(); err != nil {
		t.Fatal(err)
	}
	const quick = 30 * time.Millisecond
	testkit.Eventually(t, 20*time.Second, "long silent", func() bool { return s.members()[0].Idle > 100*quick && s.members()[1].Idle > 100*quick })
	s.run(s.consumer(func(context.Context, consumer.Message) error { return nil }),
		func(config *redisstream.Config) { config.MinIdle = quick })
	testkit.Eventually(t, 10*time.Second, "the name gone", func() bool {
		for _, member := range s.members() {
			if member.Name == "dead" {
				return false
			}
		}
		return true
	})
	s.drained()
}

// redis#5433: Redis comes back with a state in which the entry was not yet acknowledged. The ledger answers; the business runs once.
func TestAcknowledgedEntryComesBack(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var runs, replays atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	s.run(s.consumer(func(context.Context, consumer.Message) error {
		if runs.Add(1) == 1 {
			close(entered)
			select {
			case <-leave:
			case <-t.Context().Done():
			}
		}
		return nil
	}, consumer.Observe(func(_ context.Context, e consumer.Event) {
		if e.Action == consumer.Ack && e.Replayed {
			replays.Add(1)
		}
	})), nil)
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	<-entered
	if err := s.rdb.Save(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	close(leave)
	s.drained()
	server.Kill()
	server.Restart(t)
	testkit.Eventually(t, 20*time.Second, "replayed", func() bool { return replays.Load() == 1 })
	s.drained()
	if runs.Load() != 1 {
		t.Errorf("%d runs, want one", runs.Load())
	}
}

// Two streams may give their entries equal ids: these stand in for a message's only together with the stream.
func TestEqualEntriesOfTwoStreams(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var runs atomic.Int32
	c := s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil })
	for range 2 {
		if err := s.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: s.name, ID: "1-1", Values: []string{"body", "x"}}).Err(); err != nil {
			t.Fatal(err)
		}
		s.run(c, nil)
		s.drained()
		s.name += "-other"
	}
	if runs.Load() != 2 {
		t.Errorf("%d runs, want one of each stream's", runs.Load())
	}
}

// A Decode that panics on somebody's entry must not end every process in turn.
func TestDecodePanics(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var runs atomic.Int32
	a, _ := s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil }), func(config *redisstream.Config) {
		config.Decode = func(fields map[string]string) consumer.Message {
			if fields["kind"] != "order" {
				panic("no order")
			}
			return consumer.Message{ID: fields["id"], Body: []byte(fields["body"])}
		}
	})
	s.publish(consumer.Message{ID: "1", Body: []byte("x"), Headers: map[string]string{"kind": "hostile"}})
	s.publish(consumer.Message{ID: "2", Body: []byte("x"), Headers: map[string]string{"kind": "order"}})
	letter := s.letters(a, 1)[0].Message
	s.drained()
	if letter.Headers["kind"] != "hostile" || letter.Headers["header-body"] != "x" || runs.Load() != 1 {
		t.Errorf("letter %+v after %d runs, want the entry's fields, and one run of the other", letter, runs.Load())
	}
}
