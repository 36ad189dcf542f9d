package rabbitmq_test

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/rabbitmq"
)

// Points are granted once for every order, in the transaction that records the message as handled: pgstore.Tx and sqlitestore.Tx give it to the handler.
func ExampleAdapter_Run() {
	grantPoints := func(ctx context.Context, url string, ledger idem.Ledger, grant consumer.Handler) error {
		points, err := consumer.New(ledger, "points", grant)
		if err != nil {
			return err
		}
		adapter, err := rabbitmq.New(rabbitmq.Config{
			URL: url, Queue: "points", Bindings: []rabbitmq.Binding{{Exchange: "orders", Kind: amqp.ExchangeFanout}},
		})
		if err != nil {
			return err
		}
		return adapter.Run(ctx, points) // until ctx ends
	}
	_ = grantPoints
}
