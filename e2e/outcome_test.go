package e2e_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/web"
)

// books is an application that writes one entry in the ledger's transaction, whatever its answer is then.
type books struct {
	ledger idem.Ledger
	write  func(ctx context.Context) error
	count  func(t *testing.T) int
}

const insertEntry = `INSERT INTO entry VALUES ('x')`

func sqliteBooks(t *testing.T) books {
	t.Helper()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "books.db"))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}))
	_, err = db.ExecContext(t.Context(), `CREATE TABLE entry (id TEXT)`)
	must(t, err)
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	must(t, err)
	return books{
		ledger: ledger,
		write: func(ctx context.Context) error {
			tx, err := sqlitestore.Tx(ctx)
			if err == nil {
				_, err = tx.ExecContext(ctx, insertEntry)
			}
			return err
		},
		count: func(t *testing.T) (n int) {
			t.Helper()
			must(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM entry`).Scan(&n))
			return n
		},
	}
}

func postgresBooks(t *testing.T) books {
	t.Helper()
	pool := testkit.Postgres(t).Pool(t)
	must(t, pgstore.Migrate(t.Context(), pool, pgstore.Options{}))
	_, err := pool.Exec(t.Context(), `CREATE TABLE entry (id TEXT)`)
	must(t, err)
	ledger, err := pgstore.New(pool, pgstore.Options{})
	must(t, err)
	t.Cleanup(ledger.Close)
	return books{
		ledger: ledger,
		write: func(ctx context.Context) error {
			tx, err := pgstore.Tx(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, insertEntry)
			}
			return err
		},
		count: func(t *testing.T) (n int) {
			t.Helper()
			must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM entry`).Scan(&n))
			return n
		},
	}
}

// TestWritesByOutcome: what the handler wrote in the ledger's transaction stands with a success, and with nothing else. A second try that succeeds
// leaves its own writes only.
func TestWritesByOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  http.HandlerFunc
		status int // of the first answer; 0: none, it panicked
		stands bool
	}{
		"200":          {first: saying(200), status: 200, stands: true},
		"303":          {first: saying(303), status: 303, stands: true},
		"nothing said": {first: func(http.ResponseWriter, *http.Request) {}, status: 200, stands: true},
		"422":          {first: saying(422), status: 422},
		"500":          {first: saying(500), status: 500},
		"a panic":      {first: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"rejected":     {first: func(_ http.ResponseWriter, r *http.Request) { web.Reject(r.Context()) }, status: 200},
		"unknown":      {first: func(_ http.ResponseWriter, r *http.Request) { web.Unknown(r.Context()) }, status: 200},
	} {
		for database, open := range map[string]func(*testing.T) books{"SQLite": sqliteBooks, "Postgres": postgresBooks} {
			for way, options := range map[string][]web.Option{"claim first": nil, "same transaction": {web.SameTx()}} {
				t.Run(fmt.Sprint(name, "/", database, "/", way), func(t *testing.T) {
					t.Parallel()
					b := open(t)
					guard, err := web.New(web.Config{Ledger: b.ledger, Logger: slog.New(slog.DiscardHandler)})
					must(t, err)
					runs := 0
					guarded := guard.Key("entry", web.HeaderKey("Idempotency-Key"), append(options, web.Anonymous())...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						runs++
						must(t, b.write(r.Context()))
						if runs == 1 {
							c.first(w, r)
						}
					}))
					if got := enter(guarded); got != c.status {
						t.Errorf("answered %d, want %d", got, c.status)
					}
					want := 0
					if c.stands {
						want = 1
					}
					if got := b.count(t); got != want {
						t.Errorf("%d entries after the first, want %d", got, want)
					}
					enter(guarded)
					if got := b.count(t); got != 1 {
						t.Errorf("%d entries after the second, want 1", got)
					}
				})
			}
		}
	}
}

func saying(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "x")
	}
}

// enter sends the entry, always the same; 0: no answer.
func enter(guarded http.Handler) (status int) {
	defer func() { _ = recover() }()
	r := httptest.NewRequest(http.MethodPost, "/entries", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", "entry-1")
	rec := httptest.NewRecorder()
	guarded.ServeHTTP(rec, r)
	return rec.Code
}
