package redisstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// Adapter carries messages from a stream to a consumer and its verdicts back. It is safe for concurrent use.
type Adapter struct {
	rdb      redis.UniversalClient
	consumer *consumer.Consumer
	config   Config
	scripts  scripts
}

// New returns an adapter on the caller's client, which stays the caller's to close; each Run keeps one of its connections busy. No command is
// sent. idem.ErrInvalid says what is missing or out of range.
func New(rdb redis.UniversalClient, c *consumer.Consumer, config Config) (*Adapter, error) {
	if rdb == nil || c == nil {
		return nil, fmt.Errorf("%w: redisstream: a client and a consumer are needed", idem.ErrInvalid)
	}
	config = config.withDefaults(c.Name())
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Adapter{rdb: rdb, consumer: c, config: config, scripts: newScripts()}, nil
}

// Run consumes until ctx ends. It then reads nothing more, lets running handlers finish for as long as Config.Grace says, carries out their verdicts, hands over
// what rests or waits, and returns nil. While Redis is away it tries again; the only error it returns is one that no waiting changes, met at the start: a key that
// is no stream, or credentials that do not allow it. A Redis that hangs with its connections open holds up the end for as long as go-redis waits for it: Block and ten seconds.
func (a *Adapter) Run(ctx context.Context) error {
	if err := a.declare(ctx); hopeless(err) {
		return fmt.Errorf("redisstream: stream %q, group %q: %w", a.config.Stream, a.config.Group, err)
	}
	r := newRun(ctx, a)
	r.begin(ctx)
	r.read(ctx)
	r.end()
	return nil
}

// declare makes the stream and the group, from the stream's beginning, where they are missing.
func (a *Adapter) declare(ctx context.Context) error {
	if a.config.NoDeclare {
		return nil
	}
	err := a.rdb.XGroupCreateMkStream(ctx, a.config.Stream, a.config.Group, "0").Err()
	if says(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// says reports whether it is Redis' own answer, beginning with one of the words.
func says(err error, words ...string) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, word := range words {
		if strings.HasPrefix(reply.Error(), word) {
			return true
		}
	}
	return false
}

func hopeless(err error) bool { return says(err, "WRONGTYPE", "NOPERM", "NOAUTH", "WRONGPASS") }

// missing: there is no such group. A read that waits as its stream is deleted is told UNBLOCKED by some versions.
func missing(err error) bool { return says(err, "NOGROUP", "UNBLOCKED") }
