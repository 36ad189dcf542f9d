package sqlitestore_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

func TestTableNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		table   string
		refused bool
	}{
		"default":             {"", false},
		"plain":               {"app_ledger2", false},
		"reserved word":       {"order", false},
		"capitals":            {"Select", false},
		"longest":             {strings.Repeat("a", 63), false},
		"too long":            {strings.Repeat("a", 64), true},
		"SQLite's own":        {"sqlite_sequence", true},
		"SQLite's, capitals":  {"SQLite_x", true},
		"digit in front":      {"1st", true},
		"space":               {"a b", true},
		"quote":               {`a"b`, true},
		"statement":           {`x"; DROP TABLE orders; --`, true},
		"schema":              {"main.records", true},
		"NUL":                 {"a\x00b", true},
		"line end":            {"records\n", true},
		"letters beyond":      {"récords", true},
		"placeholder":         {"{{table}}", true},
		"broken UTF-8":        {"a\xff", true},
		"only an underscore":  {"_", false},
		"hyphen":              {"a-b", true},
		"brackets":            {"[a]", true},
		"comment in the name": {"a--", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
			o := sqlitestore.Options{Table: tt.table}
			err := sqlitestore.Migrate(t.Context(), db, o)
			if errors.Is(err, sqlitestore.ErrTable) != tt.refused || (err != nil) != tt.refused {
				t.Fatalf("Migrate: %v; refused %v", err, tt.refused)
			}
			store, err := sqlitestore.New(db, o)
			if errors.Is(err, sqlitestore.ErrTable) != tt.refused || (err != nil) != tt.refused {
				t.Fatalf("New: %v; refused %v", err, tt.refused)
			}
			if (sqlitestore.SQL(o) == "") != tt.refused {
				t.Fatalf("SQL: %q", sqlitestore.SQL(o))
			}
			if tt.refused {
				return
			}
			if _, err := store.Claim(t.Context(), request("1")); err != nil {
				t.Fatalf("Claim: %v", err)
			}
		})
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	t.Run("again changes nothing", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.won(request("1"), 1)
		if err := sqlitestore.Migrate(t.Context(), f.db, sqlitestore.Options{}); err != nil {
			t.Fatal(err)
		}
		f.records(1)
		if n := f.count(`SELECT count(*) FROM idempotent_record_migration`); n != 2 {
			t.Fatalf("%d migrations noted, want 2", n)
		}
	})
	t.Run("after another tool applied the SQL", func(t *testing.T) {
		t.Parallel()
		db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		o := sqlitestore.Options{Table: "app_ledger"}
		for range 2 {
			if _, err := db.ExecContext(t.Context(), sqlitestore.SQL(o)); err != nil {
				t.Fatal(err)
			}
		}
		store, err := sqlitestore.New(db, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sqlitestore.Migrate(t.Context(), db, o); err != nil {
			t.Fatalf("Migrate: %v", err)
		}
	})
	t.Run("leaves a newer version's table alone", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.exec(`ALTER TABLE idempotent_record ADD COLUMN since_next_release TEXT`)
		f.exec(`INSERT INTO idempotent_record_migration VALUES (99, 0)`)
		if err := sqlitestore.Migrate(t.Context(), f.db, sqlitestore.Options{}); err != nil {
			t.Fatal(err)
		}
		f.won(request("1"), 1)
	})
	t.Run("several tables in one database", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		o := sqlitestore.Options{Table: "second"}
		if err := sqlitestore.Migrate(t.Context(), f.db, o); err != nil {
			t.Fatal(err)
		}
		second, err := sqlitestore.New(f.db, o)
		if err != nil {
			t.Fatal(err)
		}
		q := request("1")
		f.won(q, 1)
		if answer, err := second.Claim(t.Context(), again(q)); err != nil || answer.Outcome != idem.Won {
			t.Fatalf("the same key in another table: %v, %v", answer.Outcome, err)
		}
		if second.Name() == f.store.Name() {
			t.Fatalf("two tables have the name %s", second.Name())
		}
	})
	t.Run("writes nothing under an ended context", func(t *testing.T) {
		t.Parallel()
		db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := sqlitestore.Migrate(ctx, db, sqlitestore.Options{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("Migrate: %v", err)
		}
	})
	t.Run("undoes a migration that fails", func(t *testing.T) {
		t.Parallel()
		db := openFile(t, filepath.Join(t.TempDir(), "ledger.db"))
		if _, err := db.ExecContext(t.Context(), `CREATE TABLE idempotent_record (mine TEXT)`); err != nil {
			t.Fatal(err)
		}
		if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err == nil {
			t.Fatal("migrated a foreign table")
		}
		var tables int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_schema WHERE type = 'table'`).Scan(&tables); err != nil || tables != 1 {
			t.Fatalf("%d tables, %v; want the foreign one alone", tables, err)
		}
	})
}

func TestMissingTableIsNamed(t *testing.T) {
	t.Parallel()
	f := fixture{T: t, clock: newClock()}
	store := f.ledger(openFile(t, filepath.Join(t.TempDir(), "empty.db")))
	q := idem.Request{Key: idem.K("order.create", "1"), Owner: idem.NewOwner(), Lease: time.Second, Retention: time.Hour}
	_, claim := store.Claim(t.Context(), q)
	_, lookup := store.Lookup(t.Context(), q)
	for command, err := range map[string]error{"ping": store.Ping(t.Context()), "claim": claim, "lookup": lookup} {
		if err == nil || !strings.HasSuffix(err.Error(), "; run sqlitestore.Migrate") {
			t.Errorf("%s of a database without the table says %v", command, err)
		}
	}
}
