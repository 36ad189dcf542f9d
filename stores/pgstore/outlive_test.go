package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
)

// A goroutine that outlives its work goes on writing: what it was told is written is in the commit, and nothing else ever is.
func TestWritesBesideTheEnd(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l := newShop(t, two)
		for _, commits := range []bool{true, false, true} {
			q := request(idem.NewOwner())
			ctx, guard := w.start(l, q)
			tx, err := pgstore.Tx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var written atomic.Int64
			var late sync.WaitGroup
			late.Go(func() { l.writeUntilRefused(ctx, tx, q.Key.ID, commits, &written) })
			testkit.Eventually(t, 10*time.Second, "it writes", func() bool { return written.Load() > 3 })
			want := int64(0)
			if commits {
				l.commit(ctx, guard)
			} else if err := guard.Rollback(ctx); err != nil {
				t.Error(err)
			}
			for range 20 { // its connection serves others now
				if err := l.store.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			}
			late.Wait()
			if commits {
				want = written.Load()
			}
			if got := query[int64](l, `SELECT count(*) FROM business WHERE id = $1`, q.Key.ID); got != want {
				t.Errorf("%d rows, want %d", got, want)
			}
		}
	})
}

// writeUntilRefused uses the transaction in every way in turn or, as results that wait to be read are in the way of a commit, in the one that leaves none.
func (l *lab) writeUntilRefused(ctx context.Context, tx pgx.Tx, id string, whole bool, written *atomic.Int64) {
	const insert = `INSERT INTO business VALUES ($1) RETURNING id`
	ways := []func() error{
		func() error { _, err := tx.Exec(ctx, insert, id); return err },
		func() error { return tx.QueryRow(ctx, insert, id).Scan(new(string)) },
		func() error {
			rows, err := tx.Query(ctx, insert, id)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
		func() error {
			batch := &pgx.Batch{}
			batch.Queue(insert, id)
			results := tx.SendBatch(ctx, batch)
			_, err := results.Exec()
			return errors.Join(err, results.Close())
		},
	}
	if whole {
		ways = ways[:1]
	}
	for i := 0; ; i++ {
		if err := ways[i%len(ways)](); err != nil {
			return
		}
		written.Add(1)
	}
}

// Rows that a goroutine still reads are not read from the next user's connection.
func TestRowsBesideTheEnd(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l := newShop(t)
		ctx, guard := w.start(l, request("1"))
		tx, err := pgstore.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(ctx, `SELECT generate_series(1, 10000000)`)
		if err != nil {
			t.Fatal(err)
		}
		read, ended := make(chan struct{}), make(chan error)
		go func() {
			for i := 0; rows.Next(); i++ {
				if i == 10 {
					close(read)
				}
			}
			rows.Close()
			ended <- rows.Err()
		}()
		<-read
		if err := guard.Rollback(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("it read all rows of a transaction that was rolled back")
		}
	})
}

// A statement that takes long must not hold up a rollback, nor a completion for longer than its context allows.
func TestStatementUnderWayAtTheEnd(t *testing.T) {
	ends := map[string]func(ctx context.Context, guard idem.Tx) error{
		"rollback": func(ctx context.Context, guard idem.Tx) error { return guard.Rollback(ctx) },
		"complete": func(ctx context.Context, guard idem.Tx) error {
			bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := guard.Complete(bounded, result()); !errors.Is(err, context.DeadlineExceeded) {
				return errors.Join(errors.New("want the context's error"), err)
			}
			return nil
		},
	}
	const sleep = `SELECT pg_sleep(600)`
	stores := map[string]struct {
		shop  func(t *testing.T) *lab
		sleep func(ctx context.Context) error
	}{
		"pool":         {func(t *testing.T) *lab { return newShop(t) }, executes(sleep)},
		"database/sql": {func(t *testing.T) *lab { l, _ := sqlShop(t); return l }, executes(sleep)},
		"database/sql, by its own transaction": {func(t *testing.T) *lab { l, _ := sqlShop(t); return l }, func(ctx context.Context) error {
			tx, err := pgstore.SQLTx(ctx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, sleep)
			return err
		}},
	}
	eachWay(t, func(t *testing.T, w way) {
		for name, end := range ends {
			for kind, store := range stores {
				l := store.shop(t)
				ctx, guard := w.start(l, request("1"))
				l.insertBusiness(ctx)
				failed := make(chan error, 1)
				go func() { failed <- store.sleep(ctx) }()
				l.sleeps()
				begun := time.Now()
				if err := end(ctx, guard); err != nil {
					t.Errorf("%s on %s: %v", name, kind, err)
				}
				if took := time.Since(begun); took > 8*time.Second {
					t.Errorf("%s on %s took %v", name, kind, took)
				}
				if err := <-failed; err == nil {
					t.Errorf("%s on %s: the statement succeeded", name, kind)
				}
				l.business(0)
			}
		}
	})
}

func executes(sql string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		tx, err := pgstore.Tx(ctx)
		if err == nil {
			_, err = tx.Exec(ctx, sql)
		}
		return err
	}
}

func (l *lab) sleeps() {
	l.Helper()
	testkit.Eventually(l, 10*time.Second, "the statement runs", func() bool {
		return query[int](l, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`) == 1
	})
}

// The end also reaches work that still waits for a connection.
func TestTxAskedForAtTheEnd(t *testing.T) {
	t.Parallel()
	l, db := sqlShop(t)
	db.SetMaxOpenConns(1)
	claim := l.won(request("2"), 1)
	first, holder := l.store.Open(t.Context(), l.won(request("1"), 1), time.Minute)
	l.insertBusiness(first)
	ctx, guard := l.store.Open(t.Context(), claim, time.Minute)
	asked := make(chan error, 1)
	go func() { _, err := pgstore.Tx(ctx); asked <- err }()
	testkit.Eventually(t, 10*time.Second, "it waits", func() bool { return db.Stats().WaitCount == 1 })
	if err := guard.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("Tx: %v, want that it was given up", err)
	}
	l.commit(first, holder)
	l.business(1)
}
