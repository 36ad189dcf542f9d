package consumertest

import (
	"context"
	"sync"
	"time"

	"github.com/idemkit/idem/consumer"
)

func brokerChecks() []check {
	return []check{
		{name: "a broker that is killed and started again loses no message", alone: true, needs: kills, run: killedBroker},
		{name: "a message whose acknowledgement was lost is not handled again", alone: true, needs: kills, run: lostAck},
		{name: "cut connections are made again", needs: cuts, run: cutConnections},
		{name: "a deleted stream or queue is made again", needs: deletes, run: deleted},
	}
}

func killedBroker(f *fixture) {
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return ctx.Err()
	}), 2)
	const n = 40
	f.publishMany(n)
	f.until("some handled", func() bool { return handled.messages() > 3 })
	f.Kill(f)
	f.Restart(f)
	f.publish(message(n))
	f.until("all handled", func() bool { return handled.messages() == n+1 })
	f.drained(points)
	f.once(&handled, n+1)
}

// redis#5433: acknowledged entries came back; here the acknowledgement itself meets a dead broker.
func lostAck(f *fixture) {
	var handled calls
	kill := sync.OnceFunc(func() { f.Kill(f) })
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		kill()
		return nil
	}), 1)
	f.publish(message(0))
	f.until("handled", func() bool {
		return f.events.count(func(e consumer.Event) bool { return e.Action == consumer.Ack }) == 1
	})
	f.Restart(f)
	f.publish(message(1))
	f.until("the next one handled", func() bool { return handled.messages() == 2 })
	f.drained(points)
	f.once(&handled, 2)
}

func cutConnections(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 2)
	for round := range 3 {
		for i := range 5 {
			f.publish(message(5*round + i))
		}
		f.Cut(f)
	}
	f.until("all handled", func() bool { return handled.messages() == 15 })
	f.drained(points)
	f.once(&handled, 15)
}

// opik#5525: a consumer whose stream had gone asked for it in vain for ever.
func deleted(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	f.publish(message(0))
	f.drained(points)
	f.Delete(f, points)
	// A queue is made again by its consumer: until then there is nobody whom a publication could miss.
	for i := 1; handled.messages() < 2; i++ {
		f.publish(message(i))
		end := time.Now().Add(time.Second)
		for handled.messages() < 2 && time.Now().Before(end) {
			<-time.After(5 * time.Millisecond)
		}
		if i > 60 {
			f.Fatal("nothing arrives any more")
		}
	}
	f.drained(points)
}
