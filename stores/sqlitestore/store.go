package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idemkit/idem"
)

// Store is the ledger. It implements idem.Ledger, keeps no goroutine running and needs no closing; the handle is the caller's. It is safe for
// concurrent use.
type Store struct {
	db   *sql.DB
	sql  statements
	now  func() time.Time
	name string
	gate gate

	ready   atomic.Pointer[prepared]
	warming sync.Mutex
}

var _ idem.Ledger = (*Store)(nil)

var (
	// ErrNested says that a call would wait for the transaction of the very work that makes it.
	ErrNested = errors.New("sqlitestore: the work's own transaction is open in this context, and SQLite has one writer; " +
		"make this call before Tx, or after the work")
	// ErrSettings says that a handle's settings would let the ledger lose records or block its readers; Open gives one that has the right ones.
	ErrSettings = errors.New("sqlitestore: the handle's settings are not a ledger's")
)

// New returns the ledger in a database that Migrate has prepared. It asks the handle where the file is and for its settings: journal_mode must be WAL and
// synchronous FULL or EXTRA on every connection, as Open sets them, or it returns ErrSettings. The handle must not be limited to one
// connection, for reading goes on beside a transaction. ErrTable.
func New(db *sql.DB, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	file, err := inspect(ctx, db)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, sql: o.statements(), now: o.Now, name: "sqlite:" + file + "#" + o.Table}, nil
}

// inspect returns the absolute path of the database's file.
func inspect(ctx context.Context, db *sql.DB) (file string, err error) {
	var journal string
	var synchronous int
	row := db.QueryRowContext(ctx, `SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous),
		(SELECT file FROM pragma_database_list WHERE name = 'main')`)
	if err := row.Scan(&journal, &synchronous, &file); err != nil {
		return "", fmt.Errorf("sqlitestore: reading the handle's settings: %w", err)
	}
	const full = 2
	switch {
	case journal != "wal":
		return "", fmt.Errorf("%w: journal_mode is %s, not wal", ErrSettings, journal)
	case synchronous < full:
		return "", fmt.Errorf("%w: synchronous is %d; FULL is %d", ErrSettings, synchronous, full)
	case db.Stats().MaxOpenConnections == 1:
		return "", fmt.Errorf("%w: it is limited to one connection", ErrSettings)
	}
	return file, nil
}

// Name is "sqlite:<absolute path>#<table>".
func (s *Store) Name() string { return s.name }

// Ping reports whether the table can be read.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.db.QueryRowContext(ctx, s.sql.ping).Scan(&one); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("sqlitestore: %w", unmigrated(ended(ctx, err)))
	}
	return nil
}

// Lookup reads beside the writer. A claim whose renewal waits for a transaction of this process counts as live. Where the record bears
// the request id and another key, its Key is what the columns tell: parts too long or too strange for a column are digests.
func (s *Store) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	f, err := s.find(ctx, nil, q)
	if err != nil {
		return idem.Record{}, err
	}
	r := f.byKey
	if r == nil {
		r = f.byRequestID
	}
	if r == nil {
		return idem.Record{}, idem.ErrNotFound
	}
	return s.record(r, q)
}

// write runs change in a transaction of its own, after the renewals that wait. Nothing is written when it returns an error, unless that is
// the commit's, which leaves it open.
func (s *Store) write(ctx context.Context, change func(*transaction) error) error {
	if err := s.enter(ctx, false, nil); err != nil {
		return err
	}
	defer s.leave(ctx)
	return s.writeHolding(ctx, change)
}

// enter waits for the gate; not for one that this context's own work holds.
func (s *Store) enter(ctx context.Context, urgent bool, onQuit func()) error {
	if s.openIn(ctx) != nil {
		return ErrNested
	}
	return s.gate.enter(ctx, urgent, onQuit)
}

// leave hands the gate on. Renewals that were noted since are written first; when that fails, whoever comes next tries again.
func (s *Store) leave(ctx context.Context) {
	if s.gate.leave(false) {
		return
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	for !s.gate.leave(false) {
		if err := s.writeHolding(ctx, func(*transaction) error { return nil }); err != nil {
			s.gate.leave(true)
			return
		}
	}
}

func (s *Store) writeHolding(ctx context.Context, change func(*transaction) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	renewed, err := s.renewPending(ctx, tx)
	if err == nil {
		err = change(tx)
	}
	if err != nil {
		tx.rollback()
		return ended(ctx, err)
	}
	if err := tx.commit(); err != nil {
		return fmt.Errorf("sqlitestore: commit: %w", err)
	}
	s.gate.drop(renewed...)
	return nil
}

// renewPending writes the renewals that wait. They are dropped once the transaction is committed, not before.
func (s *Store) renewPending(ctx context.Context, tx *transaction) ([]idem.Claim, error) {
	claims := s.gate.renewals()
	_, err := s.renew(ctx, tx, claims)
	return claims, err
}
