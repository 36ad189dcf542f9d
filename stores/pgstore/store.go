package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
)

// Store is a ledger in one table. All methods are safe for concurrent use.
type Store struct {
	source   source
	names    names
	sql      statements
	name     string
	renewals *reserved
}

var _ idem.Ledger = (*Store)(nil)

// New returns the ledger in the table that the options name; idem.ErrInvalid when they cannot. It does not connect: the table is missed, if at all, by Ping.
// The pool stays the caller's and is not closed with the store; Close, before it, ends the one connection that the store has beside it.
func New(connections *pgxpool.Pool, options Options) (*Store, error) {
	if connections == nil {
		return nil, fmt.Errorf("%w: pgstore.New needs a pool", idem.ErrInvalid)
	}
	chosen, err := options.names()
	if err != nil {
		return nil, err
	}
	return newStore(pool{connections}, connections.Config().ConnConfig.Database, chosen), nil
}

func newStore(from source, database string, chosen names) *Store {
	return &Store{
		source: from, names: chosen, sql: chosen.statements(), renewals: newReserved(from.connect),
		name: fmt.Sprintf("pg:%s.%s.%s", database, chosen.schema, chosen.table),
	}
}

// Close closes the connection that renewals use. The store must not renew leases afterwards.
func (s *Store) Close() { s.renewals.close() }

// Name is "pg:<database>.<schema>.<table>". The address is not part of it: one server has many.
func (s *Store) Name() string { return s.name }

// Ping reports whether the database answers, has the table, and takes writes: a standby is no ledger.
func (s *Store) Ping(ctx context.Context) error {
	var readOnly bool
	err := s.transact(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.ping).QueryRow(func(row pgx.Row) error { return row.Scan(&readOnly) })
	})
	if err != nil {
		return failed(ctx, "ping", err)
	}
	if readOnly {
		return failed(ctx, "ping", errReadOnly)
	}
	return nil
}

var errReadOnly = errors.New("the database is read-only; it is a standby, or default_transaction_read_only is on")

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
