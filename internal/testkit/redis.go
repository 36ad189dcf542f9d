package testkit

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisServer is a private redis-server without persistence, unless its arguments say otherwise.
type RedisServer struct {
	Addr string // "host:port" on the loopback interface

	program string
	args    []string
	process *Process
}

// Redis starts a redis-server on a free loopback port in a temporary folder, with further arguments such as "--appendonly", "yes". It
// answers when Redis returns, and ends with the test.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	program, dir := Binary(t, "redis-server", "redis-server"), t.TempDir()
	for range 5 {
		port := strconv.Itoa(FreePort(t))
		server := &RedisServer{Addr: net.JoinHostPort("127.0.0.1", port), program: program}
		server.args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", ""}, args...)
		if server.start(t) {
			return server
		}
		t.Logf("redis-server ended, its port may be taken: %s", server.process.Output())
	}
	t.Fatal("redis-server does not start")
	return nil
}

// start reports false where the program ended instead of answering.
func (s *RedisServer) start(t testing.TB) bool {
	t.Helper()
	s.process = Start(t, exec.CommandContext(context.Background(), s.program, s.args...), syscall.SIGTERM)
	rdb := redis.NewClient(RedisOptions(s.Addr))
	defer func() { _ = rdb.Close() }()
	answered := false
	Eventually(t, 20*time.Second, "redis-server answers at "+s.Addr, func() bool {
		select {
		case <-s.process.Done():
			return true
		default:
		}
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Addr)
		if err != nil {
			return false
		}
		_ = conn.Close()
		answered = rdb.Ping(context.Background()).Err() == nil
		return answered
	})
	return answered
}

// Kill ends the server as a crash does (SIGKILL); Restart starts it again.
func (s *RedisServer) Kill() { s.process.End(syscall.SIGKILL) }

// Stop ends the server in order (SIGTERM); Restart starts it again.
func (s *RedisServer) Stop() { s.process.End(syscall.SIGTERM) }

// Signal sends a signal, such as SIGSTOP and SIGCONT to freeze the server.
func (s *RedisServer) Signal(signal syscall.Signal) error { return s.process.Signal(signal) }

// Restart kills the server, if it runs, and starts it again on the same port, in the same folder. All data is gone where no argument of Redis
// made it durable.
func (s *RedisServer) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	if !s.start(t) {
		t.Fatalf("redis-server does not start again: %s", s.process.Output())
	}
}

// Client returns a client that is closed with the test.
func (s *RedisServer) Client(t testing.TB) *redis.Client {
	t.Helper()
	return RedisClient(t, RedisOptions(s.Addr))
}

// FlushAll forgets everything, scripts excepted.
func (s *RedisServer) FlushAll(t testing.TB) {
	t.Helper()
	rdb := redis.NewClient(RedisOptions(s.Addr))
	defer func() { _ = rdb.Close() }()
	if err := rdb.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
}

// RedisClient returns a client with these options that is closed with the test.
func RedisClient(t testing.TB, options *redis.Options) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// RedisOptions has every time limit, retry and backoff set, so that a fault shows within a second or two whatever go-redis' defaults are.
func RedisOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr:                     addr,
		DialTimeout:              2 * time.Second,
		DialerRetries:            1,
		ReadTimeout:              5 * time.Second,
		WriteTimeout:             5 * time.Second,
		PoolTimeout:              10 * time.Second,
		PoolSize:                 16,
		MaxRetries:               3,
		MinRetryBackoff:          time.Millisecond,
		MaxRetryBackoff:          20 * time.Millisecond,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
