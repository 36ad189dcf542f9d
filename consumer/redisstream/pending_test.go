package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/memstore"
)

var errBroken = errors.New("the points server is down")

// watermill-redisstream#38: what is trimmed while it is pending with a process that dies is acknowledged and counted, and the next ones come.
func TestTrimmedEntries(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	id := s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	s.member("dead", id)
	s.delete(id)
	var empty, runs atomic.Int32
	a, _ := s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil }, consumer.Observe(func(_ context.Context, e consumer.Event) {
		if errors.Is(e.Err, consumer.ErrNoBody) {
			empty.Add(1)
		}
	})), func(config *redisstream.Config) {
		config.Decode = func(fields map[string]string) consumer.Message {
			return consumer.Message{Body: fmt.Append(nil, fields)}
		} // never empty
	})
	s.publish(consumer.Message{ID: "2", Body: []byte("x")})
	s.drained()
	testkit.Eventually(t, 10*time.Second, "counted", func() bool { return empty.Load() == 1 })
	if runs.Load() != 1 {
		t.Errorf("%d runs, want the other message's", runs.Load())
	}
	letters, err := a.Dead(context.Background(), "points", 10)
	if err != nil || len(letters) != 0 {
		t.Errorf("dead letters %v, error %v; there is nothing left to keep", letters, err)
	}
}

// member makes the group and lets a member of it read one entry.
func (s *stream) member(name, id string) {
	s.Helper()
	ctx := context.Background()
	if err := s.rdb.XGroupCreateMkStream(ctx, s.name, "points", "0").Err(); err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		s.Fatal(err)
	}
	read, err := s.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "points", Consumer: name, Streams: []string{s.name, ">"}, Count: 1}).Result()
	if err != nil || read[0].Messages[0].ID != id {
		s.Fatal(read, err)
	}
}

func (s *stream) delete(id string) {
	s.Helper()
	if n, err := s.rdb.XDel(context.Background(), s.name, id).Result(); n != 1 || err != nil {
		s.Fatal(n, err)
	}
}

// counts is what the pending list says of the only entry in it: its owner, and how often it was delivered.
func (s *stream) counts() (owner string, deliveries int64) {
	s.Helper()
	list, err := s.rdb.XPendingExt(context.Background(), &redis.XPendingExtArgs{Stream: s.name, Group: "points", Start: "-", End: "+", Count: 10}).Result()
	if err != nil {
		s.Fatal(err)
	}
	if len(list) != 1 {
		return "", 0
	}
	return list[0].Consumer, list[0].RetryCount
}

// What the pending list counts is what Message.Delivery means.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	ledger := &gate{Store: memstore.New(memstore.Options{})}
	ledger.shut.Store(true)
	s := newStream(t, server.Client(t), ledger)
	var deliveries atomic.Int32
	var refused atomic.Int32
	leave := make(chan error)
	c := s.consumer(func(ctx context.Context, m consumer.Message) error {
		deliveries.Store(int32(m.Delivery))
		select {
		case err := <-leave:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, consumer.Observe(func(_ context.Context, e consumer.Event) {
		if !e.Counted {
			refused.Add(1)
		}
	}))
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	s.run(c, nil)
	testkit.Eventually(t, 10*time.Second, "refused several times", func() bool { return refused.Load() > 3 })
	ledger.shut.Store(false)
	for n := int32(1); n <= 3; n++ {
		testkit.Eventually(t, 10*time.Second, "delivered", func() bool { return deliveries.Load() == n })
		if _, counted := s.counts(); counted != int64(n) {
			t.Errorf("the pending list counts %d, want %d", counted, n)
		}
		leave <- map[bool]error{true: nil, false: errBroken}[n == 3]
	}
	s.drained()
}

// gate is a ledger that can be shut.
type gate struct {
	*memstore.Store
	shut atomic.Bool
}

func (g *gate) Claim(ctx context.Context, q request) (answer, error) {
	if g.shut.Load() {
		return answer{}, errors.New("connection refused")
	}
	return g.Store.Claim(ctx, q)
}

// An entry that another process has taken over is left to it.
func TestTakenByAnother(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var runs atomic.Int32
	c := s.consumer(func(context.Context, consumer.Message) error {
		runs.Add(1)
		return errBroken
	}, consumer.Backoff(300*time.Millisecond, 300*time.Millisecond))
	id := s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	_, stop := s.run(c, nil)
	testkit.Eventually(t, 10*time.Second, "failed", func() bool { return runs.Load() == 1 })
	err := s.rdb.XClaim(context.Background(), &redis.XClaimArgs{Stream: s.name, Group: "points", Consumer: "thief", Messages: []string{id}}).Err()
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(minIdle / 2) // longer than the rest, and a heartbeat; shorter than what makes the other one silent
	if owner, _ := s.counts(); owner != "thief" || runs.Load() != 1 {
		t.Errorf("owner %q after %d runs, want the thief to keep it", owner, runs.Load())
	}
	testkit.Eventually(t, 10*time.Second, "taken back from the silent thief", func() bool { return runs.Load() >= 2 })
	stop()
}

// The heartbeat keeps work, and what rests longer than MinIdle, from being taken.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var runs, busy atomic.Int32
	observe := consumer.Observe(func(_ context.Context, e consumer.Event) {
		if !e.Counted {
			busy.Add(1)
		}
	})
	c := s.consumer(func(ctx context.Context, _ consumer.Message) error {
		if runs.Add(1) == 1 {
			return errBroken
		}
		<-time.After(3 * minIdle)
		return ctx.Err()
	}, consumer.Backoff(4*minIdle, 4*minIdle), observe)
	for range 3 {
		s.run(c, nil)
	}
	s.publish(consumer.Message{ID: "1", Body: []byte("x")})
	testkit.Eventually(t, 30*time.Second, "run twice", func() bool { return runs.Load() == 2 })
	s.drained()
	if runs.Load() != 2 || busy.Load() != 0 {
		t.Errorf("%d runs, %d deliveries in vain", runs.Load(), busy.Load())
	}
}

// The bound on resting messages holds back new ones, and lets them in when there is room.
func TestRestingIsBounded(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	s := newStream(t, server.Client(t), memstore.New(memstore.Options{}))
	var down atomic.Bool
	down.Store(true)
	c := s.consumer(func(context.Context, consumer.Message) error {
		if down.Load() {
			return errBroken
		}
		return nil
	}, consumer.Backoff(time.Second, time.Second), consumer.Attempts(100))
	const messages, resting = 30, 4
	for i := range messages {
		s.publish(consumer.Message{ID: strings.Repeat("i", i+1), Body: []byte("x")})
	}
	s.run(c, func(config *redisstream.Config) { config.Resting = resting })
	inHand := func() int64 {
		groups, err := s.rdb.XInfoGroups(context.Background(), s.name).Result()
		if err != nil || len(groups) != 1 {
			return 0
		}
		return groups[0].Pending
	}
	testkit.Eventually(t, 10*time.Second, "as many in hand as may be", func() bool { return inHand() == resting+1 })
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if n := inHand(); n > resting+1 {
			t.Fatalf("%d in hand, want at most %d", n, resting+1)
		}
	}
	down.Store(false)
	s.drained()
}
