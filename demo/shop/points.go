package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// Broker carries events. consumer.Queue is one.
type Broker interface {
	// Publish hands a message over; after an error it is published again.
	Publish(ctx context.Context, m consumer.Message) error
	// Run hands messages to the consumer until ctx ends, and lets running ones finish.
	Run(ctx context.Context, c *consumer.Consumer) error
}

// PointsConfig is what Points are made from.
type PointsConfig struct {
	Storage *Storage      // required
	Ledger  idem.Ledger   // required; the one whose database the Storage is in
	Broker  Broker        // nil: a queue in this process
	Lease   time.Duration // of a claim on an event. 0: idem.DefaultLease
	Logger  *slog.Logger  // nil: slog.Default()
}

// Points grants points for orders, once for each, however often its event arrives. The way is: an order writes its event into the outbox; the
// relay publishes what is there; the consumer grants the points and takes the event from the outbox.
type Points struct {
	storage  *Storage
	broker   Broker
	consumer *consumer.Consumer
	log      *slog.Logger
	woken    chan struct{}
}

// NewPoints starts nothing; see Run.
func NewPoints(c PointsConfig) (*Points, error) {
	if c.Storage == nil {
		return nil, errors.New("shop: points need a Storage")
	}
	p := &Points{storage: c.Storage, broker: c.Broker, log: c.Logger, woken: make(chan struct{}, 1)}
	if p.broker == nil {
		p.broker = consumer.NewQueue("orders")
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	options := []consumer.Option{consumer.Logger(p.log)}
	if c.Lease != 0 {
		options = append(options, consumer.Lease(c.Lease))
	}
	var err error
	p.consumer, err = consumer.New(c.Ledger, "points", p.handle, options...)
	return p, err
}

// Type is the business type of the consumer's records in the ledger, for Config.Abandoned of package web.
func (p *Points) Type() string { return p.consumer.Type() }

func (p *Points) handle(ctx context.Context, m consumer.Message) error {
	var e event
	if err := json.Unmarshal(m.Body, &e); err != nil || e.OrderID != m.ID {
		return fmt.Errorf("%w: the message is no order's event", errors.Join(consumer.ErrPermanent, err))
	}
	return p.storage.grant(ctx, e)
}

// Run publishes and consumes until ctx ends. It then lets what it has in hand come to its end, and returns the broker's error, if any.
func (p *Points) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var relay sync.WaitGroup
	relay.Go(func() { p.relay(ctx) })
	err := p.broker.Run(ctx, p.consumer)
	stop()
	relay.Wait()
	return err
}

// relayPause is how often the outbox is looked at unasked: for what another process left there.
const relayPause = 500 * time.Millisecond

func (p *Points) relay(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "shop: events are not published", "error", err)
		}
		pause := time.NewTimer(relayPause)
		select {
		case <-ctx.Done():
		case <-p.woken:
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (p *Points) publish(ctx context.Context) error {
	events, err := p.storage.due(ctx)
	failed := []error{err}
	for _, e := range events {
		body, err := json.Marshal(e)
		if err == nil {
			err = p.broker.Publish(ctx, consumer.Message{ID: e.OrderID, Body: body})
		}
		if err != nil {
			failed = append(failed, err, p.storage.hurry(context.WithoutCancel(ctx), e))
		}
	}
	return errors.Join(failed...)
}

// after wakes the relay behind a guarded route: by then its transaction has committed. Nil points are granted by somebody else.
func (p *Points) after(next http.Handler) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			select {
			case p.woken <- struct{}{}:
			default: // it is awake
			}
		}()
		next.ServeHTTP(w, r)
	})
}
