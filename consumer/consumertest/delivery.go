package consumertest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

func deliveryChecks() []check {
	return []check{
		{name: "each message is handled once and acknowledged", run: handledOnce},
		{name: "a handler gets id, body and headers as they were published", run: wholeMessage},
		{name: "a message published twice is handled once", run: publishedTwice},
		{name: "two consumers of one message both run", run: twoConsumers},
		{name: "messages published before the first consumer came are handled", run: publishedBefore},
		{name: "so many at a time as were asked for, and no more", run: concurrently},
		{name: "two processes share the messages", run: twoProcesses},
		{name: "slow but living work is not taken", run: slowWork},
		{name: "a message that another process has in hand comes later", run: busyElsewhere},
	}
}

func handledOnce(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	const n = 20
	f.publishMany(n)
	f.until("all handled", func() bool { return handled.messages() == n })
	f.drained(points)
	f.once(&handled, n)
	f.dead(0)
}

// once checks that each of the first n messages was handled exactly once.
func (f *fixture) once(handled *calls, n int) {
	f.Helper()
	for i := range n {
		if got := len(handled.of(message(i).ID)); got != 1 {
			f.Errorf("%s was handled %d times", message(i).ID, got)
		}
	}
}

func wholeMessage(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	want := message(7)
	want.Body = bytes.Repeat([]byte{0, 1, 2, 0xff, '\n', '{'}, 10_000)
	f.publish(want)
	f.until("handled", func() bool { return handled.messages() == 1 })
	got := handled.of(want.ID)
	if len(got) != 1 {
		f.Fatalf("the message has another id: handled %v", handled.runs)
	}
	if !bytes.Equal(got[0].Body, want.Body) {
		f.Errorf("body of %d bytes, want %d", len(got[0].Body), len(want.Body))
	}
	for name, value := range want.Headers {
		if got[0].Headers[name] != value {
			f.Errorf("header %s is %q, want %q", name, got[0].Headers[name], value)
		}
	}
	if got[0].Source == "" {
		f.Error("the message does not say where it comes from")
	}
	if got[0].Delivery > 1 {
		f.Errorf("delivery %d of the first", got[0].Delivery)
	}
}

func publishedTwice(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 2)
	f.publish(message(0))
	f.publish(message(0))
	f.until("the second one replayed", func() bool {
		return f.events.count(func(e consumer.Event) bool { return e.Action == consumer.Ack && e.Replayed }) == 1
	})
	f.drained(points)
	f.once(&handled, 1)
}

// MassTransit#3543: an inbox key without the consumer's name.
func twoConsumers(f *fixture) {
	var byPoints, byMail calls
	f.start(f.consumer(points, byPoints.handle), 1)
	f.start(f.consumer(mail, byMail.handle), 1)
	f.publishMany(5)
	f.until("both handled all", func() bool { return byPoints.messages() == 5 && byMail.messages() == 5 })
	f.drained(points)
	f.drained(mail)
	f.once(&byPoints, 5)
	f.once(&byMail, 5)
}

func publishedBefore(f *fixture) {
	f.publishMany(5)
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	f.until("all handled", func() bool { return handled.messages() == 5 })
	f.drained(points)
}

func concurrently(f *fixture) {
	const n = 3
	var now, most atomic.Int32
	gate := make(chan struct{})
	f.start(f.consumer(points, func(ctx context.Context, _ consumer.Message) error {
		working := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); working > old && !most.CompareAndSwap(old, working); old = most.Load() {
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}), n)
	f.publishMany(4 * n)
	f.until(fmt.Sprint(n, " at once"), func() bool { return now.Load() == n })
	f.stays("no more than that", 300*time.Millisecond, func() bool { return now.Load() == n })
	close(gate)
	f.drained(points)
	if most.Load() != n {
		f.Errorf("%d at once, want %d", most.Load(), n)
	}
}

func twoProcesses(f *fixture) {
	var handled calls
	for range 2 {
		f.start(f.consumer(points, handled.handle), 2)
	}
	const n = 40
	f.publishMany(n)
	f.until("all handled", func() bool { return handled.messages() == n })
	f.drained(points)
	f.once(&handled, n)
}

// Work that lasts longer than the lease, and than what a broker takes for dead.
func slowWork(f *fixture) {
	var handled calls
	for range 2 {
		f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
			handled.add(ctx, m)
			select {
			case <-time.After(2 * lease):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}), 2)
	}
	f.publish(message(0))
	f.until("handled", func() bool { return handled.messages() == 1 })
	f.drained(points)
	f.once(&handled, 1)
	if n := f.events.count(func(e consumer.Event) bool { return e.Action != consumer.Ack }); n != 0 {
		f.Errorf("%d verdicts on a message that was in hand", n)
	}
}

func busyElsewhere(f *fixture) {
	m := message(0)
	answer, err := f.Ledger.Claim(context.Background(), idem.Request{
		Key: idem.K("consume."+points, m.ID), Owner: idem.NewOwner(), Lease: lease, Retention: time.Hour,
	})
	if err != nil || answer.Outcome != idem.Won {
		f.Fatal(answer.Outcome, err)
	}
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	f.publish(m)
	f.until("refused", func() bool {
		return f.events.count(func(e consumer.Event) bool { return e.Action == consumer.Retry && !e.Counted }) > 0
	})
	f.until("handled", func() bool { return handled.messages() == 1 })
	f.drained(points)
	if run := handled.of(m.ID)[0]; run.attempt != 2 {
		f.Errorf("attempt %d; the claim of the other was the first", run.attempt)
	}
}

// sameHeaders reports whether all of want are in got.
func sameHeaders(got, want map[string]string) bool {
	for name := range maps.Keys(want) {
		if got[name] != want[name] {
			return false
		}
	}
	return true
}
