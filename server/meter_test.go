package server_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// turnstile is a hook that counts round trips to Redis - a command, or a pipeline of them - and holds those that are too many.
type turnstile struct {
	mu       sync.Mutex
	passed   int64
	admitted int64         // below 0: all
	opened   chan struct{} // closed: all
	refused  int64         // round trips that the answer waited for, although they were too many
}

func newTurnstile() *turnstile { return &turnstile{admitted: -1} }

// admit lets so many through and holds the next until open.
func (g *turnstile) admit(count int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed, g.admitted, g.opened, g.refused = 0, count, make(chan struct{}), 0
}

// open lets all through.
func (g *turnstile) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitted = -1
	close(g.opened)
}

// since tells how many have come since admit, and how many of them the answer waited for in vain.
func (g *turnstile) since() (passed, refused int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed, g.refused
}

var errTooMany = errors.New("the answer waits for another round trip to Redis")

// pass fails a round trip that nothing but the answer could let through.
func (g *turnstile) pass() error {
	g.mu.Lock()
	g.passed++
	held, opened := g.admitted >= 0 && g.passed > g.admitted, g.opened
	g.mu.Unlock()
	if !held {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-time.After(5 * time.Second):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused++
	return errTooMany
}

func (g *turnstile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *turnstile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := g.pass(); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (g *turnstile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := g.pass(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

// pgMeter counts round trips to Postgres: a reply that comes after something was sent. Whatever is sent is counted, by way of a pipeline, a
// batch or a single statement.
type pgMeter struct{ trips atomic.Int64 }

func (m *pgMeter) configure(c *pgxpool.Config) {
	dial := c.ConnConfig.DialFunc
	c.MaxConns = 1 // so that the call that prepares the statements does so for all that follow
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &metered{Conn: conn, meter: m}, err
	}
}

type metered struct {
	net.Conn
	meter *pgMeter
	sent  atomic.Bool
}

func (c *metered) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.sent.Swap(false) {
		c.meter.trips.Add(1)
	}
	return n, err
}
