package sqlitestore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

type receipt struct {
	No     string
	Amount int
}

func payment(id string) idem.Key { return idem.K("payment", id) }

type paying = func(tx sqlitestore.DBTX) (receipt, error)

// entry is a way into the same transaction: Once, or OnceTx in a transaction that is committed where the call succeeded.
type entry struct {
	name string
	call func(f fixture, key idem.Key, fn paying, options ...idem.OnceOption) (receipt, error)
}

func entries() []entry {
	return []entry{
		{"once", func(f fixture, key idem.Key, fn paying, options ...idem.OnceOption) (receipt, error) {
			return sqlitestore.Once(f.Context(), f.store, key, func(_ context.Context, tx sqlitestore.DBTX) (receipt, error) { return fn(tx) }, options...)
		}},
		{"once tx", func(f fixture, key idem.Key, fn paying, options ...idem.OnceOption) (receipt, error) {
			tx, err := f.db.BeginTx(f.Context(), nil)
			if err != nil {
				return receipt{}, err
			}
			defer tx.Rollback()
			got, err := sqlitestore.OnceTx(f.Context(), f.store, tx, key, fn, options...)
			if err != nil {
				return got, err
			}
			return got, tx.Commit()
		}},
	}
}

func eachEntry(t *testing.T, run func(f fixture, e entry)) {
	t.Parallel()
	for _, e := range entries() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			run(newFixture(t), e)
		})
	}
}

// pays writes one order and counts its runs.
func (f fixture) pays(runs *atomic.Int64) paying {
	return func(tx sqlitestore.DBTX) (receipt, error) {
		runs.Add(1)
		_, err := tx.ExecContext(f.Context(), `INSERT INTO orders VALUES (?)`, idem.NewOwner())
		return receipt{"G-7", 500}, err
	}
}

func (f fixture) paid(got receipt, err error) {
	f.Helper()
	if err != nil || got != (receipt{"G-7", 500}) {
		f.Fatalf("%+v, %v; want the first receipt", got, err)
	}
}

func TestOnceReplaysWhicheverWayItIsCalled(t *testing.T) {
	eachEntry(t, func(f fixture, first entry) {
		var runs atomic.Int64
		f.paid(first.call(f, payment("1"), f.pays(&runs)))
		for _, again := range append(entries(), first) {
			f.paid(again.call(f, payment("1"), f.pays(&runs)))
		}
		f.paid(idem.Once(f.Context(), f.another(), payment("1"), func(context.Context) (receipt, error) { return f.pays(&runs)(nil) }))
		if runs.Load() != 1 {
			f.Errorf("ran %d times", runs.Load())
		}
		f.orders(1)
		f.stands(idem.Request{Key: payment("1")}, idem.Succeeded, 1)
	})
}

func TestOnceThatFailsLeavesNothing(t *testing.T) {
	declined := errors.New("declined")
	failures := map[string]struct {
		after func(f fixture, tx sqlitestore.DBTX) error // what the work does behind its order
		want  func(error) bool
	}{
		"its own error":      {func(fixture, sqlitestore.DBTX) error { return declined }, func(err error) bool { return errors.Is(err, declined) }},
		"an unknown outcome": {func(fixture, sqlitestore.DBTX) error { return idem.ErrOutcomeUnknown }, func(err error) bool { return errors.Is(err, idem.ErrOutcomeUnknown) }},
		"a constraint that speaks at the commit": {func(f fixture, tx sqlitestore.DBTX) error {
			_, err := tx.ExecContext(f.Context(), `INSERT INTO deferred VALUES ('nobody')`)
			return err
		}, func(err error) bool { return err != nil }},
		"its own record removed": {func(f fixture, tx sqlitestore.DBTX) error {
			_, err := tx.ExecContext(f.Context(), `DELETE FROM idempotent_record`)
			return err
		}, func(err error) bool { return errors.Is(err, idem.ErrClaimLost) }},
		"a rollback by SQLite itself": {func(f fixture, tx sqlitestore.DBTX) error {
			_, _ = tx.ExecContext(f.Context(), `INSERT OR ROLLBACK INTO deferred VALUES (NULL)`)
			return nil
		}, func(err error) bool { return errors.Is(err, sqlitestore.ErrWorkEnded) }},
	}
	eachEntry(t, func(f fixture, e entry) {
		f.exec(`CREATE TABLE deferred (id TEXT NOT NULL REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)`)
		for name, row := range failures {
			var runs atomic.Int64
			_, err := e.call(f, payment("1"), func(tx sqlitestore.DBTX) (receipt, error) {
				got, err := f.pays(&runs)(tx)
				return got, errors.Join(err, row.after(f, tx))
			})
			if !row.want(err) {
				f.Errorf("%s: %v", name, err)
			}
			f.orders(0)
			f.records(0)
		}
		var runs atomic.Int64
		f.paid(e.call(f, payment("1"), f.pays(&runs)))
		f.stands(idem.Request{Key: payment("1")}, idem.Succeeded, 1)
	})
}

func TestOnceRefusesWhatCannotBe(t *testing.T) {
	eachEntry(t, func(f fixture, e entry) {
		nothing := func(sqlitestore.DBTX) (receipt, error) { f.Error("it ran"); return receipt{}, nil }
		resolve := idem.WithResolver(func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil })
		if _, err := e.call(f, idem.Key{}, nothing); !errors.Is(err, idem.ErrInvalid) {
			f.Errorf("no key: %v", err)
		}
		if _, err := e.call(f, payment("1"), nothing, resolve); !errors.Is(err, idem.ErrInvalid) {
			f.Errorf("a resolver: %v", err)
		}
		f.store = nil
		if _, err := e.call(f, payment("1"), nothing); !errors.Is(err, idem.ErrInvalid) {
			f.Errorf("no ledger: %v", err)
		}
	})
}

// Records that a claim committed first has left are taken over, with the attempt counted.
func TestOnceTakesOver(t *testing.T) {
	eachEntry(t, func(f fixture, e entry) {
		for name, leave := range map[string]func(c idem.Claim) error{
			"failed": func(c idem.Claim) error { return f.store.Release(f.Context(), c, idem.Failed, "declined") },
			"lapsed": func(c idem.Claim) error { f.clock.advance(2 * c.Lease); return nil },
		} {
			q := idem.Request{Key: payment(name), Owner: idem.NewOwner(), Lease: lease, Retention: time.Hour}
			if err := leave(f.won(q, 1)); err != nil {
				f.Fatal(err)
			}
			var runs atomic.Int64
			f.paid(e.call(f, q.Key, f.pays(&runs)))
			f.stands(q, idem.Succeeded, 2)
		}
	})
}

// Duplicates of a call that is under way wait for it, in this process and in another.
func TestDuplicatesOfOnceWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	started, release := make(chan struct{}), make(chan struct{})
	answers := make(chan error, 8)
	call := func(store *sqlitestore.Store) {
		got, err := sqlitestore.Once(t.Context(), store, payment("1"), func(_ context.Context, tx sqlitestore.DBTX) (receipt, error) {
			close(started)
			<-release
			return f.pays(&runs)(tx)
		})
		if err == nil && got != (receipt{"G-7", 500}) {
			err = errors.New("another value")
		}
		answers <- err
	}
	another := f.another()
	go call(f.store)
	<-started
	for i := range cap(answers) - 1 {
		store := f.store
		if i%2 == 0 {
			store = another
		}
		go call(store)
	}
	close(release)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	f.orders(1)
}
