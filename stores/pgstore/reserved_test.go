package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem/internal/testkit"
)

func idleReserved(t *testing.T, after time.Duration) *reserved {
	t.Helper()
	url := testkit.Postgres(t).URL()
	r := newReserved(func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, url) })
	r.after = after
	t.Cleanup(r.close)
	return r
}

func (r *reserved) isOpen() bool {
	<-r.turn
	defer r.pass()
	return r.conn != nil
}

func TestReservedConnectionClosesWhenIdle(t *testing.T) {
	t.Parallel()
	r := idleReserved(t, 20*time.Millisecond)
	for range 2 {
		if err := r.use(t.Context(), func(c *pgx.Conn) error { return c.Ping(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 5*time.Second, "it is closed", func() bool { return !r.isOpen() })
	}
}

func TestReservedConnectionServesOneAtATime(t *testing.T) {
	t.Parallel()
	r := idleReserved(t, time.Minute)
	busy, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- r.use(t.Context(), func(*pgx.Conn) error {
			close(busy)
			<-release
			return nil
		})
	}()
	<-busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.use(ctx, func(*pgx.Conn) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a second user: %v, want to wait until its context ends", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReservedCommandThatFailsIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := idleReserved(t, time.Minute)
	refusal, calls := errors.New("refused"), 0
	for range 2 {
		err := r.use(t.Context(), func(*pgx.Conn) error { calls++; return refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("use: %v", err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls, want 2: the connection is as good as before", calls)
	}
}
