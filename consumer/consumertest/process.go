package consumertest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

func processChecks() []check {
	return []check{
		{name: "a message whose process was killed is the next attempt", needs: crashes, run: killedProcess},
		{name: "a message that kills its process becomes a dead letter", needs: crashes, run: killerMessage},
	}
}

// wolverine#1677: kill -9 in the middle.
func killedProcess(f *fixture) {
	f.publish(message(0))
	f.Crash(f, points)
	var handled calls
	f.start(f.consumer(points, handled.handle), 1)
	f.until("handled", func() bool { return handled.messages() == 1 })
	f.drained(points)
	f.once(&handled, 1)
	if run := handled.of(message(0).ID)[0]; run.attempt != 2 {
		f.Errorf("attempt %d; the one that was killed was the first", run.attempt)
	}
}

// The evidence of attempts that said nothing counts as well.
func killerMessage(f *fixture) {
	f.publish(message(0))
	f.Crash(f, points)
	f.Crash(f, points)
	var handled calls
	f.start(f.consumer(points, handled.handle, consumer.Attempts(2)), 1)
	letter := f.dead(1)[0]
	f.drained(points)
	if handled.messages() != 0 {
		f.Error("a third attempt of two was made")
	}
	if letter.Headers[consumer.HeaderError] == "" || string(letter.Body) != string(message(0).Body) {
		f.Errorf("dead letter %v", letter)
	}
}

// Hang is the part of the process that Crash starts and kills: it runs a consumer of this name whose handler writes the line "begun" and hangs. run is the
// adapter, as in Backend.Run. It returns when ctx ends.
func Hang(ctx context.Context, ledger idem.Ledger, name string, out io.Writer, run func(context.Context, *consumer.Consumer) error, options ...consumer.Option) error {
	options = append([]consumer.Option{consumer.Lease(lease), consumer.Limit(time.Hour)}, options...)
	c, err := consumer.New(ledger, name, func(ctx context.Context, _ consumer.Message) error {
		_, _ = fmt.Fprintln(out, "begun")
		<-ctx.Done()
		return ctx.Err()
	}, options...)
	if err != nil {
		return err
	}
	return run(ctx, c)
}
