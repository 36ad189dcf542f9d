package pgstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs that the store acts upon.
const (
	guardRaised      = "22012" // division_by_zero: the statement in front of COMMIT met no row
	uniqueViolation  = "23505"
	deadlockDetected = "40P01"
	lockNotAvailable = "55P03"
)

// lockWait is how long a command waits for a row that somebody is writing. Pipelines hold rows for one round trip, so whoever holds one longer works on it.
const lockWait = time.Second

// endTimeout bounds rolling back and saying goodbye, which must also happen after the caller's context has ended.
const endTimeout = 5 * time.Second

// transact runs what queue adds to a batch as one transaction in one round trip.
func (s *Store) transact(ctx context.Context, queue func(*pgx.Batch)) error {
	return s.use(ctx, func(c *pgx.Conn) error { return transactOn(ctx, c, queue) })
}

// use borrows a connection for f.
func (s *Store) use(ctx context.Context, f func(*pgx.Conn) error) error {
	borrowed, err := s.source.borrow(ctx)
	if err != nil {
		return err
	}
	defer borrowed.release()
	return borrowed.use(f)
}

func transactOn(ctx context.Context, conn *pgx.Conn, queue func(*pgx.Batch)) error {
	batch := &pgx.Batch{}
	run(batch, begin)
	queue(batch)
	run(batch, commit)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		abort(ctx, conn)
		return err
	}
	return nil
}

// run queues a statement for its effect. Its result is read explicitly: in the modes that send one message, a batch passes over the broken link that it meets
// in a result nobody reads, and reports something harmless of the next one.
func run(b *pgx.Batch, sql string, arguments ...any) {
	b.Queue(sql, arguments...).Exec(func(pgconn.CommandTag) error { return nil })
}

// abort rolls back what is open, or closes the connection when that cannot be known to have happened: a pool must not get it back half-way.
func abort(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() {
		return
	}
	link := conn.PgConn()
	if !link.IsBusy() && link.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if !link.IsBusy() {
		if _, err := conn.Exec(ctx, "ROLLBACK"); err == nil {
			return
		}
	}
	_ = conn.Close(ctx)
}

// disconnect closes a connection that is not a pool's.
func disconnect(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// state is the SQLSTATE of an error, empty where there is none.
func state(err error) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// decided reports whether the server answered with a refusal and lives on, so that the transaction is certainly rolled back, or was never asked.
func decided(err error) bool {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		return pgconn.SafeToRetry(err)
	}
	severity := refusal.SeverityUnlocalized
	if severity == "" {
		severity = refusal.Severity
	}
	return severity != "FATAL" && severity != "PANIC"
}

func count(rows *int64) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*rows = tag.RowsAffected()
		return nil
	}
}

// microseconds is how durations reach the server; never 0 for more than 0.
func microseconds(d time.Duration) int64 {
	if d > 0 && d < time.Microsecond {
		return 1
	}
	return d.Microseconds()
}

// setting is a duration for set_config, in whole milliseconds. 0 switches the limit off, so it is at least 1 where there is one.
func setting(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}
