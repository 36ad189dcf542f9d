package pgstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

// own is a transaction of the caller's own, with one business row in it.
func (l *lab) own(options ...pgx.TxOptions) pgx.Tx {
	l.Helper()
	tx, err := l.pool.BeginTx(l.Context(), append(options, pgx.TxOptions{})[0])
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	l.adds(tx)
	return tx
}

func (l *lab) adds(tx pgx.Tx) {
	l.Helper()
	if _, err := tx.Exec(l.Context(), `INSERT INTO business VALUES ('caller')`); err != nil {
		l.Fatalf("the caller's transaction: %v", err)
	}
}

// Whatever comes of the call, the caller goes on in its transaction and commits.
func TestCallersTransactionStaysUsable(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	once := func(l *lab, tx pgx.Tx, id string, options ...idem.OnceOption) error {
		_, err := pgstore.OnceTx(l.Context(), l.store, tx, payment(id), l.pays(&runs), options...)
		return err
	}
	failing := func(l *lab, tx pgx.Tx, fn func(pgx.Tx) (any, error)) error {
		_, err := pgstore.OnceTx(l.Context(), l.store, tx, payment("1"), fn)
		return err
	}
	declined := errors.New("declined")
	for name, row := range map[string]struct {
		before func(l *lab)
		call   func(l *lab, tx pgx.Tx) error
		want   error
		rows   int // beside the caller's two
	}{
		"it ran": {call: func(l *lab, tx pgx.Tx) error { return once(l, tx, "1") }, rows: 1},
		"it ran in the same transaction before": {call: func(l *lab, tx pgx.Tx) error {
			return errors.Join(once(l, tx, "1"), once(l, tx, "1"))
		}, rows: 1},
		"it is done": {
			before: func(l *lab) { l.paid(entries()[0].call(l, payment("1"), l.pays(&runs))) },
			call:   func(l *lab, tx pgx.Tx) error { return once(l, tx, "1") }, rows: 1,
		},
		"it is done with another payload": {
			before: func(l *lab) {
				l.paid(entries()[0].call(l, payment("1"), l.pays(&runs), idem.WithFingerprint([]byte("1"))))
			},
			call: func(l *lab, tx pgx.Tx) error { return once(l, tx, "1", idem.WithFingerprint([]byte("2"))) },
			want: idem.ErrPayloadMismatch, rows: 1,
		},
		"another holds a claim": {
			before: func(l *lab) {
				l.won(idem.Request{Key: payment("1"), Owner: "x", Lease: time.Hour, Retention: time.Hour}, 1)
			},
			call: func(l *lab, tx pgx.Tx) error { return once(l, tx, "1", idem.WithWait(time.Hour)) }, want: idem.ErrInProgress,
		},
		"another transaction holds the key": {
			before: func(l *lab) {
				_, tx := l.begun(idem.Request{Key: payment("1"), Owner: "x", Lease: time.Hour, Retention: time.Hour})
				l.Cleanup(func() { _ = tx.Rollback(context.Background()) })
			},
			call: func(l *lab, tx pgx.Tx) error { return once(l, tx, "1") }, want: idem.ErrInProgress,
		},
		"it is called within itself": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(inner pgx.Tx) (any, error) { return nil, once(l, inner, "1") })
		}, want: idem.ErrInProgress},
		"another is called within it": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(inner pgx.Tx) (any, error) { return nil, once(l, inner, "2") })
		}, rows: 1},
		"an error": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(inner pgx.Tx) (any, error) { l.adds(inner); return nil, declined })
		}, want: declined},
		"a failed statement": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(inner pgx.Tx) (any, error) {
				_, err := inner.Exec(l.Context(), `SELECT 1/0`)
				return nil, errors.Join(declined, err)
			})
		}, want: declined},
		"a value that JSON does not keep": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(pgx.Tx) (any, error) { return make(chan int), nil })
		}, want: idem.ErrInvalid},
		"an end of its own": {call: func(l *lab, tx pgx.Tx) error {
			return failing(l, tx, func(inner pgx.Tx) (any, error) {
				return nil, errors.Join(inner.Commit(l.Context()), inner.Rollback(l.Context()))
			})
		}, want: pgstore.ErrGuarded},
		"a panic": {call: func(l *lab, tx pgx.Tx) (err error) {
			defer func() { err, _ = recover().(error) }()
			return failing(l, tx, func(inner pgx.Tx) (any, error) { l.adds(inner); panic(declined) })
		}, want: declined},
		"the caller's context ends": {call: func(l *lab, tx pgx.Tx) error {
			ctx, cancel := context.WithCancel(l.Context())
			_, err := pgstore.OnceTx(ctx, l.store, tx, payment("1"), func(inner pgx.Tx) (int, error) {
				l.adds(inner)
				cancel()
				return 1, nil
			})
			return err
		}, want: context.Canceled},
		"no type": {call: func(l *lab, tx pgx.Tx) error {
			_, err := pgstore.OnceTx(l.Context(), l.store, tx, idem.K("", "1"), l.pays(&runs))
			return err
		}, want: idem.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newShop(t)
			if row.before != nil {
				row.before(l)
			}
			tx := l.own()
			if err := row.call(l, tx); !errors.Is(err, row.want) {
				t.Errorf("%v, want %v", err, row.want)
			}
			l.adds(tx)
			if err := tx.Commit(t.Context()); err != nil {
				t.Errorf("commit: %v", err)
			}
			l.business(2 + row.rows)
		})
	}
}

// A stricter transaction cannot see what was committed since it began; it learns that it must begin again.
func TestOnceTxInAStricterTransaction(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		key := payment(string(level))
		var runs atomic.Int64
		tx := l.own(pgx.TxOptions{IsoLevel: level})
		l.paid(entries()[0].call(l, key, l.pays(&runs)))
		_, err := pgstore.OnceTx(t.Context(), l.store, tx, key, l.pays(&runs))
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != "40001" {
			t.Errorf("%s: %v, want 40001", level, err)
		}
		_ = tx.Rollback(t.Context())
		tx = l.own(pgx.TxOptions{IsoLevel: level})
		got, err := pgstore.OnceTx(t.Context(), l.store, tx, key, l.pays(&runs))
		l.paid(got, err)
		_ = tx.Rollback(t.Context())
	}
}

func TestOnceTxInATransactionThatIsOver(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	var runs atomic.Int64
	ended, aborted := l.own(), l.own()
	_ = ended.Rollback(t.Context())
	_, _ = aborted.Exec(t.Context(), `SELECT 1/0`)
	for name, tx := range map[string]pgx.Tx{"ended": ended, "aborted": aborted} {
		if _, err := pgstore.OnceTx(t.Context(), l.store, tx, payment("1"), l.pays(&runs)); err == nil || runs.Load() != 0 {
			t.Errorf("%s: %v, %d runs", name, err, runs.Load())
		}
	}
	if _, err := pgstore.OnceTx(t.Context(), l.store, nil, payment("1"), l.pays(&runs)); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("none: %v, want ErrInvalid", err)
	}
}
