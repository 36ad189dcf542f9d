package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/stores/memstore"
)

// bubble runs a queue with one worker on synctest's clock. The worker ends with the returned function.
func bubble(t *testing.T, q *consumer.Queue, handler consumer.Handler, options ...consumer.Option) (stop func()) {
	t.Helper()
	options = append([]consumer.Option{consumer.Logger(slog.New(slog.DiscardHandler)), consumer.Backoff(time.Minute, time.Hour)}, options...)
	c, err := consumer.New(memstore.New(memstore.Options{}), name, handler, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, c) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func publish(t *testing.T, q *consumer.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Publish(context.Background(), order(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueueKeepsTheOrderOfPublication(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		var got, want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
		}
		publish(t, q, want...)
		stop := bubble(t, q, func(_ context.Context, m consumer.Message) error {
			got = append(got, m.ID)
			if m.Source != "orders" || m.Delivery != 1 {
				t.Errorf("message %+v", m)
			}
			return nil
		})
		synctest.Wait()
		stop()
		if !slices.Equal(got, want) {
			t.Errorf("order %v", got)
		}
	})
}

func TestQueueLetsMessagesRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		begun := time.Now()
		var at []time.Duration
		var deliveries []int
		stop := bubble(t, q, func(_ context.Context, m consumer.Message) error {
			if m.ID != "1" {
				return nil
			}
			at, deliveries = append(at, time.Since(begun)), append(deliveries, m.Delivery)
			return errBroken
		})
		publish(t, q, "1")
		synctest.Wait()
		publish(t, q, "2")
		synctest.Wait()
		if q.Len() != 1 {
			t.Errorf("%d in the queue, want the resting one", q.Len())
		}
		<-time.After(24 * time.Hour)
		stop()
		if len(at) != consumer.DefaultAttempts || q.Len() != 0 || len(q.Dead()) != 1 {
			t.Fatalf("attempts at %v, %d left, %d dead", at, q.Len(), len(q.Dead()))
		}
		for i, most := 1, time.Minute; i < len(at); i, most = i+1, 2*most {
			if rest := at[i] - at[i-1]; rest < most/2 || rest > most {
				t.Errorf("rest %d was %v, want from %v to %v", i, rest, most/2, most)
			}
		}
		if !slices.Equal(deliveries, []int{1, 2, 3, 4, 5}) {
			t.Errorf("deliveries %v", deliveries)
		}
	})
}

// A queue that never runs empty lets rested messages have their turn.
func TestQueueUnderSteadyLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		begun, runs := time.Now(), 0
		publish(t, q, "failing", "0")
		stop := bubble(t, q, func(_ context.Context, m consumer.Message) error {
			<-time.After(time.Second)
			if m.ID == "failing" {
				runs++
				return errBroken
			}
			if time.Since(begun) < time.Hour {
				publish(t, q, fmt.Sprint(time.Since(begun)))
			}
			return nil
		})
		<-time.After(30 * time.Minute)
		if runs < 3 {
			t.Errorf("%d attempts in half an hour", runs)
		}
		<-time.After(time.Hour)
		stop()
	})
}

func TestQueueDeadLetterIsPublishedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		mended, runs := false, 0
		stop := bubble(t, q, func(context.Context, consumer.Message) error {
			runs++
			if mended {
				return nil
			}
			return errBroken
		}, consumer.Attempts(1))
		publish(t, q, "1")
		synctest.Wait()
		mended = true
		if n := len(q.Dead()); n != 1 {
			t.Errorf("%d dead, want one until it is taken", n)
		}
		if err := q.Publish(context.Background(), q.TakeDead()[0]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if runs != 2 || q.Len() != 0 || len(q.Dead()) != 0 {
			t.Errorf("%d runs, %d left, %d dead", runs, q.Len(), len(q.Dead()))
		}
	})
}

func TestQueueEndsAfterTheRunningMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		done := 0
		stop := bubble(t, q, func(ctx context.Context, _ consumer.Message) error {
			select {
			case <-time.After(10 * time.Second):
				done++
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		publish(t, q, "1", "2")
		synctest.Wait()
		begun := time.Now()
		stop()
		if took := time.Since(begun); done != 1 || took != 10*time.Second || q.Len() != 1 {
			t.Errorf("%d done after %v, %d left; want the running one done and the other left", done, took, q.Len())
		}
	})
}

func TestQueueKeepsWhatFailedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := consumer.NewQueue("orders")
		leave := make(chan struct{})
		stop := bubble(t, q, func(context.Context, consumer.Message) error {
			<-leave
			return errBroken
		})
		publish(t, q, "1")
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(leave) })
		stop()
		if q.Len() != 1 {
			t.Errorf("%d left, want the failed one", q.Len())
		}
	})
}

func TestQueueRefusesAfterTheCallersEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	q := consumer.NewQueue("orders")
	if err := q.Publish(ctx, order("1")); !errors.Is(err, context.Canceled) || q.Len() != 0 {
		t.Errorf("error %v, %d in the queue", err, q.Len())
	}
	c := newBench(t).c
	publish(t, q, "1")
	if err := q.Run(ctx, c); err != nil || q.Len() != 1 {
		t.Errorf("error %v, %d left", err, q.Len())
	}
}

func TestQueueUnderManyHands(t *testing.T) {
	t.Parallel()
	q := consumer.NewQueue("orders")
	var mu sync.Mutex
	handled := map[string]int{}
	c, err := consumer.New(memstore.New(memstore.Options{}), name, func(_ context.Context, m consumer.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if handled[m.ID]++; handled[m.ID] == 1 {
			return errBroken
		}
		return nil
	}, consumer.Logger(slog.New(slog.DiscardHandler)), consumer.Backoff(time.Millisecond, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, q, c, 8) }()
	const producers, each = 4, 200
	var publishing sync.WaitGroup
	for p := range producers {
		publishing.Go(func() {
			for i := range each {
				publish(t, q, fmt.Sprint(p, " ", i))
			}
		})
	}
	publishing.Wait()
	for end := time.Now().Add(30 * time.Second); q.Len() > 0 && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(handled) != producers*each || q.Len() != 0 {
		t.Errorf("%d messages handled, %d left", len(handled), q.Len())
	}
	for id, n := range handled {
		if n != 2 {
			t.Errorf("%s was handled %d times, want a failure and a success", id, n)
		}
	}
}
