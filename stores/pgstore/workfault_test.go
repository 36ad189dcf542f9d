package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
)

func TestFailuresOfTheWorksOwnTransaction(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		for name, spoil := range map[string]string{
			"a constraint that speaks at the commit": `INSERT INTO deferred VALUES ('x'), ('x')`,
			"a statement that failed before":         `INSERT INTO nowhere VALUES (1)`,
			"a division by zero that is the work's":  `SELECT 1/0`,
		} {
			l, q := newShop(t), request("1")
			l.exec(`CREATE TABLE deferred (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
			ctx, tx := w.start(l, q)
			l.insertBusiness(ctx)
			inner, err := pgstore.Tx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = inner.Exec(ctx, spoil)
			if err := tx.Complete(ctx, result()); err == nil || errors.Is(err, idem.ErrClaimLost) || errors.Is(err, idem.ErrOutcomeUnknown) {
				t.Errorf("%s: Complete: %v, want the database's own error", name, err)
			}
			l.business(0)
			l.leaves(q, w.after)
		}
	})
}

func TestRowsLeftOpenByTheWork(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, q := newShop(t), request("1")
		ctx, tx := w.start(l, q)
		l.insertBusiness(ctx)
		inner, err := pgstore.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inner.Query(ctx, `SELECT generate_series(1, 1000)`); err != nil { //nolint:sqlclosecheck // left open: the point
			t.Fatal(err)
		}
		if err := tx.Complete(ctx, result()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Errorf("Complete: %v, want an error that says that nothing was committed", err)
		}
		testkit.Eventually(t, 10*time.Second, "the connection is closed, its writes undone, the key free", func() bool {
			record, err := l.store.Lookup(t.Context(), q)
			return (w.after == "" && errors.Is(err, idem.ErrNotFound)) || (w.after != "" && record.State == w.after)
		})
		l.business(0)
	})
}

// A duplicate that meets the unique key inside somebody's transaction must not abort it.
func TestDuplicateInsideAnotherTransaction(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, first, outer := newShop(t), request("first"), request("outer")
		l.won(first, 1)
		ctx, tx := w.start(l, outer)
		l.insertBusiness(ctx)
		for _, ask := range []func() (idem.Answer, error){
			func() (idem.Answer, error) { return l.store.Claim(ctx, again(first)) },
			func() (idem.Answer, error) {
				answer, _, _, err := l.store.ClaimTx(ctx, again(first), time.Minute)
				return answer, err
			},
		} {
			if answer, err := ask(); err != nil || answer.Outcome != idem.Busy {
				t.Errorf("duplicate: %v, %v; want busy", answer.Outcome, err)
			}
		}
		l.insertBusiness(ctx)
		l.commit(ctx, tx)
		l.business(2)
	})
}
