package rabbitmq

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrTopology says that a queue or exchange exists with other properties than those that the adapter declares. It is joined with the broker's own words, ends Run,
// and does not heal: delete what is there, name another, or set Config.NoDeclare.
var ErrTopology = errors.New("rabbitmq: a queue or exchange exists with other properties")

// queue is one queue as it is declared: durable, neither exclusive nor deleted when unused.
type queue struct {
	name string
	args amqp.Table
}

// topology is all queues, those first that others send their messages to.
func (c Config) topology() []queue {
	queues := []queue{
		{c.Dead, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}},
		{c.Queue, deadLettering(c.Dead)},
	}
	for _, level := range c.Retry {
		args := deadLettering(c.Queue)
		args[amqp.QueueMessageTTLArg] = level.Delay.Milliseconds()
		queues = append(queues, queue{level.Queue, args})
	}
	return queues
}

// deadLettering sends on what a quorum queue expires or gives up, and keeps it until the target has confirmed it. The strategy needs the overflow.
func deadLettering(target string) amqp.Table {
	return amqp.Table{
		amqp.QueueTypeArg:           amqp.QueueTypeQuorum,
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": target,
		"x-dead-letter-strategy":    "at-least-once",
		amqp.QueueOverflowArg:       amqp.QueueOverflowRejectPublish,
	}
}

// declare declares what is missing. What is there with other properties is ErrTopology.
func (c Config) declare(channel *amqp.Channel) error {
	if c.NoDeclare {
		return nil
	}
	for _, q := range c.topology() {
		if _, err := channel.QueueDeclare(q.name, true, false, false, false, q.args); err != nil {
			return conflict("declare queue "+q.name, err)
		}
	}
	for _, b := range c.Bindings {
		if b.Kind != "" {
			if err := channel.ExchangeDeclare(b.Exchange, b.Kind, true, false, false, false, nil); err != nil {
				return conflict("declare exchange "+b.Exchange, err)
			}
		}
		if err := channel.QueueBind(c.Queue, b.Key, b.Exchange, false, b.Args); err != nil {
			return fmt.Errorf("rabbitmq: bind %s to %s: %w", c.Queue, b.Exchange, err)
		}
	}
	return nil
}

func conflict(what string, err error) error {
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.PreconditionFailed {
		return fmt.Errorf("%w: %s: %w", ErrTopology, what, err)
	}
	return fmt.Errorf("rabbitmq: %s: %w", what, err)
}
