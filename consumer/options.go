package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/idemkit/idem"
)

// Defaults of the options.
const (
	DefaultAttempts   = 5
	DefaultFirstDelay = time.Second
	DefaultMaxDelay   = 5 * time.Minute
)

// Option changes a consumer.
type Option func(*settings)

type settings struct {
	attempts    int
	first, most time.Duration
	lease       time.Duration
	limit       time.Duration
	retention   time.Duration
	sameTx      bool
	key         func(Message) (string, error) // nil: the id
	keyed       bool                          // by an option
	resolve     idem.Resolver
	observe     func(context.Context, Event)
	claims      func(context.Context, idem.Event)
	logger      *slog.Logger
}

func defaults() settings {
	return settings{
		attempts: DefaultAttempts, first: DefaultFirstDelay, most: DefaultMaxDelay,
		lease: idem.DefaultLease, limit: idem.DefaultLimit, retention: idem.DefaultRetention,
		observe: func(context.Context, Event) {}, logger: slog.Default(),
	}
}

// Attempts sets after how many attempts a message becomes a dead letter; at least 1. Default DefaultAttempts.
func Attempts(n int) Option { return func(s *settings) { s.attempts = n } }

// Backoff sets the delays between attempts: about first after the first attempt, twice as long after each further one, never longer than most. Half of each
// is random, so that messages which failed together do not come back together. Default DefaultFirstDelay and DefaultMaxDelay.
func Backoff(first, most time.Duration) Option {
	return func(s *settings) { s.first, s.most = first, most }
}

// Lease sets how long a claim stands without renewal: it is renewed every third of it while the handler runs, and a message whose process was killed waits
// for its end. Default idem.DefaultLease.
func Lease(d time.Duration) Option { return func(s *settings) { s.lease = d } }

// Limit bounds the handler: its context ends then. Default idem.DefaultLimit.
func Limit(d time.Duration) Option { return func(s *settings) { s.limit = d } }

// Retention sets how long the ledger remembers a message after its last change. It must be longer than any message may rest in the broker. Default idem.DefaultRetention.
func Retention(d time.Duration) Option { return func(s *settings) { s.retention = d } }

// KeyFunc names the business operation behind a message, such as the order number in its body. A broker's message id is optional and not always unique; a
// producer that repeats a publication whose confirmation was lost may give the second one another. Default: Message.ID, and a message with the id of another and a
// different body is a dead letter (idem.ErrPayloadMismatch) instead of done. An empty key, an error and a panic are ErrNoKey. It must give the same key for every
// delivery of a message.
func KeyFunc(f func(Message) (string, error)) Option {
	return func(s *settings) { s.key, s.keyed = f, true }
}

// SameTx runs claim, handler and record in one transaction of the ledger: one commit a message. No attempt survives in it, so a failure is
// recorded after the rollback, and a process that is killed leaves nothing: there Message.Delivery counts, too, and the message is a dead letter when it or
// the ledger's count passes the threshold.
func SameTx() Option { return func(s *settings) { s.sameTx = true } }

// Resolver is asked what became of an earlier attempt before there is another, as in idem.Call. One that cannot say, or panics, has used up the attempt that
// asked. Not with SameTx.
func Resolver(r idem.Resolver) Option { return func(s *settings) { s.resolve = r } }

// Observe is told of every verdict, on the goroutine of the handler: count by Event.Action there. It must be quick.
func Observe(f func(context.Context, Event)) Option { return func(s *settings) { s.observe = f } }

// ObserveClaims gets the engine's own events: lost claims and results that could not be recorded.
func ObserveClaims(f func(context.Context, idem.Event)) Option {
	return func(s *settings) { s.claims = f }
}

// Logger gets panics with their stacks, and what became a dead letter. It never gets bodies or headers. Default slog.Default().
func Logger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

func (s settings) validate() error {
	switch {
	case s.attempts < 1:
		return fmt.Errorf("%w: %d attempts; there must be at least 1", idem.ErrInvalid, s.attempts)
	case s.first <= 0 || s.most < s.first:
		return fmt.Errorf("%w: backoff from %v to %v; the first must be above 0 and at most the longest", idem.ErrInvalid, s.first, s.most)
	case s.limit < idem.MinLease:
		return fmt.Errorf("%w: time limit %v; it must be at least %v", idem.ErrInvalid, s.limit, idem.MinLease)
	case s.keyed && s.key == nil, s.observe == nil, s.logger == nil:
		return fmt.Errorf("%w: a nil KeyFunc, Observe or Logger; leave the option out instead", idem.ErrInvalid)
	case s.sameTx && s.resolve != nil:
		return fmt.Errorf("%w: SameTx leaves nothing to resolve", idem.ErrInvalid)
	}
	return s.request("validate", "validate").Validate()
}

func (s settings) request(businessType, id string) idem.Request {
	return idem.Request{
		Key: idem.K(businessType, id), Owner: idem.NewOwner(), Shared: true, Lease: s.lease, Retention: s.retention,
	}
}
