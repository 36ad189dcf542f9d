package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/stores/memstore"
)

// Points are granted once per order, although the order's message arrives twice and the first attempt fails.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ledger := memstore.New(memstore.Options{}) // pgstore or sqlitestore where it has to last
	granted := make(chan struct{}, 2)
	down := true

	points, err := consumer.New(ledger, "points", func(_ context.Context, m consumer.Message) error {
		if down {
			down = false
			return errors.New("the points server is down")
		}
		fmt.Printf("granted for %s\n", m.ID)
		return nil
	},
		consumer.Backoff(time.Millisecond, time.Second),
		consumer.Logger(slog.New(slog.DiscardHandler)),
		consumer.Observe(func(_ context.Context, e consumer.Event) {
			fmt.Println(e.Action, e.Replayed)
			if e.Action == consumer.Ack {
				granted <- struct{}{}
			}
		}))
	if err != nil {
		panic(err)
	}

	queue := consumer.NewQueue("orders")
	ended := make(chan error)
	go func() { ended <- queue.Run(ctx, points) }()
	for range 2 {
		if err := queue.Publish(ctx, consumer.Message{ID: "order-4711", Body: []byte(`{"points":12}`)}); err != nil {
			panic(err)
		}
		<-granted
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// retry false
	// granted for order-4711
	// ack false
	// ack true
	// <nil>
}
