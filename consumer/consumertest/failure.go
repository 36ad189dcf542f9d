package consumertest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

func failureChecks() []check {
	return []check{
		{name: "a message whose handler failed comes again", run: failsOnce},
		{name: "a panic is a failed attempt", run: panicsOnce},
		{name: "a message rests between attempts, longer each time", run: rests},
		{name: "a resting message does not keep others waiting", run: restsAlone},
		{name: "while the ledger is away a message comes again and uses up nothing", run: ledgerAway},
	}
}

var errBroken = errors.New("the points server is down")

// hermes-agent#62860: marked before it was processed, the message was lost with the first failure.
func failsOnce(f *fixture) {
	f.secondTime(func() error { return errBroken })
}

func panicsOnce(f *fixture) {
	f.secondTime(func() error { panic("out of points") })
}

// secondTime lets the first attempt of each message fail and checks that the second one is made and stands.
func (f *fixture) secondTime(fail func() error) {
	f.Helper()
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		if handled.add(ctx, m) == 1 {
			return fail()
		}
		return nil
	}), 2)
	const n = 5
	f.publishMany(n)
	for i := range n {
		f.until("handled again", func() bool { return len(handled.of(message(i).ID)) == 2 })
	}
	f.drained(points)
	for i := range n {
		runs := handled.of(message(i).ID)
		if len(runs) != 2 || runs[0].attempt != 1 || runs[1].attempt != 2 {
			f.Errorf("%s: %d runs, want attempts 1 and 2", message(i).ID, len(runs))
		}
		if !sameHeaders(runs[len(runs)-1].Headers, message(i).Headers) || string(runs[len(runs)-1].Body) != string(message(i).Body) {
			f.Errorf("%s came back changed: %v", message(i).ID, runs[len(runs)-1].Message)
		}
	}
	f.dead(0)
}

func rests(f *fixture) {
	const first = 300 * time.Millisecond
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		if handled.add(ctx, m) < 4 {
			return errBroken
		}
		return nil
	}, consumer.Backoff(first, time.Minute)), 1)
	f.publish(message(0))
	f.until("four attempts", func() bool { return len(handled.of(message(0).ID)) == 4 })
	runs := handled.of(message(0).ID)
	for i, least := range []time.Duration{first / 2, first, 2 * first} {
		if rest := runs[i+1].at.Sub(runs[i].at); rest < least*9/10 {
			f.Errorf("%v between attempts %d and %d, want at least %v", rest, i+1, i+2, least)
		}
	}
	f.drained(points)
}

func restsAlone(f *fixture) {
	var handled calls
	f.start(f.consumer(points, func(ctx context.Context, m consumer.Message) error {
		handled.add(ctx, m)
		if m.ID == message(0).ID {
			return errBroken
		}
		return nil
	}, consumer.Backoff(time.Hour, time.Hour)), 1)
	f.publishMany(5)
	f.until("the others handled", func() bool { return handled.messages() == 5 })
	f.until("only the resting one left", func() bool {
		left, err := f.Pending(context.Background(), points)
		return err == nil && left == 1
	})
}

func ledgerAway(f *fixture) {
	ledger := &awayLedger{Ledger: f.Ledger}
	ledger.away.Store(true)
	f.Ledger = ledger
	var handled calls
	f.start(f.consumer(points, handled.handle, consumer.Attempts(2)), 1)
	f.publish(message(0))
	f.until("refused more often than there are attempts", func() bool {
		return f.events.count(func(e consumer.Event) bool {
			return errors.Is(e.Err, idem.ErrUnavailable) && e.Action == consumer.Retry
		}) > 3
	})
	if handled.messages() != 0 {
		f.Error("handled without a claim")
	}
	ledger.away.Store(false)
	f.until("handled", func() bool { return handled.messages() == 1 })
	f.drained(points)
	f.dead(0)
	if run := handled.of(message(0).ID)[0]; run.attempt != 1 {
		f.Errorf("attempt %d, want the first", run.attempt)
	}
}

// awayLedger is a ledger that cannot be asked for claims for a while.
type awayLedger struct {
	idem.Ledger
	away atomic.Bool
}

func (l *awayLedger) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if l.away.Load() {
		return idem.Answer{}, errors.New("connection refused")
	}
	return l.Ledger.Claim(ctx, q)
}
