package sqlitestore

import (
	"context"
	"database/sql"
)

// prepared are the statements of every request, by their text, parsed once a connection. Measured: parsing is a third of a claim's time on modernc.org/sqlite.
// database/sql closes them with the handle.
type prepared map[string]*sql.Stmt

// warm prepares the statements with the first request, not in New, which may come before Migrate. It needs a connection, and so must not be
// called by who holds the writer. Where it fails, the statements run unprepared and say why themselves.
func (s *Store) warm(ctx context.Context) {
	if s.ready.Load() != nil || !s.warming.TryLock() {
		return
	}
	defer s.warming.Unlock()
	if s.ready.Load() != nil {
		return
	}
	ready := make(prepared)
	for _, text := range []string{s.sql.lock, s.sql.find, s.sql.claim, s.sql.extend, s.sql.complete} {
		stmt, err := s.db.PrepareContext(ctx, text) //nolint:sqlclosecheck // kept as long as the handle, which closes it
		if err != nil {
			for _, done := range ready {
				_ = done.Close()
			}
			return
		}
		ready[text] = stmt
	}
	s.ready.Store(&ready)
}

func (s *Store) preparedFor(text string, tx *transaction) *sql.Stmt {
	if tx != nil && tx.callers {
		return nil
	}
	if ready := s.ready.Load(); ready != nil {
		return (*ready)[text]
	}
	return nil
}

// exec runs one of the store's statements in the transaction.
func (s *Store) exec(ctx context.Context, tx *transaction, text string, args ...any) (sql.Result, error) {
	if stmt := s.preparedFor(text, tx); stmt != nil {
		return tx.StmtContext(ctx, stmt).ExecContext(ctx, args...) //nolint:sqlclosecheck // the end of the transaction closes its own form of the statement
	}
	return tx.ExecContext(ctx, text, args...)
}

// query runs one of the store's statements in the transaction or, where that is nil, beside the writer.
func (s *Store) query(ctx context.Context, tx *transaction, text string, args ...any) (*sql.Rows, error) {
	stmt := s.preparedFor(text, tx) //nolint:sqlclosecheck // used by every request, closed with the handle
	switch {
	case stmt != nil && tx != nil:
		return tx.StmtContext(ctx, stmt).QueryContext(ctx, args...) //nolint:sqlclosecheck // as in exec
	case stmt != nil:
		return stmt.QueryContext(ctx, args...)
	case tx != nil:
		return tx.QueryContext(ctx, text, args...)
	}
	return s.db.QueryContext(ctx, text, args...)
}
