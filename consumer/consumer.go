package consumer

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/idemkit/idem"
)

// Handler does the work behind a message. nil means that it is done; an error ends the attempt, see ErrPermanent. Its context ends at the consumer's
// limit, when the claim is lost and when the context given to Handle ends; it has the claim (idem.FromContext) and the ledger's transaction.
type Handler func(ctx context.Context, m Message) error

// Event is one verdict, as an observer sees it. It holds no key, body or header.
type Event struct {
	Verdict
	Took time.Duration
}

// Consumer turns deliveries into verdicts. It is safe for concurrent use, by any number of processes that share the ledger.
type Consumer struct {
	name     string
	handler  Handler
	ledger   idem.Ledger
	engine   *idem.Engine
	settings settings
}

// New returns a consumer. The name tells it from the other consumers of the same messages, and must stay the same for as long as the ledger
// remembers: its records are of the business type "consume." and the name. idem.ErrInvalid says what is missing or out of range.
func New(ledger idem.Ledger, name string, handler Handler, options ...Option) (*Consumer, error) {
	s := defaults()
	for _, option := range options {
		option(&s)
	}
	switch {
	case ledger == nil:
		return nil, fmt.Errorf("%w: a consumer needs a ledger", idem.ErrInvalid)
	case name == "":
		return nil, fmt.Errorf("%w: a consumer needs a name; two without one would take each other's messages for done", idem.ErrInvalid)
	case handler == nil:
		return nil, fmt.Errorf("%w: a consumer needs a handler", idem.ErrInvalid)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	engine, err := idem.NewEngine(idem.EngineConfig{Ledger: ledger, Observe: s.claims})
	if err != nil {
		return nil, err
	}
	return &Consumer{name: name, handler: handler, ledger: ledger, engine: engine, settings: s}, nil
}

// Name is the name given to New.
func (c *Consumer) Name() string { return c.name }

// Type is the business type of the consumer's records in the ledger, for a janitor's list.
func (c *Consumer) Type() string { return "consume." + c.name }

// Limit is how long the handler may take, so that an adapter knows how long a graceful end may last.
func (c *Consumer) Limit() time.Duration { return c.settings.limit }

// backoff is the delay after so many attempts: doubled with each, capped, the upper half of it random.
func (s settings) backoff(attempts int) time.Duration {
	delay := float64(s.first) * math.Pow(2, float64(max(attempts, 1)-1))
	delay = min(delay, float64(s.most))
	return time.Duration(delay/2 + rand.Float64()*delay/2) //nolint:gosec // spreads load, hides nothing
}
