package consumertest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/idemkit/idem/consumer"
)

func deathChecks() []check {
	return []check{
		{name: "a poison message becomes a dead letter with its headers and the last error", run: poison},
		{name: "a permanent failure is a dead letter at once", run: permanent},
		{name: "a dead letter that is put back has its attempts again", run: putBack},
		{name: "an entry without body is acknowledged and counted", run: withoutBody},
	}
}

func poison(f *fixture) {
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		if n := handled.add(ctx, m); m.ID == message(1).ID {
			return errors.New("broken " + strings.Repeat("I", n))
		}
		return nil
	}, consumer.Attempts(3)), 1)
	f.publishMany(3)
	letter := f.dead(1)[0]
	f.drained(points)
	want := message(1)
	if string(letter.Body) != string(want.Body) || !sameHeaders(letter.Headers, want.Headers) {
		f.Errorf("dead letter %v, want body and headers of %v", letter, want)
	}
	for name, value := range map[string]string{
		consumer.HeaderError: "broken III", consumer.HeaderAttempt: "3", consumer.HeaderConsumer: points, consumer.HeaderID: want.ID,
	} {
		if letter.Headers[name] != value {
			f.Errorf("header %s is %q, want %q", name, letter.Headers[name], value)
		}
	}
	if letter.Headers[consumer.HeaderSource] == "" {
		f.Error("the dead letter does not say where it comes from")
	}
	if n := len(handled.of(want.ID)); n != 3 {
		f.Errorf("%d attempts, want 3", n)
	}
	for _, i := range []int{0, 2} {
		if n := len(handled.of(message(i).ID)); n != 1 {
			f.Errorf("%s was handled %d times", message(i).ID, n)
		}
	}
}

func permanent(f *fixture) {
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		return errors.Join(errBroken, consumer.ErrPermanent)
	}), 1)
	f.publish(message(0))
	letter := f.dead(1)[0]
	f.drained(points)
	f.once(&handled, 1)
	if !strings.Contains(letter.Headers[consumer.HeaderError], errBroken.Error()) {
		f.Errorf("error %q, want %q in it", letter.Headers[consumer.HeaderError], errBroken)
	}
}

func putBack(f *fixture) {
	var handled calls
	var mended atomic.Bool
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		if mended.Load() {
			return nil
		}
		return errBroken
	}, consumer.Attempts(2)), 1)
	f.publish(message(0))
	letter := f.dead(1)[0]
	mended.Store(true)
	letter.ID = letter.Headers[consumer.HeaderID]
	f.publish(letter)
	f.until("handled", func() bool { return len(handled.of(message(0).ID)) == 3 })
	f.drained(points)
	if run := handled.of(message(0).ID)[2]; run.attempt != 3 || !sameHeaders(run.Headers, message(0).Headers) {
		f.Errorf("attempt %d with headers %v, want attempt 3", run.attempt, run.Headers)
	}
}

// watermill-redisstream#38: an entry without body came again for ever.
func withoutBody(f *fixture) {
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	empty := message(0)
	empty.Body = nil
	f.publish(empty)
	f.publish(message(1))
	f.until("the next one handled", func() bool { return len(handled.of(message(1).ID)) == 1 })
	f.drained(points)
	if letter := f.dead(1)[0]; !sameHeaders(letter.Headers, empty.Headers) || letter.Headers[consumer.HeaderError] != consumer.ErrNoBody.Error() {
		f.Errorf("dead letter %v", letter)
	}
	if n := f.events.count(func(e consumer.Event) bool { return errors.Is(e.Err, consumer.ErrNoBody) }); n != 1 {
		f.Errorf("counted %d times, want once", n)
	}
	if handled.messages() != 1 {
		f.Error("handled a message that has nothing in it")
	}
}
