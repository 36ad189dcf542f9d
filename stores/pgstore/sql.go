package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/idemkit/idem"
)

// openTimeout bounds the one connection that NewSQL makes.
const openTimeout = 10 * time.Second

// NewSQL is New for applications on database/sql with pgx's driver, github.com/jackc/pgx/v5/stdlib; a handle of any other driver is idem.ErrInvalid. It borrows a
// connection once, to learn the database's name. Guarded work takes its transaction by SQLTx or Tx, which are the same one.
//
// Renewals, and looking into a commit whose reply was lost, use connections beside the handle, made with the settings of the connection that was borrowed last; hooks of
// stdlib.OpenDB do not run for them. The handle stays the caller's.
func NewSQL(db *sql.DB, options Options) (*Store, error) {
	chosen, err := options.names()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	handle, err := openHandle(ctx, db)
	if err != nil {
		return nil, err
	}
	return newStore(handle, handle.config().Database, chosen), nil
}

// MigrateSQL is Migrate for a handle that NewSQL takes. It uses up to three connections beside the handle's.
func MigrateSQL(ctx context.Context, db *sql.DB, options Options) error {
	chosen, err := options.names()
	if err != nil {
		return err
	}
	handle, err := openHandle(ctx, db)
	if err != nil {
		return err
	}
	return chosen.migrate(ctx, stdlib.OpenDB(*handle.config()))
}

// handle is the source that is a *sql.DB.
type handle struct {
	db     *sql.DB
	latest atomic.Pointer[pgx.Conn] // for its settings only
}

func openHandle(ctx context.Context, db *sql.DB) (*handle, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: pgstore needs a *sql.DB", idem.ErrInvalid)
	}
	h := &handle{db: db}
	if _, ok := db.Driver().(*stdlib.Driver); !ok {
		return nil, foreign(db.Driver())
	}
	borrowed, err := h.borrow(ctx)
	if err != nil {
		return nil, failed(ctx, "connect", err)
	}
	borrowed.release()
	return h, nil
}

func foreign(driver any) error {
	return fmt.Errorf("%w: the *sql.DB is one of %T; the ledger works with pgx's driver, github.com/jackc/pgx/v5/stdlib", idem.ErrInvalid, driver)
}

func (h *handle) config() *pgx.ConnConfig { return h.latest.Load().Config() }

func (h *handle) connect(ctx context.Context) (*pgx.Conn, error) { return connect(ctx, h.config()) }

func (h *handle) borrow(ctx context.Context) (loan, error) {
	conn, err := h.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &sqlLoan{conn: conn}
	err = conn.Raw(func(driverConn any) error {
		own, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return foreign(driverConn)
		}
		l.link = own.Conn()
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	h.latest.Store(l.link)
	return l, nil
}

// sqlLoan is a loan from a *sql.DB. Its transaction is begun and ended by database/sql, which knows what statements and rows it has given out and closes them.
type sqlLoan struct {
	conn *sql.Conn
	link *pgx.Conn
	tx   *sql.Tx // of the work, if it has begun
	end  context.CancelFunc
}

// use keeps database/sql away meanwhile: rows that somebody left open are read on the same connection.
func (l *sqlLoan) use(f func(*pgx.Conn) error) error {
	var failure error
	err := l.conn.Raw(func(any) error {
		failure = f(l.link)
		return nil
	})
	if err != nil {
		return err
	}
	return failure
}

// begin lets the transaction outlive ctx. pgx's begins with a statement that does nothing, within it.
func (l *sqlLoan) begin(ctx context.Context) (pgx.TxOptions, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	tx, err := l.conn.BeginTx(life, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		end()
		return pgx.TxOptions{}, err
	}
	l.tx, l.end = tx, end
	if !stop() {
		return pgx.TxOptions{}, ctx.Err()
	}
	return pgx.TxOptions{BeginQuery: "SELECT 1"}, nil
}

// commit waits for a statement of the work that is still under way, as long as ctx allows.
func (l *sqlLoan) commit(ctx context.Context, last *pgx.Batch) (broken bool, err error) {
	stop := context.AfterFunc(ctx, l.breakOff)
	defer stop()
	err = l.use(func(c *pgx.Conn) (err error) {
		broken, err = sendLast(ctx, c, last)
		return err
	})
	if err != nil {
		return broken, err
	}
	err = l.tx.Commit()
	return l.link.IsClosed(), err
}

// rollback closes what rows are open, and the link where that takes too long.
func (l *sqlLoan) rollback(ctx context.Context) {
	if l.tx != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		stop := context.AfterFunc(bounded, l.breakOff)
		_ = l.tx.Rollback() // abort sees what came of it
		stop()
		l.end()
		l.tx = nil
	}
	_ = l.use(func(c *pgx.Conn) error {
		abort(ctx, c)
		return nil
	})
}

func (l *sqlLoan) breakOff() {
	l.end()
	hangUp(l.link)
}

func (l *sqlLoan) release() {
	if l.end != nil {
		l.end()
	}
	_ = l.conn.Close() // back to the handle
}

// hangUp breaks the link under a connection that somebody else is using.
func hangUp(conn *pgx.Conn) { _ = conn.PgConn().Conn().Close() }
