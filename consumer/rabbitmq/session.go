package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/consumer"
)

// session is one connection, from its beginning to its end or that of ctx. It was useful if it was there for longer than the longest pause: one
// that breaks at once, again and again, is to be tried with growing delays.
func (r *run) session(ctx context.Context) (useful bool, err error) {
	l, err := r.dial(ctx, r.consumer.Name(), func(l *link) error { return l.consume(r.Config, r.consumer.Name()) })
	if err != nil {
		return false, err
	}
	defer l.close()
	r.Observe(nil)
	begun := time.Now()
	err = r.receive(ctx, l)
	if ctx.Err() != nil {
		l.stop()
		r.handlers.Wait()
	}
	return time.Since(begun) > r.MaxReconnect, err
}

// receive hands each delivery to a goroutine, as long as there are slots.
func (r *run) receive(ctx context.Context, l *link) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.broken:
			return err
		case cause := <-l.closed:
			return l.why(lost(cause))
		case r.slots <- struct{}{}:
		}
		if err := r.next(ctx, l); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// next has a slot, which it gives to the handler of the next delivery, or back.
func (r *run) next(ctx context.Context, l *link) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-l.broken:
	case cause := <-l.closed:
		err = l.why(lost(cause))
	case d, open := <-l.deliveries:
		if open {
			r.handlers.Go(func() {
				defer func() { <-r.slots }()
				r.handle(l, d)
			})
			return nil
		}
		err = ended(l)
	}
	<-r.slots
	return err
}

// ended says why there are no more deliveries. An error is there before; a cancelled consumer has none.
func ended(l *link) error {
	select {
	case cause := <-l.closed:
		return l.why(lost(cause))
	default:
		return errCancelled
	}
}

func lost(cause *amqp.Error) error {
	if cause == nil {
		return errLost
	}
	return fmt.Errorf("%w: %w", errLost, cause)
}

// handle carries out the verdict. What cannot be carried out ends the session, and the broker delivers the message again.
func (r *run) handle(l *link, d amqp.Delivery) {
	m := message(r.Queue, d)
	verdict := r.consumer.Handle(r.work, m)
	if err := r.settle(l, d, m, verdict); err != nil {
		l.fail(err)
	}
}

// settle acknowledges last: a copy that is not confirmed leaves the original where it is.
func (r *run) settle(l *link, d amqp.Delivery, m consumer.Message, v consumer.Verdict) error {
	var err error
	switch v.Action {
	case consumer.Ack:
	case consumer.Retry:
		level := r.level(v.Delay)
		err = l.publish(level.Queue, resting(d, m, v, rounded(min(v.Delay, level.Delay))))
	case consumer.DeadLetter:
		err = l.publish(r.Dead, dead(d, m, v))
	default:
		err = fmt.Errorf("rabbitmq: no way to carry out %v", v.Action)
	}
	if err != nil {
		return err
	}
	return l.ack(d)
}

// rounded up to the milliseconds that AMQP has; 0 would go back at once.
func rounded(d time.Duration) time.Duration {
	return max(time.Millisecond, (d + time.Millisecond - 1).Truncate(time.Millisecond))
}
