package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// source is where a store's connections come from: a pgxpool or a *sql.DB.
type source interface {
	// borrow waits for a connection as long as ctx allows.
	borrow(ctx context.Context) (loan, error)
	// connect opens one that is not of those, made as they are.
	connect(ctx context.Context) (*pgx.Conn, error)
}

// loan is a borrowed connection, outside of any transaction when it comes and when it is released.
type loan interface {
	// use gives f the connection for itself.
	use(f func(*pgx.Conn) error) error
	// begin returns how pgx's transaction at READ COMMITTED begins on it. Only commit and rollback end it.
	begin(ctx context.Context) (pgx.TxOptions, error)
	// commit sends the last statements of the transaction that was begun, and commits. errGone: it was asked for nothing. broken: the link broke meanwhile.
	commit(ctx context.Context, last *pgx.Batch) (broken bool, err error)
	// rollback ends the transaction, or closes the connection when that cannot be known to have happened.
	rollback(ctx context.Context)
	release()
}

// pool is the source that is a pgxpool.
type pool struct{ *pgxpool.Pool }

func (p pool) borrow(ctx context.Context) (loan, error) {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pooled{conn}, nil
}

// connectTimeout applies to connections beside the source's, where the application has set none.
const connectTimeout = 5 * time.Second

func (p pool) connect(ctx context.Context) (*pgx.Conn, error) {
	config := p.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := connect(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if config.AfterConnect != nil {
		if err := config.AfterConnect(ctx, conn); err != nil {
			disconnect(ctx, conn)
			return nil, err
		}
	}
	return conn, nil
}

func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = connectTimeout
	}
	return pgx.ConnectConfig(ctx, config)
}

// pooled is a loan from a pgxpool.
type pooled struct{ conn *pgxpool.Conn }

func (p pooled) use(f func(*pgx.Conn) error) error { return f(p.conn.Conn()) }

func (p pooled) begin(context.Context) (pgx.TxOptions, error) {
	return pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, nil
}

// commit is one round trip with the statements.
func (p pooled) commit(ctx context.Context, last *pgx.Batch) (broken bool, err error) {
	run(last, commit)
	return sendLast(ctx, p.conn.Conn(), last)
}

func sendLast(ctx context.Context, conn *pgx.Conn, last *pgx.Batch) (broken bool, err error) {
	if conn.IsClosed() {
		return false, errGone
	}
	err = conn.SendBatch(ctx, last).Close()
	return conn.IsClosed(), err
}

func (p pooled) rollback(ctx context.Context) { abort(ctx, p.conn.Conn()) }

func (p pooled) release() { p.conn.Release() }
