package pgstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

type receipt struct {
	No     string
	Amount int
}

// payment is a business key without a subject.
func payment(id string) idem.Key { return idem.K("payment", id) }

// entry is a way into the same transaction: Once, or OnceTx in a transaction that is committed where the call succeeded.
type entry struct {
	name string
	call func(l *lab, key idem.Key, fn func(tx pgx.Tx) (receipt, error), options ...idem.OnceOption) (receipt, error)
}

func entries() []entry {
	return []entry{
		{"once", func(l *lab, key idem.Key, fn func(tx pgx.Tx) (receipt, error), options ...idem.OnceOption) (receipt, error) {
			return pgstore.Once(l.Context(), l.store, key, func(_ context.Context, tx pgx.Tx) (receipt, error) { return fn(tx) }, options...)
		}},
		{"once tx", func(l *lab, key idem.Key, fn func(tx pgx.Tx) (receipt, error), options ...idem.OnceOption) (got receipt, err error) {
			err = pgx.BeginFunc(l.Context(), l.pool, func(tx pgx.Tx) error {
				got, err = pgstore.OnceTx(l.Context(), l.store, tx, key, fn, options...)
				return err
			})
			return got, err
		}},
	}
}

func eachEntry(t *testing.T, run func(l *lab, e entry)) {
	t.Parallel()
	for _, e := range entries() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			run(newShop(t), e)
		})
	}
}

// pays writes one business row and counts its runs.
func (l *lab) pays(runs *atomic.Int64) func(tx pgx.Tx) (receipt, error) {
	return func(tx pgx.Tx) (receipt, error) {
		runs.Add(1)
		_, err := tx.Exec(l.Context(), `INSERT INTO business VALUES ('paid')`)
		return receipt{"G-7", 500}, err
	}
}

func (l *lab) paid(got receipt, err error) {
	l.Helper()
	if err != nil || got != (receipt{"G-7", 500}) {
		l.Fatalf("%+v, %v; want the first receipt", got, err)
	}
}

func (l *lab) unrecorded(key idem.Key) {
	l.Helper()
	if record, err := l.second().Lookup(l.Context(), idem.Request{Key: key}); !errors.Is(err, idem.ErrNotFound) {
		l.Errorf("Lookup: %+v, %v; want ErrNotFound", record, err)
	}
}

func TestOnceReplaysWhicheverWayItIsCalled(t *testing.T) {
	eachEntry(t, func(l *lab, first entry) {
		var runs atomic.Int64
		l.paid(first.call(l, payment("1"), l.pays(&runs)))
		for _, again := range append(entries(), first) {
			l.paid(again.call(l, payment("1"), l.pays(&runs)))
		}
		l.paid(idem.Once(l.Context(), l.store, payment("1"), func(context.Context) (receipt, error) { return l.pays(&runs)(nil) }))
		if runs.Load() != 1 {
			l.Errorf("ran %d times", runs.Load())
		}
		l.business(1)
		l.stands(idem.Request{Key: payment("1")}, idem.Succeeded, 1)
	})
}

func TestOnceThatFailsLeavesNothing(t *testing.T) {
	declined := errors.New("declined")
	failures := map[string]struct {
		after func(l *lab, tx pgx.Tx) error // what the work does behind its business write
		want  func(error) bool
	}{
		"its own error":      {func(*lab, pgx.Tx) error { return declined }, func(err error) bool { return errors.Is(err, declined) }},
		"an unknown outcome": {func(*lab, pgx.Tx) error { return idem.ErrOutcomeUnknown }, func(err error) bool { return errors.Is(err, idem.ErrOutcomeUnknown) }},
		"a statement that failed and was overlooked": {func(l *lab, tx pgx.Tx) error {
			_, _ = tx.Exec(l.Context(), `SELECT 1/0`)
			return nil
		}, func(err error) bool { return err != nil && !errors.Is(err, idem.ErrClaimLost) }},
		"a constraint that speaks at the commit": {func(l *lab, tx pgx.Tx) error {
			_, err := tx.Exec(l.Context(), `INSERT INTO deferred VALUES ('x'), ('x')`)
			return err
		}, func(err error) bool { return err != nil }},
		"its own record removed": {func(l *lab, tx pgx.Tx) error {
			_, err := tx.Exec(l.Context(), `DELETE FROM `+table)
			return err
		}, func(err error) bool { return errors.Is(err, idem.ErrClaimLost) }},
	}
	eachEntry(t, func(l *lab, e entry) {
		l.exec(`CREATE TABLE deferred (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
		for name, row := range failures {
			var runs atomic.Int64
			_, err := e.call(l, payment("1"), func(tx pgx.Tx) (receipt, error) {
				got, err := l.pays(&runs)(tx)
				return got, errors.Join(err, row.after(l, tx))
			})
			if !row.want(err) {
				l.Errorf("%s: %v", name, err)
			}
			l.business(0)
			l.unrecorded(payment("1"))
		}
		var runs atomic.Int64
		l.paid(e.call(l, payment("1"), l.pays(&runs)))
		l.stands(idem.Request{Key: payment("1")}, idem.Succeeded, 1)
	})
}

func TestOnceRefusesWhatCannotBe(t *testing.T) {
	eachEntry(t, func(l *lab, e entry) {
		nothing := func(pgx.Tx) (receipt, error) { l.Error("it ran"); return receipt{}, nil }
		resolve := idem.WithResolver(func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil })
		if _, err := e.call(l, idem.Key{}, nothing); !errors.Is(err, idem.ErrInvalid) {
			l.Errorf("no key: %v", err)
		}
		if _, err := e.call(l, payment("1"), nothing, resolve); !errors.Is(err, idem.ErrInvalid) {
			l.Errorf("a resolver: %v", err)
		}
		l.store = nil
		if _, err := e.call(l, payment("1"), nothing); !errors.Is(err, idem.ErrInvalid) {
			l.Errorf("no ledger: %v", err)
		}
	})
}

func TestOnceBindsThePayload(t *testing.T) {
	eachEntry(t, func(l *lab, e entry) {
		var runs atomic.Int64
		l.paid(e.call(l, payment("1"), l.pays(&runs), idem.WithFingerprint([]byte("500"))))
		l.paid(e.call(l, payment("1"), l.pays(&runs), idem.WithFingerprint([]byte("500"))))
		if _, err := e.call(l, payment("1"), l.pays(&runs), idem.WithFingerprint([]byte("1"))); !errors.Is(err, idem.ErrPayloadMismatch) {
			l.Errorf("another payload: %v", err)
		}
	})
}

// Records that a claim committed first has left are taken over, with the attempt counted.
func TestOnceTakesOver(t *testing.T) {
	eachEntry(t, func(l *lab, e entry) {
		for name, leave := range map[string]func(c idem.Claim) error{
			"failed": func(c idem.Claim) error { return l.store.Release(l.Context(), c, idem.Failed, "declined") },
			"lapsed": func(c idem.Claim) error { l.lapse(c.Key); return nil },
		} {
			q := idem.Request{Key: payment(name), Owner: idem.NewOwner(), Lease: time.Hour, Retention: time.Hour}
			if err := leave(l.won(q, 1)); err != nil {
				l.Fatal(err)
			}
			var runs atomic.Int64
			l.paid(e.call(l, q.Key, l.pays(&runs)))
			l.stands(q, idem.Succeeded, 2)
		}
	})
}

// Duplicates wait outside of any transaction, so that they do not take the connections which the first one's work needs.
func TestDuplicatesOfOnceHoldNoConnection(t *testing.T) {
	t.Parallel()
	l := newShop(t, two)
	var runs atomic.Int64
	started, release := make(chan struct{}), make(chan struct{})
	answers := make(chan error, 12)
	call := func() {
		got, err := pgstore.Once(t.Context(), l.store, payment("1"), func(ctx context.Context, tx pgx.Tx) (receipt, error) {
			close(started)
			<-release
			if idem.FromContext(ctx).Attempt != 1 {
				t.Errorf("claim %+v", idem.FromContext(ctx))
			}
			return l.pays(&runs)(tx)
		})
		if err == nil && got != (receipt{"G-7", 500}) {
			err = errors.New("another value")
		}
		answers <- err
	}
	go call()
	<-started
	for range cap(answers) - 1 {
		go call()
	}
	for range 20 { // the second connection is free, again and again
		if n := query[int](l, `SELECT 1`); n != 1 {
			t.Fatal(n)
		}
	}
	close(release)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	l.business(1)
}
