package sqlitestore_test

import (
	"testing"
	"time"

	"github.com/idemkit/idem"
)

// edictum-console#36: created_at in the unique key. A key is one key on both sides of midnight, of a month's and of a year's end, whatever became of it.
func TestSameKeyOnBothSidesOfMidnight(t *testing.T) {
	t.Parallel()
	for name, midnight := range map[string]time.Time{
		"of a day":   time.Date(2026, 2, 4, 0, 0, 0, 0, time.UTC),
		"of a month": time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		"of a year":  time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.clock.advance(midnight.Sub(f.clock.Now()) - time.Microsecond)
			running, done, failed := request("running"), request("done"), request("failed")
			done.RequestID = "request-1"
			claim := f.won(running, 1)
			if err := f.store.Complete(t.Context(), f.won(done, 1), created()); err != nil {
				t.Fatal(err)
			}
			if err := f.store.Release(t.Context(), f.won(failed, 1), idem.Failed, ""); err != nil {
				t.Fatal(err)
			}
			f.clock.advance(2 * time.Microsecond)
			f.claim(again(running), idem.Busy)
			f.claim(again(done), idem.Done)
			elsewhere := again(done)
			elsewhere.Key.ID = "another key"
			f.claim(elsewhere, idem.Mismatch) // its request id is one, too
			f.won(again(failed), 2)
			if err := f.store.Complete(t.Context(), claim, created()); err != nil {
				t.Errorf("finishing on the other side: %v", err)
			}
			if n := f.count(`SELECT count(*) FROM idempotent_record`); n != 3 {
				t.Errorf("%d rows of 3 keys", n)
			}
		})
	}
}
