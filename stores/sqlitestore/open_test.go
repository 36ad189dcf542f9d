package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

func TestOpenSettings(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "foreign_keys": "1",
	} {
		// Two connections at once: a setting of one alone would show.
		for range 2 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
			}
		}
	}
}

func TestOpenTakesTheWriteLockAtBegin(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := db.BeginTx(soon(t), nil); !errors.Is(err, context.DeadlineExceeded) { // there is none
		t.Errorf("a second transaction: %v, want it to wait", err)
	}
	reading, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatalf("a reading transaction: %v", err)
	}
	if err := reading.Rollback(); err != nil {
		t.Error(err)
	}
}

func TestOpenPaths(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"plain": "a.db", "question mark": "a?mode=memory.db", "percent": "a%20b%2e.db", "fragment": "a#b.db",
		"spaces": "a b.db", "scheme": "file:a.db", "ampersand": "a&_synchronous=OFF.db", "letters": "订单é.db",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), file)
			db := openFile(t, path)
			if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file: %v", err)
			}
			store, err := sqlitestore.New(db, sqlitestore.Options{Table: "idempotent_record"})
			if err != nil {
				t.Fatal(err)
			}
			if want := "sqlite:" + path + "#idempotent_record"; store.Name() != want {
				t.Errorf("Name %q, want %q", store.Name(), want)
			}
		})
	}
	for name, path := range map[string]string{
		"empty": "", "in memory": ":memory:", "no such folder": filepath.Join(t.TempDir(), "no", "ledger.db"),
	} {
		if db, err := sqlitestore.Open(path); err == nil {
			t.Errorf("%s: opened", name)
			_ = db.Close()
		}
	}
}

func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			db, err := sqlitestore.Open(path)
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			defer db.Close()
			if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	calls.Wait()
}

// handle opens a file as an application might do by itself.
func handle(t *testing.T, path string, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String()+"?"+strings.Join(settings, "&"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestNewRefusesHandles(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settings    []string
		connections int
	}{
		"rollback journal": {[]string{"_synchronous=FULL"}, 0},
		"loses commits":    {[]string{"_journal_mode=WAL", "_synchronous=NORMAL"}, 0},
		"one connection":   {[]string{"_journal_mode=WAL", "_synchronous=FULL"}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := handle(t, filepath.Join(t.TempDir(), "ledger.db"), tt.settings...)
			db.SetMaxOpenConns(tt.connections)
			if _, err := sqlitestore.New(db, sqlitestore.Options{}); !errors.Is(err, sqlitestore.ErrSettings) {
				t.Fatalf("New: %v, want ErrSettings", err)
			}
		})
	}
	closed := handle(t, filepath.Join(t.TempDir(), "ledger.db"))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.New(closed, sqlitestore.Options{}); err == nil {
		t.Fatal("New took a closed handle")
	}
}

// The store takes the write lock by itself where the application's handle begins deferred transactions.
func TestDeferredHandle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	db := handle(t, f.path, "_journal_mode=WAL", "_synchronous=FULL", "_busy_timeout=5000")
	stores := []*sqlitestore.Store{f.ledger(db), f.another()}
	var calls sync.WaitGroup
	const each = 40
	for i := range 4 {
		calls.Go(func() {
			for range each {
				q := request(idem.NewOwner())
				answer, err := stores[i%2].Claim(t.Context(), q)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				if err := stores[i%2].Complete(t.Context(), answer.Claim, created()); err != nil {
					t.Errorf("Complete: %v", err)
				}
			}
		})
	}
	calls.Wait()
	f.records(4 * each)
}

func TestPing(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	store, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ping(t.Context()); err == nil {
		t.Error("a database without the table answers Ping")
	}
	if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Ping(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Ping under an ended context: %v", err)
	}
}
