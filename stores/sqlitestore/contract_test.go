package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/stores/storetest"
)

// The second handle is to the first what another process is: it shares the file and nothing else.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Backend {
		path := filepath.Join(t.TempDir(), "ledger.db")
		db := openFile(t, path)
		if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
			t.Fatal(err)
		}
		store, err := sqlitestore.New(db, sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		another, err := sqlitestore.New(openFile(t, path), sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Backend{Store: store, Another: another, Lapse: func(t testing.TB, key idem.Key) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), `UPDATE idempotent_record SET lease_until = 0
				WHERE tenant = ? AND biz_type = ? AND biz_key = ?`,
				idem.Column(key.Tenant), idem.Column(key.Type), key.Column()); err != nil {
				t.Fatalf("ending the lease: %v", err)
			}
		}}
	})
}
