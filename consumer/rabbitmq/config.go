package rabbitmq

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem"
)

// Defaults of Config.
const (
	DefaultConcurrency    = 8
	DefaultFirstReconnect = 100 * time.Millisecond
	DefaultMaxReconnect   = 10 * time.Second
	DefaultConfirmTimeout = 10 * time.Second
	DefaultHeartbeat      = 5 * time.Second
)

// Binding leads messages from an exchange into the work queue.
type Binding struct {
	Exchange string     // its name
	Kind     string     // "topic", "fanout", ...: declares it, durable. Empty: it exists
	Key      string     // the routing key
	Args     amqp.Table // for a headers exchange
}

// Level is one resting queue. Its messages must go back to the work queue when they expire.
type Level struct {
	Delay time.Duration // the longest delay that it is used for, in whole milliseconds
	Queue string        // its name. Default: the work queue's, ".retry." and the delay
}

// Config says where messages come from and how they are worked on. URL and Queue are required.
type Config struct {
	URL      string      // amqp:// or amqps://, with the virtual host as its path
	TLS      *tls.Config // for amqps; nil: the system's roots, and the URL's host name
	Queue    string      // the work queue
	Bindings []Binding   // none: producers publish to the default exchange under the queue's name

	// Retry are the resting queues, by growing delay. A longer delay than the last rests for as long as the last. Default: 1s, 4s, 16s, 1m and 5m, which is
	// consumer.DefaultMaxDelay.
	Retry []Level
	Dead  string // the queue of dead letters; default: the work queue's name and ".dead"

	// NoDeclare declares and binds nothing: all queues named here exist, of whatever type.
	NoDeclare bool

	Concurrency int // handlers at a time; default DefaultConcurrency
	// Prefetch is how many unacknowledged messages the broker hands out. More than Concurrency saves a round trip for quick handlers, but what waits here
	// unhandled when a connection breaks has a delivery more on its count. Default: Concurrency.
	Prefetch int

	FirstReconnect, MaxReconnect time.Duration // delay before the first new connection, doubled up to the longest; default DefaultFirstReconnect, DefaultMaxReconnect
	ConfirmTimeout               time.Duration // how long the broker may take to confirm a publication, or to answer; default DefaultConfirmTimeout
	Heartbeat                    time.Duration // a broker that is silent for three of it is gone; default DefaultHeartbeat, and a "heartbeat" in the URL wins
	Grace                        time.Duration // how long handlers may go on after the end of Run's context; default: the consumer's own limit

	Logger *slog.Logger // lost connections; default slog.Default()
	// Observe is told of every change: nil when messages can come, and what ended that, or kept it from beginning. It must be quick. Optional.
	Observe func(error)
}

func (c Config) withDefaults() Config {
	fill(&c.Concurrency, DefaultConcurrency)
	fill(&c.Prefetch, c.Concurrency)
	fill(&c.FirstReconnect, DefaultFirstReconnect)
	fill(&c.MaxReconnect, max(DefaultMaxReconnect, c.FirstReconnect))
	fill(&c.ConfirmTimeout, DefaultConfirmTimeout)
	fill(&c.Heartbeat, DefaultHeartbeat)
	if c.Dead == "" {
		c.Dead = c.Queue + ".dead"
	}
	levels := c.Retry
	if len(levels) == 0 {
		levels = []Level{{Delay: time.Second}, {Delay: 4 * time.Second}, {Delay: 16 * time.Second}, {Delay: time.Minute}, {Delay: 5 * time.Minute}}
	}
	c.Retry = make([]Level, len(levels))
	for i, level := range levels {
		if level.Queue == "" {
			level.Queue = c.Queue + ".retry." + short(level.Delay)
		}
		c.Retry[i] = level
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Observe == nil {
		c.Observe = func(error) {}
	}
	return c
}

func fill[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// short is a duration as people write it: 1m, not 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (c Config) validate() error {
	if _, err := amqp.ParseURI(c.URL); err != nil {
		return fmt.Errorf("%w: URL: %v", idem.ErrInvalid, err) //nolint:errorlint // the cause has no type worth finding, and never shows the URL
	}
	switch {
	case c.Queue == "":
		return fmt.Errorf("%w: no Queue", idem.ErrInvalid)
	case c.Concurrency < 1:
		return fmt.Errorf("%w: Concurrency %d; it must be at least 1", idem.ErrInvalid, c.Concurrency)
	case c.Prefetch < c.Concurrency || c.Prefetch > 65535:
		return fmt.Errorf("%w: Prefetch %d; it must be Concurrency (%d) to 65535", idem.ErrInvalid, c.Prefetch, c.Concurrency)
	case c.FirstReconnect < 0 || c.MaxReconnect < c.FirstReconnect:
		return fmt.Errorf("%w: reconnection delays from %v to %v", idem.ErrInvalid, c.FirstReconnect, c.MaxReconnect)
	case c.ConfirmTimeout < 0 || c.Heartbeat < time.Second || c.Grace < 0:
		return fmt.Errorf("%w: ConfirmTimeout %v, Heartbeat %v (at least 1s), Grace %v", idem.ErrInvalid, c.ConfirmTimeout, c.Heartbeat, c.Grace)
	}
	for _, binding := range c.Bindings {
		if binding.Exchange == "" {
			return fmt.Errorf("%w: a binding without an Exchange; the default exchange needs none", idem.ErrInvalid)
		}
	}
	return c.validateQueues()
}

// validateQueues: a name that is used twice would lead a message in a circle, or make a dead letter of it.
func (c Config) validateQueues() error {
	taken, last := map[string]bool{c.Queue: true}, time.Duration(0)
	if taken[c.Dead] {
		return fmt.Errorf("%w: the dead letters would go back to the queue %q", idem.ErrInvalid, c.Dead)
	}
	taken[c.Dead] = true
	for _, level := range c.Retry {
		if level.Delay <= last || level.Delay%time.Millisecond != 0 {
			return fmt.Errorf("%w: retry level %v; levels are whole milliseconds and grow", idem.ErrInvalid, level.Delay)
		}
		if taken[level.Queue] {
			return fmt.Errorf("%w: retry level %v: the queue %q is used twice", idem.ErrInvalid, level.Delay, level.Queue)
		}
		taken[level.Queue], last = true, level.Delay
	}
	for name := range taken {
		if len(name) > 255 {
			return fmt.Errorf("%w: the name of a queue has %d bytes; AMQP allows 255", idem.ErrInvalid, len(name))
		}
	}
	return nil
}

// level is where a message rests for the delay: the first level that is long enough, otherwise the last.
func (c Config) level(delay time.Duration) Level {
	for _, level := range c.Retry {
		if delay <= level.Delay {
			return level
		}
	}
	return c.Retry[len(c.Retry)-1]
}
