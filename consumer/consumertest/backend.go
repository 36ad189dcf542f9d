// Package consumertest is what an adapter between a broker and package consumer has to do, as a suite of tests against the real broker:
//
//	func TestConformance(t *testing.T) {
//		consumertest.Run(t, func(t testing.TB, need consumertest.Need) consumertest.Backend { ... })
//	}
package consumertest

import (
	"context"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// Backend is one place for messages at a broker, empty, as a test gets it: a stream, or an exchange with a queue for each of the consumers that were
// named when it was opened. Kill, Restart, Cut, Delete and Crash are nil where there is no such thing; the tests that need them are then left out.
type Backend struct {
	// Ledger is empty, and shared with the processes that Crash starts.
	Ledger idem.Ledger

	// Publish hands a message to the broker as a producer does, for every named consumer: ID, Body and Headers. It returns when the broker has
	// confirmed it; the suite repeats it where the broker is away.
	Publish func(ctx context.Context, m consumer.Message) error

	// Run runs the adapter for the consumer until ctx ends: concurrency messages at a time, short reconnection delays, and a message of a dead process taken over
	// after about a second. It may be called several times, also at once, as several processes would. It returns nil after a graceful end.
	Run func(ctx context.Context, c *consumer.Consumer, concurrency int) error

	// Dead returns the dead letters of the named consumer.
	Dead func(ctx context.Context, name string) ([]consumer.Message, error)

	// Pending counts what the broker still has for the named consumer: waiting, resting and unacknowledged messages, not the dead letters.
	Pending func(ctx context.Context, name string) (int, error)

	// Kill ends the broker as a crash does (SIGKILL), Restart starts it again with what it had made durable.
	Kill, Restart func(t testing.TB)

	// Cut breaks the connections of everything that Run runs, once; new ones work.
	Cut func(t testing.TB)

	// Delete deletes the stream, or the named consumer's queue, under the running adapter.
	Delete func(t testing.TB, name string)

	// Crash runs a consumer of this name in another process, whose handler hangs, waits until the handler has begun, and kills the process (SIGKILL). See Hang.
	Crash func(t testing.TB, name string)
}

// Need is what a test asks of its backend.
type Need struct {
	Names []string // the consumers that the messages are for
	Alone bool     // the test kills the broker: nobody else may use it, and it must keep what it confirmed
}

// Open returns a backend of its own for a test, ready for publications, and registers its clean-up with t.Cleanup.
type Open func(t testing.TB, need Need) Backend
