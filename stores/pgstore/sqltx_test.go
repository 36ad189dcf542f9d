package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

func TestSQLTxIsTheWorksTransaction(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, _ := sqlShop(t)
		q := request("1")
		ctx, guard := w.start(l, q)
		tx, err := pgstore.SQLTx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l.insertBusiness(ctx) // by Tx
		if _, err := tx.ExecContext(ctx, `INSERT INTO business VALUES ($1)`, "y"); err != nil {
			t.Fatal(err)
		}
		statement, err := tx.PrepareContext(ctx, `INSERT INTO business VALUES ($1)`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := statement.ExecContext(ctx, "z"); err != nil {
			t.Fatal(err)
		}
		l.sees(ctx, tx, 3)
		l.business(0)
		l.commit(ctx, guard)
		l.business(3)
		l.stands(q, idem.Succeeded, 1)
		l.sqlIsOver(ctx, tx, statement)
	})
}

func (l *lab) sees(ctx context.Context, tx pgstore.DBTX, want int) {
	l.Helper()
	rows, err := tx.QueryContext(ctx, `SELECT id FROM business`)
	if err != nil {
		l.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		seen++
	}
	if err := rows.Err(); err != nil || seen != want {
		l.Errorf("it sees %d rows, %v; want %d", seen, err, want)
	}
	var counted int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM business`).Scan(&counted); err != nil || counted != want {
		l.Errorf("it counts %d rows, %v; want %d", counted, err, want)
	}
}

func (l *lab) sqlIsOver(ctx context.Context, tx pgstore.DBTX, statement *sql.Stmt) {
	l.Helper()
	for name, use := range map[string]func() error{
		"exec": func() error { _, err := tx.ExecContext(ctx, `SELECT 1`); return err },
		"query": func() error {
			rows, err := tx.QueryContext(ctx, `SELECT 1`)
			if err != nil {
				return err
			}
			defer rows.Close()
			return rows.Err()
		},
		"row": func() error { return tx.QueryRowContext(ctx, `SELECT 1`).Scan(new(int)) },
		"prepare": func() error {
			prepared, err := tx.PrepareContext(ctx, `SELECT 1`)
			if err == nil {
				defer prepared.Close()
			}
			return err
		},
		"again": func() error { _, err := pgstore.SQLTx(ctx); return err },
	} {
		if err := use(); !errors.Is(err, sql.ErrTxDone) {
			l.Errorf("%s after the end: %v, want ErrTxDone", name, err)
		}
	}
	if _, err := statement.ExecContext(ctx, "late"); err == nil {
		l.Error("a prepared statement wrote after the end")
	}
}

func TestSQLTxRollsBack(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, db := sqlShop(t)
		db.SetMaxOpenConns(2)
		for range 3 { // more often than there are connections
			q := request(idem.NewOwner())
			ctx, guard := w.start(l, q)
			tx, err := pgstore.SQLTx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO business VALUES ('x')`); err != nil {
				t.Fatal(err)
			}
			if err := guard.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			l.business(0)
			l.leaves(q, w.after)
		}
		if used := db.Stats().InUse; used != 0 {
			t.Errorf("%d connections are still in use", used)
		}
	})
}

// What the work leaves open on database/sql is closed with its transaction, and the connection goes back.
func TestSQLTxLeftOpen(t *testing.T) {
	leave := map[string]func(ctx context.Context, tx pgstore.DBTX) error{
		"rows": func(ctx context.Context, tx pgstore.DBTX) error {
			_, err := tx.QueryContext(ctx, `SELECT generate_series(1, 100000)`) //nolint:sqlclosecheck,rowserrcheck // left open: the point
			return err
		},
		"a row": func(ctx context.Context, tx pgstore.DBTX) error {
			return tx.QueryRowContext(ctx, `SELECT generate_series(1, 100000)`).Err()
		},
	}
	eachWay(t, func(t *testing.T, w way) {
		l, db := sqlShop(t)
		for name, open := range leave {
			for _, commits := range []bool{true, false} {
				q := request(idem.NewOwner())
				ctx, guard := w.start(l, q)
				l.insertBusiness(ctx)
				tx, err := pgstore.SQLTx(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := open(ctx, tx); err != nil {
					t.Fatal(err)
				}
				if commits {
					if err := guard.Complete(ctx, result()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) {
						t.Errorf("%s: Complete: %v, want an error that says that nothing was committed", name, err)
					}
				} else if err := guard.Rollback(ctx); err != nil {
					t.Errorf("%s: Rollback: %v", name, err)
				}
				l.business(0)
				if used := db.Stats().InUse; used != 0 {
					t.Fatalf("%s: %d connections are still in use", name, used)
				}
			}
		}
	})
}

func TestSQLTxOutsideOfItsWork(t *testing.T) {
	t.Parallel()
	if _, err := pgstore.SQLTx(t.Context()); !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("no work: %v, want ErrNoTx", err)
	}
	l := newShop(t)
	ctx, tx := l.begun(request("1"))
	if _, err := pgstore.SQLTx(ctx); !errors.Is(err, pgstore.ErrNotSQL) {
		t.Errorf("on a pool: %v, want ErrNotSQL", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
}

func TestOnceOnDatabaseSQL(t *testing.T) {
	t.Parallel()
	l, _ := sqlShop(t)
	for range 3 {
		got, err := pgstore.Once(t.Context(), l.store, payment("1"), func(ctx context.Context, _ pgx.Tx) (receipt, error) {
			tx, err := pgstore.SQLTx(ctx)
			if err != nil {
				return receipt{}, err
			}
			_, err = tx.ExecContext(ctx, `INSERT INTO business VALUES ('paid')`)
			return receipt{"G-7", 500}, err
		})
		l.paid(got, err)
	}
	l.business(1)
}
