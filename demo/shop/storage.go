package shop

import (
	"context"
	_ "embed" // the schema is part of the program
	"errors"
	"time"
)

// Embedding fills package variables only.
//
//go:embed schema.sql
var schema string

// Storage is the shop's tables, in the database that holds the ledger. It is safe for concurrent use. OnPostgres and OnSQLite make one.
type Storage struct {
	// plain commits each statement on its own.
	plain session
	// guarded is the transaction of the guarded work whose context this is.
	guarded func(ctx context.Context) (session, error)
	now     func() time.Time
}

// session runs statements. Parameters are $1, $2 and so on in both databases.
type session interface {
	exec(ctx context.Context, statement string, arguments ...any) (rows int64, err error)
	query(ctx context.Context, statement string, each func(scan scanner) error, arguments ...any) error
}

// scanner reads the columns of one row.
type scanner func(into ...any) error

var (
	errNotFound = errors.New("shop: there is no such row")
)

// first reads one row; errNotFound where there is none.
func first(ctx context.Context, s session, statement string, into []any, arguments ...any) error {
	found := false
	err := s.query(ctx, statement, func(scan scanner) error {
		found = true
		return scan(into...)
	}, arguments...)
	if err == nil && !found {
		return errNotFound
	}
	return err
}

func (s *Storage) millis() int64 { return s.now().UnixMilli() }
