package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/idemkit/idem/stores/sqlitestore"
)

// OnSQLite returns the shop's tables beside a sqlitestore ledger on the same handle, which sqlitestore.Open must have opened, and makes those
// that are missing. The handle stays the caller's.
func OnSQLite(ctx context.Context, db *sql.DB) (*Storage, error) {
	plain := patient{lite{db}}
	if _, err := plain.exec(ctx, "BEGIN IMMEDIATE;"+schema+"COMMIT"); err != nil {
		return nil, fmt.Errorf("shop: making the tables: %w", err)
	}
	guarded := func(ctx context.Context) (session, error) {
		tx, err := sqlitestore.Tx(ctx)
		return lite{tx}, err
	}
	return &Storage{plain: plain, guarded: guarded, now: time.Now}, nil
}

// lite is a handle or a transaction.
type lite struct {
	conn interface {
		ExecContext(ctx context.Context, statement string, arguments ...any) (sql.Result, error)
		QueryContext(ctx context.Context, statement string, arguments ...any) (*sql.Rows, error)
	}
}

// numbered: SQLite's $1 is a name, its ?1 is a number.
func numbered(statement string) string { return strings.ReplaceAll(statement, "$", "?") }

func (l lite) exec(ctx context.Context, statement string, arguments ...any) (int64, error) {
	result, err := l.conn.ExecContext(ctx, numbered(statement), arguments...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (l lite) query(ctx context.Context, statement string, each func(scanner) error, arguments ...any) error {
	rows, err := l.conn.QueryContext(ctx, numbered(statement), arguments...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// patient repeats a write that met another writer: a transfer may hold its transaction for longer than SQLite itself waits.
type patient struct{ lite }

func (p patient) exec(ctx context.Context, statement string, arguments ...any) (int64, error) {
	for {
		n, err := p.lite.exec(ctx, statement, arguments...)
		var failure *sqlite.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &failure) || failure.Code()&0xff != sqlite3.SQLITE_BUSY {
			return n, err
		}
	}
}
