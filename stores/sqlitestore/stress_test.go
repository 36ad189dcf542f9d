package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// Whatever callers do at once, and wherever they stop: a business key has one order if its record says so, and none otherwise.
func TestOrdersAndRecordsNeverPart(t *testing.T) {
	t.Parallel()
	const callers, calls, keys = 6, 40, 30
	f := newFixture(t)
	another := f.another()
	var running sync.WaitGroup
	for caller := range callers {
		store := f.store
		if caller%3 == 0 {
			store = another
		}
		running.Go(func() {
			for range calls {
				f.attempt(store, fmt.Sprint(rand.IntN(keys)))
			}
		})
	}
	running.Wait()

	if n := f.count(`SELECT count(*) FROM orders LEFT JOIN idempotent_record ON id = biz_key AND status = 'succeeded' WHERE biz_key IS NULL`); n != 0 {
		t.Errorf("%d orders without a record", n)
	}
	if n := f.count(`SELECT count(*) FROM idempotent_record LEFT JOIN orders ON id = biz_key WHERE status = 'succeeded' AND id IS NULL`); n != 0 {
		t.Errorf("%d records without an order", n)
	}
	if f.count(`SELECT count(*) FROM orders`) == 0 {
		t.Error("no order at all")
	}
	if urgent, regular := f.store.Waiting(); urgent+regular > 0 {
		t.Errorf("%d and %d wait for a gate that nobody holds", urgent, regular)
	}
	f.won(request("after all"), 1)
	if in := f.db.Stats().InUse; in != 0 {
		t.Errorf("%d connections are not given back", in)
	}
}

// attempt makes one order, or stops in one of the ways in which callers stop.
func (f fixture) attempt(store *sqlitestore.Store, id string) {
	ctx := f.Context()
	var cancel context.CancelFunc = func() {}
	if rand.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(3000))*time.Microsecond)
	}
	defer cancel()
	claim, workCtx, work, err := f.begin(ctx, store, request(id))
	if err != nil || work == nil {
		f.expected(err)
		return
	}
	if rand.IntN(3) == 0 {
		_, err := store.Extend(workCtx, []idem.Claim{claim})
		f.expected(err)
	}
	tx, err := sqlitestore.Tx(workCtx)
	if err == nil {
		_, err = tx.ExecContext(workCtx, `INSERT INTO orders VALUES (?)`, id)
	}
	if err != nil || rand.IntN(4) == 0 {
		f.expected(err)
		f.rollback(work)
		err := store.Release(f.Context(), claim, idem.Failed, "stopped")
		if !errors.Is(err, idem.ErrClaimLost) {
			f.expected(err)
		}
		return
	}
	f.expected(work.Complete(ctx, created()))
}

// begin claims in either way. Work is nil where there is nothing to do.
func (f fixture) begin(ctx context.Context, store *sqlitestore.Store, q idem.Request) (idem.Claim, context.Context, idem.Tx, error) {
	if rand.IntN(2) == 0 {
		answer, workCtx, work, err := store.ClaimTx(ctx, q, time.Minute)
		return answer.Claim, workCtx, work, err
	}
	answer, err := store.Claim(ctx, q)
	if err != nil || answer.Outcome != idem.Won {
		return idem.Claim{}, nil, nil, err
	}
	workCtx, work := store.Open(ctx, answer.Claim, time.Minute)
	return answer.Claim, workCtx, work, nil
}

// expected fails the test on errors other than those of a caller that stopped.
func (f fixture) expected(err error) {
	f.Helper()
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sqlitestore.ErrWorkEnded) {
		return
	}
	f.Errorf("unexpected: %v", err)
}
