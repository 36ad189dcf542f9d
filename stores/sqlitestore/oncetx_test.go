package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// own is a transaction of the caller's own, with one order in it.
func (f fixture) own(db *sql.DB) *sql.Tx {
	f.Helper()
	tx, err := db.BeginTx(f.Context(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = tx.Rollback() })
	f.order(tx, idem.NewOwner())
	return tx
}

// Whatever comes of the call, the caller goes on in its transaction and commits.
func TestCallersTransactionStaysUsable(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	once := func(f fixture, tx *sql.Tx, id string, options ...idem.OnceOption) error {
		_, err := sqlitestore.OnceTx(f.Context(), f.store, tx, payment(id), f.pays(&runs), options...)
		return err
	}
	failing := func(f fixture, tx *sql.Tx, fn func(sqlitestore.DBTX) (any, error)) error {
		_, err := sqlitestore.OnceTx(f.Context(), f.store, tx, payment("1"), fn)
		return err
	}
	declined := errors.New("declined")
	for name, row := range map[string]struct {
		before func(f fixture)
		call   func(f fixture, tx *sql.Tx) error
		want   error
		rows   int // beside the caller's two
	}{
		"it ran": {call: func(f fixture, tx *sql.Tx) error { return once(f, tx, "1") }, rows: 1},
		"it ran in the same transaction before": {call: func(f fixture, tx *sql.Tx) error {
			return errors.Join(once(f, tx, "1"), once(f, tx, "1"))
		}, rows: 1},
		"it is done": {
			before: func(f fixture) { f.paid(entries()[0].call(f, payment("1"), f.pays(&runs))) },
			call:   func(f fixture, tx *sql.Tx) error { return once(f, tx, "1") }, rows: 1,
		},
		"it is done with another payload": {
			before: func(f fixture) {
				f.paid(entries()[0].call(f, payment("1"), f.pays(&runs), idem.WithFingerprint([]byte("1"))))
			},
			call: func(f fixture, tx *sql.Tx) error { return once(f, tx, "1", idem.WithFingerprint([]byte("2"))) },
			want: idem.ErrPayloadMismatch, rows: 1,
		},
		"another holds a claim": {
			before: func(f fixture) {
				f.won(idem.Request{Key: payment("1"), Owner: "x", Lease: time.Hour, Retention: time.Hour}, 1)
			},
			call: func(f fixture, tx *sql.Tx) error { return once(f, tx, "1", idem.WithWait(time.Hour)) }, want: idem.ErrInProgress,
		},
		"it is called within itself": {call: func(f fixture, tx *sql.Tx) error {
			return failing(f, tx, func(sqlitestore.DBTX) (any, error) { return nil, once(f, tx, "1") })
		}, want: idem.ErrInProgress},
		"another is called within it": {call: func(f fixture, tx *sql.Tx) error {
			return failing(f, tx, func(sqlitestore.DBTX) (any, error) { return nil, once(f, tx, "2") })
		}, rows: 1},
		"an error": {call: func(f fixture, tx *sql.Tx) error {
			return failing(f, tx, func(inner sqlitestore.DBTX) (any, error) { f.order(inner, "x"); return nil, declined })
		}, want: declined},
		"a failed statement": {call: func(f fixture, tx *sql.Tx) error {
			return failing(f, tx, func(inner sqlitestore.DBTX) (any, error) {
				_, err := inner.ExecContext(f.Context(), `INSERT INTO nowhere VALUES (1)`)
				return nil, errors.Join(declined, err)
			})
		}, want: declined},
		"a value that JSON does not keep": {call: func(f fixture, tx *sql.Tx) error {
			return failing(f, tx, func(sqlitestore.DBTX) (any, error) { return make(chan int), nil })
		}, want: idem.ErrInvalid},
		"a panic": {call: func(f fixture, tx *sql.Tx) (err error) {
			defer func() { err, _ = recover().(error) }()
			return failing(f, tx, func(inner sqlitestore.DBTX) (any, error) { f.order(inner, "x"); panic(declined) })
		}, want: declined},
		"the caller's context ends": {call: func(f fixture, tx *sql.Tx) error {
			ctx, cancel := context.WithCancel(f.Context())
			cancel()
			_, err := sqlitestore.OnceTx(ctx, f.store, tx, payment("1"), f.pays(&runs))
			return err
		}, want: context.Canceled},
		"no type": {call: func(f fixture, tx *sql.Tx) error {
			_, err := sqlitestore.OnceTx(f.Context(), f.store, tx, idem.K("", "1"), f.pays(&runs))
			return err
		}, want: idem.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if row.before != nil {
				row.before(f)
			}
			tx := f.own(f.db)
			if err := row.call(f, tx); !errors.Is(err, row.want) {
				t.Errorf("%v, want %v", err, row.want)
			}
			f.order(tx, "last")
			if err := tx.Commit(); err != nil {
				t.Errorf("commit: %v", err)
			}
			f.orders(2 + row.rows)
		})
	}
}

func TestOnceTxRollsBackWithItsCaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	for range 2 {
		tx := f.own(f.db)
		got, err := sqlitestore.OnceTx(t.Context(), f.store, tx, payment("1"), f.pays(&runs))
		f.paid(got, err)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		f.orders(0)
		f.records(0)
	}
	f.paid(entries()[1].call(f, payment("1"), f.pays(&runs)))
}

// The caller's transaction may be another handle's on the same file: the store's prepared statements are not for it.
func TestOnceTxOnAnotherHandle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	f.paid(entries()[0].call(f, payment("warm"), f.pays(&runs)))
	tx := f.own(openFile(t, f.path))
	got, err := sqlitestore.OnceTx(t.Context(), f.store, tx, payment("1"), f.pays(&runs))
	f.paid(got, err)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	f.orders(3)
	f.paid(entries()[0].call(f, payment("1"), f.pays(&runs)))
}

// A transaction that has only read cannot write beside a writer: it is told so, and may go on reading.
func TestOnceTxBesideAWriter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	deferred, err := sql.Open("sqlite", "file:"+f.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deferred.Close() })
	for name, block := range map[string]func() (release func()){
		"one that has this key": func() func() {
			_, _, work := f.claimTx(idem.Request{Key: payment("1"), Owner: "x", Lease: lease, Retention: time.Hour}, 0)
			return func() { f.rollback(work) }
		},
		"one that has another": func() func() {
			_, _, work := f.claimTx(request("other"), 0)
			return func() { f.rollback(work) }
		},
	} {
		tx, err := deferred.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		read := func() error {
			return tx.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(new(int))
		}
		if err := read(); err != nil {
			t.Fatal(err)
		}
		release := block()
		if _, err := sqlitestore.OnceTx(t.Context(), f.store, tx, payment("1"), f.pays(&runs)); !errors.Is(err, idem.ErrInProgress) {
			t.Errorf("%s: %v, want ErrInProgress", name, err)
		}
		if err := read(); err != nil {
			t.Errorf("%s: reading on: %v", name, err)
		}
		release()
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

func TestOnceTxInATransactionThatIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	ended, undone := f.own(f.db), (*sql.Tx)(nil)
	_ = ended.Rollback()
	undone = f.own(f.db)
	_, _ = undone.ExecContext(t.Context(), `INSERT OR ROLLBACK INTO orders VALUES ((SELECT max(id) FROM orders))`)
	for name, tx := range map[string]*sql.Tx{"ended": ended, "undone by SQLite": undone} {
		if _, err := sqlitestore.OnceTx(t.Context(), f.store, tx, payment("1"), f.pays(&runs)); !errors.Is(err, sqlitestore.ErrWorkEnded) {
			t.Errorf("%s: %v, want ErrWorkEnded", name, err)
		}
	}
	if _, err := sqlitestore.OnceTx(t.Context(), f.store, nil, payment("1"), f.pays(&runs)); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("none: %v, want ErrInvalid", err)
	}
	_ = undone.Rollback()
	f.orders(0)
	f.records(0)
}

// What SQLite undid is gone with all that the caller wrote before: neither fn nor the caller writes the rest of it.
func TestOnceTxThatSQLiteUndoes(t *testing.T) {
	t.Parallel()
	undoes := func(f fixture, inner sqlitestore.DBTX) error {
		_, err := inner.ExecContext(f.Context(), `INSERT OR ROLLBACK INTO orders VALUES ((SELECT max(id) FROM orders))`)
		return err
	}
	for name, fn := range map[string]func(f fixture, inner sqlitestore.DBTX) error{
		"and fn says so": undoes,
		"by the end of a statement's context": func(f fixture, inner sqlitestore.DBTX) error {
			ctx, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := inner.ExecContext(ctx, `INSERT INTO orders WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1e9) SELECT i FROM r`)
			return err
		},
		"and fn does not mind": func(f fixture, inner sqlitestore.DBTX) error {
			_ = undoes(f, inner)
			_, _ = inner.ExecContext(f.Context(), `INSERT INTO orders VALUES ('late')`)
			_, _ = inner.QueryContext(f.Context(), `INSERT INTO orders VALUES ('later') RETURNING id`) //nolint:sqlclosecheck,rowserrcheck // refused: the point
			_ = inner.QueryRowContext(f.Context(), `INSERT INTO orders VALUES ('latest') RETURNING id`).Scan(new(string))
			return nil
		},
		"and fn panics": func(f fixture, inner sqlitestore.DBTX) error { panic(undoes(f, inner)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tx := f.own(f.db)
			err := func() (err error) {
				defer func() {
					if recover() != nil {
						err = sqlitestore.ErrWorkEnded
					}
				}()
				_, err = sqlitestore.OnceTx(f.Context(), f.store, tx, payment("1"), func(inner sqlitestore.DBTX) (int, error) { return 1, fn(f, inner) })
				return err
			}()
			if !errors.Is(err, sqlitestore.ErrWorkEnded) {
				t.Errorf("%v, want ErrWorkEnded", err)
			}
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO orders VALUES ('rest')`); err == nil {
				t.Error("the caller went on writing")
			}
			if err := tx.Commit(); err == nil {
				t.Error("the caller committed")
			}
			f.orders(0)
			f.records(0)
		})
	}
}

// Callers with two keys, in opposite order, all get through.
func TestOnceTxInAnyOrderDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs atomic.Int64
	var running sync.WaitGroup
	for i := range 8 {
		order := []string{"a", "b"}
		if i%2 == 1 {
			order = []string{"b", "a"}
		}
		running.Go(func() {
			tx, err := f.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer tx.Rollback()
			for _, id := range order {
				if _, err := sqlitestore.OnceTx(t.Context(), f.store, tx, payment(id), f.pays(&runs)); err != nil {
					t.Error(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	f.orders(2)
}
