package consumertest

import (
	"context"
	"time"

	"github.com/idemkit/idem/consumer"
)

func stopChecks() []check {
	return []check{
		{name: "an idle adapter ends within seconds", run: stopsIdle},
		{name: "the running message is finished and acknowledged at a graceful end", run: finishes},
		{name: "what an ended adapter left is handled by the next one", run: leaves},
		{name: "an adapter whose broker is dead ends within seconds", alone: true, needs: kills, run: stopsWithoutBroker},
	}
}

func stopsIdle(f *fixture) {
	stop := f.start(f.consumer(points, func(context.Context, consumer.Message) error { return nil }), 2)
	f.publish(message(0))
	f.drained(points)
	stop()
}

func finishes(f *fixture) {
	var handled calls
	entered, leave := make(chan struct{}), make(chan struct{})
	stop := f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		close(entered)
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}), 1)
	f.publish(message(0))
	<-entered
	time.AfterFunc(300*time.Millisecond, func() { close(leave) })
	stop()
	f.drained(points)
	f.once(&handled, 1)
	if n := f.events.count(func(e consumer.Event) bool { return e.Action == consumer.Ack }); n != 1 {
		f.Errorf("%d acknowledged, want 1", n)
	}
}

func leaves(f *fixture) {
	var handled calls
	handler := func(ctx context.Context, m consumer.Message) error {
		if handled.add(ctx, m) == 1 && m.ID == message(0).ID {
			return errBroken
		}
		return nil
	}
	stop := f.start(f.consumer(points, handler, consumer.Backoff(time.Second, time.Second)), 1)
	f.publish(message(0))
	f.until("failed", func() bool { return f.events.count(func(e consumer.Event) bool { return e.Counted }) == 1 })
	stop()
	f.publish(message(1))
	f.start(f.consumer(points, handler), 1)
	f.until("both handled", func() bool { return len(handled.of(message(0).ID)) == 2 && len(handled.of(message(1).ID)) == 1 })
	f.drained(points)
}

// amqp091-go#18, #32: a consumer hung on close.
func stopsWithoutBroker(f *fixture) {
	stop := f.start(f.consumer(points, func(context.Context, consumer.Message) error { return nil }), 2)
	f.publish(message(0))
	f.drained(points)
	f.Kill(f)
	stop()
	f.Restart(f)
}
