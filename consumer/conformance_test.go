package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/consumertest"
	"github.com/idemkit/idem/stores/memstore"
)

// The in-process queue keeps what an adapter to a broker keeps, save what only a broker can do.
func TestConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, func(_ testing.TB, need consumertest.Need) consumertest.Backend {
		queues := map[string]*consumer.Queue{}
		for _, name := range need.Names {
			queues[name] = consumer.NewQueue(name)
		}
		return consumertest.Backend{
			Ledger: memstore.New(memstore.Options{}),
			Publish: func(ctx context.Context, m consumer.Message) error {
				var errs []error
				for _, q := range queues {
					errs = append(errs, q.Publish(ctx, m))
				}
				return errors.Join(errs...)
			},
			Run: func(ctx context.Context, c *consumer.Consumer, concurrency int) error {
				return run(ctx, queues[c.Name()], c, concurrency)
			},
			Dead: func(_ context.Context, name string) ([]consumer.Message, error) { return queues[name].Dead(), nil },
			Pending: func(_ context.Context, name string) (int, error) {
				if queues[name] == nil {
					return 0, fmt.Errorf("no queue %s", name)
				}
				return queues[name].Len(), nil
			},
		}
	})
}

// run is a queue with so many workers.
func run(ctx context.Context, q *consumer.Queue, c *consumer.Consumer, concurrency int) error {
	var workers sync.WaitGroup
	var errs errorList
	for range concurrency {
		workers.Go(func() { errs.add(q.Run(ctx, c)) })
	}
	workers.Wait()
	return errs.join()
}

type errorList struct {
	mu   sync.Mutex
	errs []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *errorList) join() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}
