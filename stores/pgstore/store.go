package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
)

// Store is a ledger in one table. All methods are safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	names    names
	sql      statements
	name     string
	renewals *reserved
}

var _ idem.Ledger = (*Store)(nil)

// New returns the ledger in the table that the options name; idem.ErrInvalid when they cannot. It does not connect: the table is missed, if at all, by Ping.
// The pool stays the caller's and is not closed with the store; Close, before it, ends the one connection that the store has beside it.
func New(pool *pgxpool.Pool, options Options) (*Store, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: pgstore.New needs a pool", idem.ErrInvalid)
	}
	chosen, err := options.names()
	if err != nil {
		return nil, err
	}
	store := &Store{pool: pool, names: chosen, sql: chosen.statements()}
	store.name = fmt.Sprintf("pg:%s.%s.%s", pool.Config().ConnConfig.Database, chosen.schema, chosen.table)
	store.renewals = newReserved(store.connect)
	return store, nil
}

// Close closes the connection that renewals use. The store must not renew leases afterwards.
func (s *Store) Close() { s.renewals.close() }

// Name is "pg:<database>.<schema>.<table>". The address is not part of it: one server has many.
func (s *Store) Name() string { return s.name }

// Ping reports whether the database answers and has the table.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, s.sql.ping); err != nil {
		return failed(ctx, "ping", err)
	}
	return nil
}

// Purge deletes up to limit finished records whose retention is over, oldest first, and returns how many. Rows that somebody holds are passed by.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var deleted int64
	err := s.transact(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.purge, limit).Exec(count(&deleted))
	})
	if err != nil {
		return 0, failed(ctx, "purge", err)
	}
	return int(deleted), nil
}

// connectTimeout applies to connections beside the pool, where the application has set none.
const connectTimeout = 5 * time.Second

// connect opens a connection that is not the pool's, as the pool would open it.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
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

// failed says which command did not get its answer. The context's error is always in it: a driver sometimes reports only the time-out that it caused.
func failed(ctx context.Context, command string, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("pgstore: %s: %w: %w", command, ended, err)
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable && command != "complete" { // where it may be a table of the work
		return fmt.Errorf("pgstore: %s: %w; run pgstore.Migrate", command, err)
	}
	return fmt.Errorf("pgstore: %s: %w", command, err)
}

// undefinedTable is undefined_table in PostgreSQL's table of error codes.
const undefinedTable = "42P01"
