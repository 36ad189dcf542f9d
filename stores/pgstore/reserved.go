package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// idleTime is how long the reserved connection stays open without a renewal.
const idleTime = time.Minute

var errClosed = errors.New("the store is closed")

// reserved is a connection for one user at a time: opened when first used, again after a failure, closed when idle.
type reserved struct {
	open  func(context.Context) (*pgx.Conn, error)
	after time.Duration

	turn   chan struct{} // holds the one token; whoever has it may touch what follows
	conn   *pgx.Conn
	used   time.Time
	idle   *time.Timer
	closed bool
}

func newReserved(open func(context.Context) (*pgx.Conn, error)) *reserved {
	r := &reserved{open: open, after: idleTime, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// use runs a command that may be repeated. A connection that broke since its last use is replaced once.
func (r *reserved) use(ctx context.Context, command func(*pgx.Conn) error) error {
	select {
	case <-r.turn:
		defer r.pass()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.closed {
		return errClosed
	}
	defer r.rest()
	seasoned := r.conn != nil
	err := r.try(ctx, command)
	if err != nil && seasoned && r.conn == nil && ctx.Err() == nil {
		err = r.try(ctx, command)
	}
	return err
}

func (r *reserved) try(ctx context.Context, command func(*pgx.Conn) error) error {
	if r.conn == nil {
		conn, err := r.open(ctx)
		if err != nil {
			return err
		}
		r.conn = conn
	}
	err := command(r.conn)
	if r.conn.IsClosed() {
		r.conn = nil
	}
	return err
}

// rest arms the timer that closes an idle connection.
func (r *reserved) rest() {
	r.used = time.Now()
	switch {
	case r.conn == nil:
	case r.idle == nil:
		r.idle = time.AfterFunc(r.after, r.retire)
	default:
		r.idle.Reset(r.after)
	}
}

// retire closes the connection unless it was used while the timer fired.
func (r *reserved) retire() {
	<-r.turn
	defer r.pass()
	if r.conn != nil && time.Since(r.used) >= r.after {
		disconnect(context.Background(), r.conn)
		r.conn = nil
	}
}

func (r *reserved) close() {
	<-r.turn
	defer r.pass()
	r.closed = true
	if r.idle != nil {
		r.idle.Stop()
	}
	if r.conn != nil {
		disconnect(context.Background(), r.conn)
		r.conn = nil
	}
}

func (r *reserved) pass() { r.turn <- struct{}{} }
