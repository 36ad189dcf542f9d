package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// BenchmarkTwoCommits is a claim, a business write and their completion; BenchmarkReplay a duplicate of one.
func BenchmarkTwoCommits(b *testing.B) {
	store := benchLedger(b)
	for b.Loop() {
		answer, err := store.Claim(b.Context(), request(idem.NewOwner()))
		if err != nil {
			b.Fatal(err)
		}
		ctx, work := store.Open(b.Context(), answer.Claim, lease)
		tx, err := sqlitestore.Tx(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES (?)`, answer.Claim.Key.ID); err != nil {
			b.Fatal(err)
		}
		if err := work.Complete(ctx, created()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	store := benchLedger(b)
	q := request("1")
	answer, err := store.Claim(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Complete(b.Context(), answer.Claim, created()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if answer, err := store.Claim(b.Context(), again(q)); err != nil || answer.Outcome != idem.Done {
			b.Fatal(answer.Outcome, err)
		}
	}
}

func benchLedger(b *testing.B) *sqlitestore.Store {
	b.Helper()
	db := openFile(b, filepath.Join(b.TempDir(), "ledger.db"))
	if err := sqlitestore.Migrate(b.Context(), db, sqlitestore.Options{}); err != nil {
		b.Fatal(err)
	}
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE orders (id TEXT PRIMARY KEY)`); err != nil {
		b.Fatal(err)
	}
	store, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return store
}
