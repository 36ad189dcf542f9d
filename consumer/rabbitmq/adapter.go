package rabbitmq

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/idemkit/idem/consumer"
)

// Adapter runs consumers on one work queue. It is safe for concurrent use, but two consumers need a queue each: a queue hands every message to one of them.
type Adapter struct{ config Config }

// New checks the configuration; it does not connect. idem.ErrInvalid says what is missing or out of range.
func New(config Config) (*Adapter, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Adapter{config: config}, nil
}

// Declare declares the topology, so that producers can begin before the first consumer has come: what they publish until there is a queue is lost. Run does it
// as well. With NoDeclare it only connects.
func (a *Adapter) Declare(ctx context.Context) error {
	l, err := a.config.dial(ctx, "declare", func(l *link) error {
		channel, err := l.conn.Channel()
		if err != nil {
			return err
		}
		return a.config.declare(channel)
	})
	if err != nil {
		return err
	}
	l.close()
	return nil
}

// Run hands messages to the consumer until ctx ends, over as many connections as it takes: a broker that is away, at the start or later, is waited for.
// When ctx ends, Run takes no further message, lets the running handlers finish, acknowledges what they did, and returns nil. The only error is ErrTopology.
func (a *Adapter) Run(ctx context.Context, c *consumer.Consumer) error {
	r := &run{Config: a.config, consumer: c, slots: make(chan struct{}, a.config.Concurrency)}
	r.work, r.abandon = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.abandon(nil)
	defer context.AfterFunc(ctx, r.limitGrace)()
	defer r.handlers.Wait()
	for failures := 0; ; {
		useful, err := r.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.Observe(err)
		if errors.Is(err, ErrTopology) {
			return err
		}
		if useful {
			failures = 0
		}
		delay := r.pause(failures)
		r.Logger.WarnContext(ctx, "connection to RabbitMQ lost", "consumer", c.Name(), "queue", r.Queue, "again_in", delay, "error", err)
		if !rest(ctx, delay) {
			return nil
		}
		failures++
	}
}

// run is one call of Run. Its slots outlive sessions, so that no more than Concurrency handlers run while the connection is lost and found.
type run struct {
	Config
	consumer *consumer.Consumer
	slots    chan struct{}
	handlers sync.WaitGroup
	work     context.Context // of the handlers
	abandon  context.CancelCauseFunc
}

// errGrace is the cause that a handler sees when it goes on for too long after the end.
var errGrace = errors.New("rabbitmq: the consumer is ending and its grace is over")

// limitGrace ends the handlers that go on for longer than Grace after the end of Run's context. The consumer has its own limit for each.
func (r *run) limitGrace() {
	if r.Grace > 0 && rest(r.work, r.Grace) {
		r.abandon(errGrace)
	}
}

// pause is the delay before the next connection: doubled with each failure in a row, capped, the upper half random.
func (r *run) pause(failures int) time.Duration {
	delay := r.FirstReconnect
	for range failures {
		if delay = min(2*delay, r.MaxReconnect); delay == r.MaxReconnect {
			break
		}
	}
	return delay/2 + rand.N(delay/2+1) //nolint:gosec // spreads load, hides nothing
}

// rest reports false where the context ended first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
