package redisstream

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// Config says what to consume. Only Stream is needed.
type Config struct {
	// Stream is the key of the stream.
	Stream string

	// Group is the consumer group. Default: the consumer's name. Two consumers with different names must not share a group: each would see half of the messages.
	Group string

	// Dead is the key of the stream of dead letters. On a cluster it must lie in the slot of Stream. Default: "{<stream>}:dead:<group>", which does, or
	// "<stream>:dead:<group>" where the stream's key has a hash tag.
	Dead string

	// MaxDead trims the dead letters to about so many. Default 0: they are never trimmed.
	MaxDead int64

	// Concurrency is how many messages are handled at once. Default 1.
	Concurrency int

	// Resting is how many messages may rest between attempts before no new ones are read. Default 1000.
	Resting int

	// MinIdle is how long a process must have been silent before its entries are taken over; it speaks each third of it. At least 30 ms. Default idem.DefaultLease.
	MinIdle time.Duration

	// Block is how long one read waits at Redis for new entries, and so about how long an idle adapter takes to end; it is at most a third of
	// MinIdle. Default 1 s.
	Block time.Duration

	// Reconnect is the longest pause between tries while Redis is away; the first is 20 ms, then each is twice the last. Default 2 s.
	Reconnect time.Duration

	// Grace is how long running handlers may go on when Run's context has ended; then their contexts end, too. Default: the consumer's own
	// limit, which lets every one of them finish.
	Grace time.Duration

	// NoDeclare leaves the making of stream and group to somebody else; Run waits for them.
	NoDeclare bool

	// Decode turns an entry's fields into a message. ID, where it leaves it empty, becomes the stream's key, "/" and the entry's id; Source and Delivery are set
	// afterwards. An entry that it cannot read is given no body; one that it panics on is a dead letter with its fields as headers. Default: the field FieldBody is
	// the body, FieldID the id, all others are headers.
	Decode func(fields map[string]string) consumer.Message

	// Logger gets what goes wrong between here and Redis. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 1)
	c.Resting = cmp.Or(c.Resting, 1000)
	c.MinIdle = cmp.Or(c.MinIdle, idem.DefaultLease)
	c.Block = cmp.Or(c.Block, time.Second)
	c.Block = min(c.Block, c.MinIdle/3)
	c.Reconnect = cmp.Or(c.Reconnect, 2*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Decode == nil {
		c.Decode = decode
	}
	return c
}

// named fills in what depends on the consumer's name.
func (c Config) named(name string) Config {
	c.Group = cmp.Or(c.Group, name)
	c.Dead = cmp.Or(c.Dead, deadStream(c.Stream, c.Group))
	return c
}

// deadStream lies in the slot of the stream: Redis hashes what stands between the first braces, if it is not empty.
func deadStream(stream, group string) string {
	if _, rest, open := strings.Cut(stream, "{"); open {
		if at := strings.Index(rest, "}"); at > 0 {
			return stream + ":dead:" + group
		}
	}
	if strings.ContainsAny(stream, "{}") {
		return "" // no tag can hold such a key
	}
	return "{" + stream + "}:dead:" + group
}

// minMinIdle: Redis counts silence in milliseconds, and a third of it has to be spoken in.
const minMinIdle = 30 * time.Millisecond

func (c Config) validate() error {
	switch {
	case c.Stream == "":
		return fmt.Errorf("%w: redisstream: no stream", idem.ErrInvalid)
	case c.Dead == "" && deadStream(c.Stream, c.Group) == "":
		return fmt.Errorf("%w: redisstream: stream %q has braces but no hash tag; name Dead", idem.ErrInvalid, c.Stream)
	case c.Dead == c.Stream:
		return fmt.Errorf("%w: redisstream: the dead letters of %q would be read from it again", idem.ErrInvalid, c.Stream)
	case c.Concurrency < 1 || c.Resting < 1 || c.MaxDead < 0:
		return fmt.Errorf("%w: redisstream: concurrency %d, resting %d, dead letters %d; none may be negative", idem.ErrInvalid, c.Concurrency, c.Resting, c.MaxDead)
	case c.MinIdle < minMinIdle:
		return fmt.Errorf("%w: redisstream: MinIdle %v; it must be at least %v", idem.ErrInvalid, c.MinIdle, minMinIdle)
	case c.Block < time.Millisecond || c.Reconnect < 0 || c.Grace < 0:
		return fmt.Errorf("%w: redisstream: block %v, reconnect %v, grace %v; they must be positive", idem.ErrInvalid, c.Block, c.Reconnect, c.Grace)
	}
	return nil
}
