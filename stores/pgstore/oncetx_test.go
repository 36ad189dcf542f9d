package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

func two(c *pgxpool.Config) { c.MaxConns = 2 }

func TestOnceTxRollsBackWithItsCaller(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	var runs atomic.Int64
	for range 2 {
		tx := l.own()
		got, err := pgstore.OnceTx(t.Context(), l.store, tx, payment("1"), l.pays(&runs))
		l.paid(got, err)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.business(0)
		l.unrecorded(payment("1"))
	}
	l.paid(entries()[1].call(l, payment("1"), l.pays(&runs)))
	if runs.Load() != 3 {
		t.Errorf("ran %d times", runs.Load())
	}
}

// The savepoint's end must not give the key away: until the caller commits, nobody else may run.
func TestOnceTxHoldsItsKeyUntilTheCallersCommit(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	var runs atomic.Int64
	tx := l.own()
	got, err := pgstore.OnceTx(t.Context(), l.store, tx, payment("1"), l.pays(&runs))
	l.paid(got, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := entries()[0].call(l, payment("1"), l.pays(&runs))
		waiting <- err
	}()
	begun := time.Now()
	if _, err := entries()[1].call(l, payment("1"), l.pays(&runs)); !errors.Is(err, idem.ErrInProgress) {
		t.Errorf("inside another transaction: %v, want ErrInProgress", err)
	}
	if took := time.Since(begun); took > 900*time.Millisecond {
		t.Errorf("it waited %v", took)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil || runs.Load() != 1 {
		t.Errorf("the one that waited: %v, %d runs", err, runs.Load())
	}
	l.business(2)
}

// Two transactions take two keys in opposite order: one of them is told so, at once, and neither waits for the other.
func TestOnceTxInAnyOrderDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	orders := [2][2]string{{"1", "2"}, {"2", "1"}}
	var runs atomic.Int64
	var holding, asking, running sync.WaitGroup
	holding.Add(len(orders))
	asking.Add(len(orders))
	refused := make(chan error, len(orders))
	for _, order := range orders {
		tx := l.own()
		running.Go(func() {
			_, first := pgstore.OnceTx(ctx, l.store, tx, payment(order[0]), l.pays(&runs))
			holding.Done()
			holding.Wait()
			_, second := pgstore.OnceTx(ctx, l.store, tx, payment(order[1]), l.pays(&runs))
			if first != nil || !errors.Is(second, idem.ErrInProgress) {
				t.Errorf("%v, then %v; want ErrInProgress", first, second)
			}
			asking.Done()
			asking.Wait() // what is rolled back before is free
			refused <- tx.Rollback(ctx)
		})
	}
	running.Wait()
	for range orders {
		if err := <-refused; err != nil {
			t.Error(err)
		}
	}
	l.business(0)
	l.manyInAnyOrder(ctx)
}

// manyInAnyOrder has callers repeat their whole transaction until it is through, as callers do.
func (l *lab) manyInAnyOrder(ctx context.Context) {
	l.Helper()
	var runs atomic.Int64
	var running sync.WaitGroup
	for i := range 8 {
		order := []string{"a", "b"}
		if i%2 == 1 {
			order = []string{"b", "a"}
		}
		running.Go(func() {
			for {
				err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
					for _, id := range order {
						if _, err := pgstore.OnceTx(ctx, l.store, tx, payment(id), l.pays(&runs)); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					return
				}
				if !errors.Is(err, idem.ErrInProgress) {
					l.Errorf("want only ErrInProgress: %v", err)
					return
				}
			}
		})
	}
	running.Wait()
	l.business(2)
}

// Guarded work may guard a part of itself: an order whose coupon is used once whatever orders it comes with.
func TestOnceTxInsideGuardedWork(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l := newShop(t)
		var runs atomic.Int64
		for _, id := range []string{"1", "2"} {
			ctx, guard := w.start(l, request(id))
			tx, err := pgstore.Tx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pgstore.OnceTx(ctx, l.store, tx, idem.K("coupon", "SPRING"), l.pays(&runs))
			l.paid(got, err)
			l.insertBusiness(ctx)
			l.commit(ctx, guard)
		}
		l.business(3)
	})
}

// fn's tx ends with fn: what it kept must not write into the rest of the caller's transaction.
func TestOnceTxTakesItsTransactionBack(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	tx := l.own()
	var kept pgx.Tx
	if _, err := pgstore.OnceTx(t.Context(), l.store, tx, payment("1"), func(inner pgx.Tx) (int, error) { kept = inner; return 1, nil }); err != nil {
		t.Fatal(err)
	}
	refusesAfterEnd(t.Context(), t, kept)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.business(1)
}
