package redisstream_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
)

type (
	request = idem.Request
	answer  = idem.Answer
)

// What rests when an adapter ends is due for the next one when its rest is over: neither at once nor only after MinIdle.
func TestRestIsHandedOver(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	runs := make(chan time.Time, 10)
	c := s.consumer(func(context.Context, consumer.Message) error {
		runs <- time.Now()
		if len(runs) == 1 {
			return errBroken
		}
		return nil
	}, consumer.Backoff(2*time.Second, 2*time.Second))
	long := func(config *redisstream.Config) { config.MinIdle = 6 * time.Second }
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	_, stop := s.run(c, long)
	testkit.Eventually(t, 10*time.Second, "failed", func() bool { return len(runs) == 1 })
	stop()
	if owner, deliveries := s.counts(); owner == "" || deliveries != 1 {
		t.Errorf("owner %q, %d deliveries; it must stay pending, with one", owner, deliveries)
	}
	s.run(c, func(config *redisstream.Config) { config.MinIdle = 6 * time.Second })
	testkit.Eventually(t, 10*time.Second, "handled by the next", func() bool { return len(runs) == 2 })
	s.drained()
	if rest := -time.Until(<-runs) + time.Until(<-runs); rest < 900*time.Millisecond || rest > 5*time.Second {
		t.Errorf("it rested for %v, want about one or two seconds", rest)
	}
}

// A member of the group is removed where nothing of its is pending, and only there.
func TestMembersAreRemoved(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	var runs atomic.Int32
	c := s.consumer(func(context.Context, consumer.Message) error {
		if runs.Add(1) == 1 {
			return errBroken
		}
		return nil
	}, consumer.Backoff(time.Second, time.Second))
	_, stop := s.run(c, nil)
	testkit.Eventually(t, 10*time.Second, "failed", func() bool { return runs.Load() == 1 })
	stop()
	if n := len(s.members()); n != 1 {
		t.Errorf("%d members; the one that something is pending with must stay", n)
	}
	_, stop = s.run(c, nil)
	s.drained()
	stop()
	if members := s.members(); len(members) != 1 || members[0].Idle < time.Millisecond {
		t.Errorf("members %v; the second must have gone, the first not yet been silent for an hour", members)
	}
}

func (s *stream) members() []redis.XInfoConsumer {
	s.Helper()
	members, err := s.rdb.XInfoConsumers(context.Background(), s.name, "points").Result()
	if err != nil {
		s.Fatal(err)
	}
	return members
}

// A handler that goes on too long is told so, and the adapter ends.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	begun := make(chan struct{})
	c := s.consumer(func(ctx context.Context, _ consumer.Message) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}, consumer.Limit(time.Hour))
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	_, stop := s.run(c, func(config *redisstream.Config) { config.Grace = 200 * time.Millisecond })
	<-begun
	at := time.Now()
	stop()
	if took := time.Since(at); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("it ended after %v, want soon after the grace", took)
	}
	if owner, deliveries := s.counts(); owner == "" || deliveries != 1 {
		t.Errorf("owner %q, %d deliveries: the message must stay pending", owner, deliveries)
	}
}

func TestRunAtTheStart(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	t.Run("the key is no stream", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		if err := s.rdb.Set(context.Background(), s.name, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		a, err := redisstream.New(s.rdb, config(s.name, 1))
		if err != nil {
			t.Fatal(err)
		}
		err = a.Run(context.Background(), s.consumer(func(context.Context, consumer.Message) error { return nil }))
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), s.name) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the context has ended", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		a, err := redisstream.New(s.rdb, config(s.name, 1))
		if err = errors.Join(err, a.Run(ctx, s.consumer(func(context.Context, consumer.Message) error { return errBroken }))); err != nil {
			t.Error(err)
		}
	})
	t.Run("Redis is away", func(t *testing.T) {
		t.Parallel()
		alone := testkit.Redis(t, durable()...)
		s := newStream(t, alone.Client(t), memstore.New(memstore.Options{}))
		s.publish(consumer.Message{ID: "1", Body: []byte("x")})
		alone.Kill()
		var runs atomic.Int32
		s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil }), nil)
		alone.Restart(t)
		testkit.Eventually(t, 20*time.Second, "handled", func() bool { return runs.Load() == 1 })
		s.drained()
	})
	t.Run("somebody else makes the group", func(t *testing.T) {
		t.Parallel()
		s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
		s.publish(consumer.Message{ID: "1", Body: []byte("x")})
		var runs atomic.Int32
		s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil }),
			func(config *redisstream.Config) { config.NoDeclare = true })
		<-time.After(100 * time.Millisecond)
		if groups, err := s.rdb.XInfoGroups(context.Background(), s.name).Result(); err != nil || len(groups) != 0 {
			t.Fatalf("groups %v, error %v: none was to be made", groups, err)
		}
		if err := s.rdb.XGroupCreate(context.Background(), s.name, "points", "0").Err(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 20*time.Second, "handled", func() bool { return runs.Load() == 1 })
		s.drained()
	})
}

// What was trimmed while it rested is nowhere but in the memory of a process that ends: a dead letter keeps it.
func TestRestingWithoutEntryAtTheEnd(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	id := s.publish(consumer.Message{ID: "1", Body: []byte("x"), Headers: map[string]string{"Trace": "t"}})
	kept := s.publish(consumer.Message{ID: "2", Body: []byte("x")})
	var runs atomic.Int32
	a, stop := s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return errBroken },
		consumer.Backoff(time.Hour, time.Hour)), nil)
	testkit.Eventually(t, 10*time.Second, "both failed", func() bool { return runs.Load() == 2 })
	s.delete(id)
	stop()
	letter := s.letters(a, 1)[0].Message
	if text := letter.Headers[consumer.HeaderError]; letter.ID != "1" || letter.Headers["Trace"] != "t" || letter.Headers[consumer.HeaderAttempt] != "1" ||
		letter.Headers[consumer.HeaderConsumer] != "points" || !strings.Contains(text, errBroken.Error()) || !strings.Contains(text, "trimmed") {
		t.Errorf("letter %+v", letter)
	}
	list, err := s.rdb.XPendingExt(context.Background(), &redis.XPendingExtArgs{Stream: s.name, Group: "points", Start: "-", End: "+", Count: 10}).Result()
	if err != nil || len(list) != 1 || list[0].ID != kept {
		t.Errorf("pending %v, error %v; want the other one", list, err)
	}
}
