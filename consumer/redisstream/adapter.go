package redisstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	config = config.withDefaults(c)
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Adapter{rdb: rdb, consumer: c, config: config, scripts: newScripts()}, nil
}

// Run consumes until ctx ends. It then reads nothing more, lets running handlers finish for as long as Config.Grace says, carries out their verdicts, hands over
// what rests or waits, and returns nil; a handler that ignores its context holds it up. While Redis is away it tries again; the only error it returns is one that no waiting changes, met at the start: a key that
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
	if strings.HasPrefix(answer(err), "BUSYGROUP") {
		return nil
	}
	return err
}

// answer is Redis' own error text, empty where the error is none.
func answer(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	return reply.Error()
}

func hopeless(err error) bool {
	word, _, _ := strings.Cut(answer(err), " ")
	return slices.Contains([]string{"WRONGTYPE", "NOPERM", "NOAUTH", "WRONGPASS"}, word)
}

// missing: there is no such group. Redis before 7 says so amid the text where it is a script that asks, and a read that waits as its stream is deleted is
// told UNBLOCKED by some versions.
func missing(err error) bool {
	return strings.Contains(answer(err), "NOGROUP") || strings.HasPrefix(answer(err), "UNBLOCKED")
}
