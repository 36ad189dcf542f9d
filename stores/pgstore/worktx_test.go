package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

// newShop is a lab with a table for business writes.
func newShop(t *testing.T, configure ...func(*pgxpool.Config)) *lab {
	t.Helper()
	l := newLab(t, configure...)
	l.db.Exec(t, `CREATE TABLE business (id text)`)
	return l
}

func (l *lab) insertBusiness(ctx context.Context) {
	l.Helper()
	tx, err := pgstore.Tx(ctx)
	if err != nil {
		l.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO business VALUES ('x')`); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) business(want int) {
	l.Helper()
	if got := query[int](l, `SELECT count(*) FROM business`); got != want {
		l.Errorf("%d business rows, want %d", got, want)
	}
}

func (l *lab) commit(ctx context.Context, tx idem.Tx) {
	l.Helper()
	if err := tx.Complete(ctx, result()); err != nil {
		l.Fatalf("Tx.Complete: %v", err)
	}
}

// begun is a claim in a transaction with its work.
func (l *lab) begun(q idem.Request) (context.Context, idem.Tx) {
	l.Helper()
	answer, ctx, tx, err := l.store.ClaimTx(l.Context(), q, time.Minute)
	if err != nil || answer.Outcome != idem.Won {
		l.Fatalf("ClaimTx: %v, %v", answer.Outcome, err)
	}
	return ctx, tx
}

// way is one of the two in which a claim and its work meet.
type way struct {
	name  string
	start func(l *lab, q idem.Request) (context.Context, idem.Tx)
	after idem.State // the record after a rollback; empty: none
}

func ways() []way {
	return []way{
		{"claim first", func(l *lab, q idem.Request) (context.Context, idem.Tx) {
			l.Helper()
			return l.store.Open(l.Context(), l.won(q, 1), time.Minute)
		}, idem.Processing},
		{"same transaction", func(l *lab, q idem.Request) (context.Context, idem.Tx) {
			l.Helper()
			return l.begun(q)
		}, ""},
	}
}

func eachWay(t *testing.T, run func(t *testing.T, w way)) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}

func (l *lab) leaves(q idem.Request, state idem.State) {
	l.Helper()
	if state != "" {
		l.stands(q, state, 1)
		return
	}
	if record, err := l.second().Lookup(l.Context(), q); !errors.Is(err, idem.ErrNotFound) {
		l.Errorf("Lookup: %+v, %v; want ErrNotFound", record, err)
	}
}

func TestWorkCommitsWithItsRecord(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, q := newShop(t), request("1")
		ctx, tx := w.start(l, q)
		l.insertBusiness(ctx)
		l.business(0)
		l.commit(ctx, tx)
		l.business(1)
		l.stands(q, idem.Succeeded, 1)
	})
}

func TestWorkRollsBack(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, q := newShop(t), request("1")
		ctx, tx := w.start(l, q)
		l.insertBusiness(ctx)
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if err := tx.Rollback(ctx); err != nil {
			t.Fatalf("Rollback with a cancelled context: %v", err)
		}
		l.business(0)
		l.leaves(q, w.after)
	})
}

func TestTheGuardEndsTheTransaction(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, q := newShop(t), request("1")
		ctx, guard := w.start(l, q)
		tx, err := pgstore.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for name, end := range map[string]func(context.Context) error{"commit": tx.Commit, "rollback": tx.Rollback} {
			if err := end(ctx); !errors.Is(err, pgstore.ErrGuarded) {
				t.Errorf("%s by the work: %v, want ErrGuarded", name, err)
			}
		}
		l.insertBusiness(ctx)
		l.savepoint(ctx, tx, pgx.Tx.Rollback)
		l.savepoint(ctx, tx, pgx.Tx.Commit)
		l.commit(ctx, guard)
		l.business(2)
		refusesAfterEnd(ctx, t, tx)
		if _, err := pgstore.Tx(ctx); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Tx after the end: %v, want ErrTxClosed", err)
		}
		if err := guard.Complete(ctx, result()); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("a second Complete: %v, want ErrTxClosed", err)
		}
		if err := guard.Rollback(ctx); err != nil {
			t.Errorf("Rollback after Complete: %v", err)
		}
		l.stands(q, idem.Succeeded, 1)
	})
}

func (l *lab) savepoint(ctx context.Context, tx pgx.Tx, end func(pgx.Tx, context.Context) error) {
	l.Helper()
	nested, err := tx.Begin(ctx)
	if err != nil {
		l.Fatal(err)
	}
	if _, err := nested.Exec(ctx, `INSERT INTO business VALUES ('nested')`); err != nil {
		l.Fatal(err)
	}
	if err := end(nested, ctx); err != nil {
		l.Fatalf("ending a savepoint: %v", err)
	}
}

// refusesAfterEnd: a goroutine that outlives its work must not write on a connection that serves somebody else.
func refusesAfterEnd(ctx context.Context, t *testing.T, tx pgx.Tx) {
	t.Helper()
	const insert = `INSERT INTO business VALUES ('late')`
	batch := &pgx.Batch{}
	batch.Queue(insert)
	for name, use := range map[string]func() error{
		"exec":    func() error { _, err := tx.Exec(ctx, insert); return err },
		"query":   func() error { rows, _ := tx.Query(ctx, insert); rows.Close(); return rows.Err() },
		"row":     func() error { return tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)) },
		"batch":   func() error { return tx.SendBatch(ctx, batch).Close() },
		"prepare": func() error { _, err := tx.Prepare(ctx, "late", insert); return err },
		"copy": func() error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"business"}, []string{"id"}, pgx.CopyFromRows([][]any{{"late"}}))
			return err
		},
		"begin":    func() error { _, err := tx.Begin(ctx); return err },
		"commit":   func() error { return tx.Commit(ctx) },
		"rollback": func() error { return tx.Rollback(ctx) },
	} {
		if err := use(); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s after the end: %v, want ErrTxClosed", name, err)
		}
	}
}

func TestTxOutsideOfGuardedWork(t *testing.T) {
	t.Parallel()
	if _, err := pgstore.Tx(t.Context()); !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("Tx: %v, want ErrNoTx", err)
	}
}

func TestZombieCommitsNothing(t *testing.T) {
	t.Parallel()
	l, q := newShop(t), request("1")
	ctx, tx := l.store.Open(t.Context(), l.won(q, 1), time.Minute)
	l.insertBusiness(ctx)
	l.lapse(q.Key)
	second := l.won(again(q), 2)
	if err := tx.Complete(ctx, result()); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("Complete: %v, want ErrClaimLost", err)
	}
	l.business(0)
	if err := l.store.Complete(t.Context(), second, result()); err != nil {
		t.Fatal(err)
	}
	l.stands(q, idem.Succeeded, 2)
}

// A taker whose own transaction is still open has the row: the late finish must say so, not wait for it.
func TestZombieBesideAnOpenTakeover(t *testing.T) {
	t.Parallel()
	l, q := newShop(t), request("1")
	ctx, tx := l.store.Open(t.Context(), l.won(q, 1), time.Minute)
	l.insertBusiness(ctx)
	l.lapse(q.Key)
	takerCtx, taker := l.begun(again(q))
	if err := tx.Complete(ctx, result()); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("Complete: %v, want ErrClaimLost", err)
	}
	l.commit(takerCtx, taker)
	l.business(0)
	l.stands(q, idem.Succeeded, 2)
}
