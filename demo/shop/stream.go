package shop

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
)

// maxStream is how many events the stream keeps, about. One that is cut off, or flushed, is published again from the outbox.
const maxStream = 10_000

// streamLife is how long a stream stays to which nothing is added: like everything in Redis it has an end.
const streamLife = idem.DefaultRetention

// Stream is a Broker in Redis, for processes that share a ledger. Two ledgers have two streams: points are granted where the order is.
type Stream struct {
	rdb    redis.UniversalClient
	config redisstream.Config
}

// NewStream sends nothing yet; the client stays the caller's. minIdle is how long a process must have been silent before its events go to another.
func NewStream(rdb redis.UniversalClient, ledger idem.Ledger, minIdle time.Duration, logger *slog.Logger) *Stream {
	return &Stream{rdb, redisstream.Config{
		Stream: "idem-demo:orders:" + idem.Digest(ledger.Name()), Concurrency: 2, MinIdle: max(minIdle, time.Second), MaxDead: maxStream, Logger: logger,
	}}
}

// Publish adds the message to the stream.
func (s *Stream) Publish(ctx context.Context, m consumer.Message) error {
	fields, err := redisstream.Fields(m)
	if err != nil {
		return err
	}
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XAdd(ctx, &redis.XAddArgs{Stream: s.config.Stream, MaxLen: maxStream, Approx: true, Values: fields})
		p.Expire(ctx, s.config.Stream, streamLife)
		return nil
	})
	return err
}

// Run consumes until ctx ends, beside any number of other processes.
func (s *Stream) Run(ctx context.Context, c *consumer.Consumer) error {
	adapter, err := redisstream.New(s.rdb, s.config)
	if err != nil {
		return err
	}
	// The adapter makes the stream, too, and says what is wrong with Redis; this one has a time to live from the beginning.
	_, _ = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XGroupCreateMkStream(ctx, s.config.Stream, c.Name(), "0")
		p.Expire(ctx, s.config.Stream, streamLife)
		return nil
	})
	return adapter.Run(ctx, c)
}
