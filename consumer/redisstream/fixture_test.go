package redisstream_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
)

const minIdle = 600 * time.Millisecond

func config(stream string, concurrency int) redisstream.Config {
	return redisstream.Config{
		Stream: stream, Concurrency: concurrency, MinIdle: minIdle, Reconnect: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
}

// durable are redis-server's arguments for a Redis that keeps what it confirmed.
func durable() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }

// newLedger returns a ledger in a file that other processes can open, and the file's path.
func newLedger(t testing.TB) (*sqlitestore.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := sqlitestore.Migrate(context.Background(), db, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ledger, path
}

// crash runs a consumer in another process until its handler has begun, and kills it.
func crash(t testing.TB, name, addr, stream, ledger string, variables ...string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program)
	cmd.Env = append(os.Environ(), nameVariable+"="+name, addrVariable+"="+addr, streamVariable+"="+stream, ledgerVariable+"="+ledger)
	cmd.Env = append(cmd.Env, variables...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "begun" {
		t.Errorf("the process said %q: %v", line, err)
	}
	_ = cmd.Process.Kill()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("the process was not killed: %v", err)
	}
}

// pending counts the entries that the group has not had, and those that it has not acknowledged.
func pending(ctx context.Context, rdb redis.UniversalClient, stream, group string) (int, error) {
	groups, err := rdb.XInfoGroups(ctx, stream).Result()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "ERR no such key"):
		return 0, nil
	case err != nil:
		return 0, err
	}
	for _, g := range groups {
		if g.Name != group {
			continue
		}
		unread, err := rdb.XRange(ctx, stream, "("+g.LastDeliveredID, "+").Result()
		return int(g.Pending) + len(unread), err
	}
	n, err := rdb.XLen(ctx, stream).Result()
	return int(n), err
}

// stream is one test's stream with a consumer's adapter on it.
type stream struct {
	*testing.T
	rdb    *redis.Client
	name   string
	ledger idem.Ledger
}

func newStream(t *testing.T, rdb *redis.Client, ledger idem.Ledger) *stream {
	return &stream{T: t, rdb: rdb, name: "orders-" + idem.NewOwner(), ledger: ledger}
}

func (s *stream) consumer(handler consumer.Handler, options ...consumer.Option) *consumer.Consumer {
	s.Helper()
	options = append([]consumer.Option{
		consumer.Backoff(20*time.Millisecond, 100*time.Millisecond), consumer.Lease(time.Second), consumer.Logger(slog.New(slog.DiscardHandler)),
	}, options...)
	c, err := consumer.New(s.ledger, "points", handler, options...)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// run runs an adapter; the returned function ends it.
func (s *stream) run(c *consumer.Consumer, change func(*redisstream.Config)) (adapter *redisstream.Adapter, stop func()) {
	s.Helper()
	settings := config(s.name, 1)
	if change != nil {
		change(&settings)
	}
	adapter, err := redisstream.New(s.rdb, settings)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- adapter.Run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop)
	return adapter, stop
}

func (s *stream) publish(m consumer.Message) string {
	s.Helper()
	id, err := redisstream.Publish(context.Background(), s.rdb, s.name, m)
	if err != nil {
		s.Fatal(err)
	}
	return id
}

func (s *stream) drained() {
	s.Helper()
	testkit.Eventually(s, 30*time.Second, "nothing left", func() bool {
		n, err := pending(context.Background(), s.rdb, s.name, "points")
		return err == nil && n == 0
	})
}
