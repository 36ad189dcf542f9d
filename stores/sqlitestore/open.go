package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	busyTimeout = 5 * time.Second
	openTimeout = 10 * time.Second
	// retryPause is how long a caller waits before it asks again for a lock that SQLite does not wait for by itself.
	retryPause = 5 * time.Millisecond
)

// Open returns a handle on the database file at path, made when missing, as the store wants it: write-ahead log, so that readers go on beside
// the writer; synchronous=FULL, so that a committed record outlives a power cut; a busy timeout of five seconds; foreign keys enforced; and
// transactions that take the write lock when they begin (those with sql.TxOptions.ReadOnly do not). path is a file's name and nothing else:
// "?", "%" and "file:" have no meaning in it. A database in memory is refused, for a ledger may not forget. The caller closes the handle.
func Open(path string) (*sql.DB, error) {
	name, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open %s: %w", path, err)
	}
	db.SetMaxIdleConns(8)
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	// The change to the write-ahead log needs the file for itself, and SQLite does not wait for that.
	if err := untilFree(ctx, func() error { return db.PingContext(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlitestore: open %s: %w", path, err), db.Close())
	}
	return db, nil
}

func dataSource(path string) (string, error) {
	if path == "" || path == ":memory:" {
		return "", fmt.Errorf("sqlitestore: open %q: name a file; a ledger in memory would forget", path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlitestore: open %s: %w", path, err)
	}
	file := url.URL{Path: filepath.ToSlash(absolute)}
	return fmt.Sprintf("file:%s?_busy_timeout=%d&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_txlock=immediate",
		file.EscapedPath(), busyTimeout.Milliseconds()), nil
}

// untilFree repeats call while it ends in SQLITE_BUSY, and returns that error when the context ends.
func untilFree(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !isBusy(err) {
			return err
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

func isBusy(err error) bool { return primaryCode(err) == sqlite3.SQLITE_BUSY }

// primaryCode is SQLite's result code without its extension; -1 where the error is not SQLite's.
func primaryCode(err error) int {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return -1
	}
	return failure.Code() & 0xff
}
