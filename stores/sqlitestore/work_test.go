package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

func TestWorkAndRecordCommitTogether(t *testing.T) {
	t.Parallel()
	begin := map[string]func(f fixture, q idem.Request) (sqlitestore.DBTX, idem.Tx){
		"claim first": func(f fixture, q idem.Request) (sqlitestore.DBTX, idem.Tx) {
			_, tx, work := f.work(f.won(q, 1))
			return tx, work
		},
		"same transaction": func(f fixture, q idem.Request) (sqlitestore.DBTX, idem.Tx) {
			_, tx, work := f.claimTx(q, 0)
			return tx, work
		},
	}
	for name, opened := range begin {
		t.Run(name+", completed", func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			tx, work := opened(f, q)
			f.order(tx, "1")
			f.orders(0) // not seen beside the transaction
			f.complete(work)
			f.orders(1)
			answer := f.claim(again(q), idem.Done)
			if string(answer.Record.Result.Body) != "made" || answer.Record.Attempt != 1 {
				t.Fatalf("replayed %+v", answer.Record)
			}
		})
		t.Run(name+", rolled back", func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			tx, work := opened(f, q)
			f.order(tx, "1")
			f.rollback(work)
			f.rollback(work) // harmless
			f.orders(0)
			if name == "claim first" {
				f.stands(q, idem.Processing, 1)
			} else {
				f.records(0)
			}
		})
	}
}

func TestWorkWithoutTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	q := request("quiet")
	ctx, work := f.store.Open(t.Context(), f.won(q, 1), time.Minute)

	// The work never asked: other writers go on.
	other := f.won(request("other"), 1)
	if err := f.store.Complete(ctx, other, created()); err != nil {
		t.Fatalf("Complete of another claim from the work's context: %v", err)
	}
	f.complete(work)
	f.stands(q, idem.Succeeded, 1)
	if _, err := sqlitestore.Tx(ctx); !errors.Is(err, sqlitestore.ErrWorkEnded) {
		t.Fatalf("Tx after the end: %v", err)
	}

	_, rolledBack := f.store.Open(t.Context(), f.won(request("back"), 1), 0)
	f.rollback(rolledBack)
	f.stands(request("back"), idem.Processing, 1)
	if _, err := sqlitestore.Tx(t.Context()); !errors.Is(err, sqlitestore.ErrNoWork) {
		t.Fatalf("Tx outside work: %v", err)
	}
}

func TestZombieCannotCommit(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f fixture, q idem.Request, first idem.Claim){
		"taken over": func(f fixture, q idem.Request, _ idem.Claim) {
			f.clock.advance(2 * lease)
			f.won(again(q), 2)
		},
		"released": func(f fixture, _ idem.Request, first idem.Claim) {
			if err := f.store.Release(f.Context(), first, idem.Failed, "refused"); err != nil {
				f.Fatal(err)
			}
		},
		"row deleted": func(f fixture, _ idem.Request, _ idem.Claim) { f.exec(`DELETE FROM idempotent_record`) },
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			first := f.won(q, 1)
			ctx, work := f.store.Open(t.Context(), first, 0)
			lose(f, q, first)
			if _, err := sqlitestore.Tx(ctx); !errors.Is(err, idem.ErrClaimLost) {
				t.Errorf("Tx: %v, want ErrClaimLost", err)
			}
			if err := work.Complete(t.Context(), created()); !errors.Is(err, idem.ErrClaimLost) {
				t.Errorf("Complete: %v, want ErrClaimLost", err)
			}
		})
	}
}

func TestClaimLostInsideTheTransaction(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	_, tx, work := f.work(f.won(q, 1))
	f.order(tx, "1")
	// Only the work itself can write here; it stands for whatever made the fence refuse.
	if _, err := tx.ExecContext(t.Context(), `UPDATE idempotent_record SET attempt = 7`); err != nil {
		t.Fatal(err)
	}
	if err := work.Complete(t.Context(), created()); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("Complete: %v, want ErrClaimLost", err)
	}
	f.orders(0)
	f.stands(q, idem.Processing, 1)
}

// SQLite undoes a transaction by itself on some errors, and what follows would commit alone.
func TestTransactionUndoneUnderneath(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f fixture, tx sqlitestore.DBTX){
		"on conflict rollback": func(f fixture, tx sqlitestore.DBTX) {
			if _, err := tx.ExecContext(f.Context(), `INSERT OR ROLLBACK INTO orders VALUES ('1')`); err == nil {
				f.Fatal("the second insert of an order went through")
			}
		},
		"statement interrupted": func(f fixture, tx sqlitestore.DBTX) {
			ctx, cancel := context.WithCancel(f.Context())
			defer cancel()
			interrupted := make(chan error, 1)
			go func() {
				_, err := tx.ExecContext(ctx, endless)
				interrupted <- err
			}()
			before := f.logSize()
			f.eventually("the statement has outgrown the cache", func() bool { return f.logSize() > before })
			cancel()
			if err := <-interrupted; !errors.Is(err, context.Canceled) {
				f.Fatalf("endless insert: %v", err)
			}
		},
		"ended by the work's own statement": func(f fixture, tx sqlitestore.DBTX) {
			if _, err := tx.ExecContext(f.Context(), `ROLLBACK`); err != nil {
				f.Fatal(err)
			}
		},
	}
	for name, undo := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			ctx, tx, work := f.work(f.won(q, 1))
			f.order(tx, "1")
			undo(f, tx)
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO orders VALUES ('alone')`); !errors.Is(err, sqlitestore.ErrWorkEnded) {
				t.Errorf("a statement after it: %v, want ErrWorkEnded", err)
			}
			f.refused(ctx, tx)
			if err := work.Complete(t.Context(), created()); !errors.Is(err, sqlitestore.ErrWorkEnded) {
				t.Errorf("Complete: %v, want ErrWorkEnded", err)
			}
			f.orders(0)
			f.leftFree(q)
		})
		t.Run(name+", completed at once", func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			_, tx, work := f.work(f.won(q, 1))
			f.order(tx, "1")
			undo(f, tx)
			if err := work.Complete(t.Context(), created()); !errors.Is(err, sqlitestore.ErrWorkEnded) {
				t.Errorf("Complete: %v, want ErrWorkEnded", err)
			}
			f.orders(0)
			f.leftFree(q)
		})
	}
}

// logSize is how much of the write-ahead log is written.
func (f fixture) logSize() int64 {
	f.Helper()
	log, err := os.Stat(f.path + "-wal")
	if err != nil {
		f.Fatal(err)
	}
	return log.Size()
}

// refused fails the test unless every method of an ended transaction says so.
func (f fixture) refused(ctx context.Context, tx sqlitestore.DBTX) {
	f.Helper()
	if _, err := tx.QueryContext(f.Context(), `SELECT 1`); !errors.Is(err, sqlitestore.ErrWorkEnded) { //nolint:rowserrcheck,sqlclosecheck // there are no rows
		f.Errorf("QueryContext: %v, want ErrWorkEnded", err)
	}
	if _, err := tx.PrepareContext(f.Context(), `SELECT 1`); !errors.Is(err, sqlitestore.ErrWorkEnded) { //nolint:sqlclosecheck // there is no statement
		f.Errorf("PrepareContext: %v, want ErrWorkEnded", err)
	}
	var one int
	if err := tx.QueryRowContext(f.Context(), `SELECT 1`).Scan(&one); !errors.Is(err, sql.ErrTxDone) {
		f.Errorf("QueryRowContext: %v, want ErrTxDone", err)
	}
	if _, err := sqlitestore.Tx(ctx); !errors.Is(err, sqlitestore.ErrWorkEnded) {
		f.Errorf("Tx: %v, want ErrWorkEnded", err)
	}
}

// leftFree fails the test unless the claim is processing, unowned, its lease ended and its payload bound, so that the next caller takes it.
func (f fixture) leftFree(q idem.Request) {
	f.Helper()
	record := f.stands(q, idem.Processing, 1)
	if record.Owner != "" || record.LeaseLeft > 0 || string(record.Fingerprint) != "payload" {
		f.Fatalf("left as %+v", record)
	}
	other := again(q)
	other.Fingerprint = []byte("another")
	f.claim(other, idem.Mismatch)
	f.won(again(q), 2)
}

func TestTransactionOutlivesTheContextOfTx(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	ctx, work := f.store.Open(t.Context(), f.won(q, 1), 0)
	short, cancel := context.WithCancel(ctx)
	tx, err := sqlitestore.Tx(short)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	f.order(tx, "1")
	f.complete(work)
	f.orders(1)
}

func TestRowsLeftOpenDoNotStopTheEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]func(f fixture, work idem.Tx){"complete": fixture.complete, "rollback": fixture.rollback}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(`INSERT INTO orders VALUES ('a'), ('b'), ('c')`)
			_, tx, work := f.work(f.won(request("1"), 1))
			rows, err := tx.QueryContext(t.Context(), `SELECT id FROM orders`) //nolint:sqlclosecheck // left open: the point
			if err != nil || !rows.Next() {
				t.Fatalf("Query: %v", err)
			}
			prepared, err := tx.PrepareContext(t.Context(), `SELECT id FROM orders WHERE id > ?`) //nolint:sqlclosecheck // left open: the point
			if err != nil {
				t.Fatal(err)
			}
			more, err := prepared.QueryContext(t.Context(), "a") //nolint:sqlclosecheck // left open: the point
			if err != nil || !more.Next() {
				t.Fatalf("prepared Query: %v", err)
			}
			end(f, work)
			if rows.Next() || more.Next() {
				t.Error("rows go on after the end")
			}
			if err := errors.Join(rows.Err(), more.Err()); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
				t.Logf("rows ended with %v", err)
			}
			f.won(request("2"), 1)
		})
	}
}
