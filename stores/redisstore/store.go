// Package redisstore keeps idem's tokens and records in Redis 5 or later: alone, behind Sentinel, or as a cluster.
//
// One call is one Lua script and one round trip; a call that follows a SCRIPT FLUSH or a fail-over takes one more, to load it. The keys of one
// operation are
//
//	<prefix>:1:{<digest of the key>}:r        the record, a hash
//	<prefix>:1:{<digest of the key>}:b        the kept result, where it is kept for a shorter time than the record
//	<prefix>:1:{<digest of the key>}:t:<id>   a token; its value is the request id
//
// and lie in one slot. Every one of them has a time to live. Leases are fields of the record, in microseconds of the server's clock: in
// milliseconds a lease would end up to one of them before its holder thinks so.
//
// Redis may forget anything at any moment and loses what a primary had not yet replicated, so a second execution is possible where no ledger
// stands behind this store. Extend and Complete write a vanished record again, Release does not: absent and failed answer alike.
//
// go-redis repeats a command whose reply was lost; every script recognises the repetition by owner and attempt.
//
// After a fail-over a connection may still lead to what was the primary. It answers with a success that it knows of, which is final, and refuses all else
// with READONLY, reading included, so that go-redis drops the connection.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
)

// Options are the settings of a Store. The zero value is ready for use.
type Options struct {
	// Prefix stands in front of every key, so that several installations can share one Redis. Default "idem". Two whose ledgers have equal names, such as
	// databases called alike on two servers, need different ones: each would clear away what the other's ledger decided.
	Prefix string
}

// Store is an idem.TokenStore, safe for concurrent use. It holds no state of its own, starts nothing and closes nothing.
type Store struct {
	rdb     redis.UniversalClient
	prefix  string
	scripts scripts
}

var _ idem.TokenStore = (*Store)(nil)

// New returns a store on the caller's client, which stays the caller's to close. No command is sent.
//
// A context's deadline bounds calls under way only where the client has ContextTimeoutEnabled; otherwise its own time-outs do. A ClusterClient
// should have a ClusterStateReloadInterval of about a second: at go-redis' default of sixty it follows a dead primary that late.
//
// Beside a ledger a Redis that is away must not hold requests up, as it does with go-redis' defaults: five seconds for a connection, five attempts
// at it, three repetitions of a command. What package server sets:
//
//	redis.NewClient(&redis.Options{
//		Addr:        "127.0.0.1:6379",
//		DialTimeout: time.Second, DialerRetries: 1,
//		ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: 2 * time.Second,
//		MaxRetries: 1, MinRetryBackoff: 8 * time.Millisecond, MaxRetryBackoff: 128 * time.Millisecond,
//		ContextTimeoutEnabled:    true,
//		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // for Redis Enterprise alone
//	})
func New(rdb redis.UniversalClient, options Options) *Store {
	prefix := options.Prefix
	if prefix == "" {
		prefix = "idem"
	}
	// A brace in front of ours would be the hash tag.
	prefix = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(prefix)
	return &Store{rdb: rdb, prefix: prefix, scripts: newScripts()}
}

// Ping reports whether Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	return wrap(ctx, "ping", s.rdb.Ping(ctx).Err())
}

// keys are the record's and its result's.
func (s *Store) keys(key idem.Key) []string {
	base := s.base(key)
	return []string{base + "r", base + "b"}
}

func (s *Store) tokenKey(key idem.Key, tokenID string) string { return s.base(key) + "t:" + tokenID }

// The 1 is the format of the keys; see idem.Format for that of the records.
func (s *Store) base(key idem.Key) string { return s.prefix + ":1:{" + key.Digest() + "}:" }

// wrap adds the context's own error where go-redis reports only the time-out that came of it.
func wrap(ctx context.Context, command string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("redisstore: %s: %w: %w", command, ended, err)
	}
	return fmt.Errorf("redisstore: %s: %w", command, err)
}
