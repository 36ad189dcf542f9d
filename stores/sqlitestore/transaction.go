package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// rollbackTimeout bounds what is done after a failure, whose own context may have ended.
const rollbackTimeout = 5 * time.Second

// bounded is a context for cleaning up: it outlives ctx, but not for long.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
}

// rollBack ends whatever transaction the connection may be in. A connection that refuses is closed for good, which ends it too.
func rollBack(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil && primaryCode(err) != sqlite3.SQLITE_ERROR {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// transaction is a write transaction. It does not end with the context that it was begun under.
type transaction struct {
	*sql.Tx
	end     context.CancelFunc
	callers bool // the caller's own, maybe of another handle, which does not take the store's prepared statements
}

// begin takes the write lock, whatever _txlock of the handle says, and waits for it as long as the handle's busy timeout and ctx allow.
func (s *Store) begin(ctx context.Context) (*transaction, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	sqlTx, err := s.db.BeginTx(life, nil)
	if err != nil {
		stop()
		end()
		return nil, fmt.Errorf("sqlitestore: begin: %w", ended(ctx, err))
	}
	tx := &transaction{Tx: sqlTx, end: end}
	// A statement that may write takes the lock although it changes nothing.
	_, err = s.exec(ctx, tx, s.sql.lock)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		tx.rollback()
		return nil, fmt.Errorf("sqlitestore: begin: %w", ended(ctx, err))
	}
	return tx, nil
}

// ended prefers the context's own error to what its end did to a statement.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	return err
}

// alive reports whether the transaction is still open in SQLite, which undoes one by itself on some errors. It waits for nothing.
func (t *transaction) alive(ctx context.Context) bool {
	_, err := t.ExecContext(context.WithoutCancel(ctx), "BEGIN")
	return primaryCode(err) == sqlite3.SQLITE_ERROR // cannot start a transaction within a transaction
}

func (t *transaction) commit() error {
	defer t.end()
	return t.Commit()
}

// rollback closes open rows too. It waits for a statement that is running. An error means that the transaction has ended already.
func (t *transaction) rollback() {
	defer t.end()
	_ = t.Rollback()
}
