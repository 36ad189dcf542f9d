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

// Adapter runs consumers on one stream. It is safe for concurrent use.
type Adapter struct {
	rdb     redis.UniversalClient
	config  Config
	scripts scripts
}

// New returns an adapter on the caller's client, which stays the caller's to close; each Run keeps one of its connections busy. No command is
// sent. idem.ErrInvalid says what is missing or out of range.
func New(rdb redis.UniversalClient, config Config) (*Adapter, error) {
	if rdb == nil {
		return nil, fmt.Errorf("%w: redisstream: no client", idem.ErrInvalid)
	}
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Adapter{rdb: rdb, config: config, scripts: newScripts()}, nil
}

// Run hands messages to the consumer until ctx ends. It then reads nothing more, lets running handlers finish for as long as Config.Grace says, carries out their
// verdicts, hands over what rests or waits, and returns nil; a handler that ignores its context holds it up. While Redis is away it tries again; the only error it
// returns is one that no waiting changes, met at the start: a key that is no stream, or credentials that do not allow it. A Redis that hangs with its connections
// open holds up the end for as long as go-redis waits for it: Block and ten seconds.
func (a *Adapter) Run(ctx context.Context, c *consumer.Consumer) error {
	r := newRun(ctx, a, c)
	if err := r.declare(ctx); hopeless(err) {
		r.expire()
		return fmt.Errorf("redisstream: stream %q, group %q: %w", r.config.Stream, r.config.Group, err)
	}
	r.begin(ctx)
	r.read(ctx)
	r.end()
	return nil
}

// declare makes the stream and the group, from the stream's beginning, where they are missing.
func (r *run) declare(ctx context.Context) error {
	if r.config.NoDeclare {
		return nil
	}
	err := r.rdb.XGroupCreateMkStream(ctx, r.config.Stream, r.config.Group, "0").Err()
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
