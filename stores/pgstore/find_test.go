package pgstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

func TestFindLeavesOutNewerFormats(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, id := range []string{"1", "2"} {
		if err := l.store.Release(t.Context(), l.won(request(id), 1), idem.Failed, ""); err != nil {
			t.Fatal(err)
		}
	}
	l.exec(`UPDATE `+table+` SET format = $1 WHERE biz_key = '1'`, idem.Format+1)
	records, err := l.store.Find(t.Context(), idem.Query{State: idem.Failed, Types: []string{"order.create"}, Limit: 10})
	if err != nil || len(records) != 1 || records[0].Key.ID != "2" {
		t.Errorf("found %+v, %v", records, err)
	}
}

// A key that was read back from its columns and the key itself exclude each other also where no row is to be seen yet.
func TestKeysReadBackHoldTheSameLock(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	q := request(strings.Repeat("x", 600))
	q.Key.Scope, q.Subject = "a~b", "c\x00d"
	answer, _, tx, err := l.store.ClaimTx(t.Context(), q, time.Minute)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("ClaimTx: %v, %v", answer.Outcome, err)
	}
	back := again(q)
	back.Key, back.Subject = idem.KeyOf(q.Key.Tenant, q.Key.Type, q.Key.Column()), idem.Column(q.Subject)
	began := time.Now()
	l.asked(idem.Busy, back)
	back.Key, back.RequestID = idem.K("order.create", "another"), idem.Column(q.RequestID)
	back.Key.Tenant = q.Key.Tenant
	l.asked(idem.Busy, back)
	if waited := time.Since(began); waited > 30*time.Second {
		t.Errorf("waited %v for the row", waited)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.asked(idem.Won, back)
}

func TestPingOfAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, row := range map[string]struct {
		configure func(*pgxpool.Config)
		well      bool
	}{
		"writable":                      {setting("default_transaction_read_only", "off"), true},
		"default_transaction_read_only": {setting("default_transaction_read_only", "on"), false},
	} {
		err := open(t, l.db.Pool(t, row.configure)).Ping(t.Context())
		if (err == nil) != row.well || (!row.well && !strings.Contains(err.Error(), "read-only")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two tables in one schema have a sequence each.
func TestFenceBelongsToItsTable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := pgstore.Options{Table: "locks"}
	if err := pgstore.Migrate(t.Context(), l.pool, other); err != nil {
		t.Fatal(err)
	}
	second := openAs(t, l.pool, other)
	for want := int64(1); want <= 3; want++ {
		for _, store := range []*pgstore.Store{l.store, second} {
			if number, err := store.Fence(t.Context()); err != nil || number != want {
				t.Errorf("%s: %d, %v; want %d", store.Name(), number, err, want)
			}
		}
	}
	l.exec(`DROP SEQUENCE locks_fence`)
	if number, err := second.Fence(t.Context()); err == nil {
		t.Errorf("drew %d from nothing", number)
	}
}
