package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
)

// Both ways of claiming meet on one key, as in a deploy that changes a route from one to the other: one business row comes of it.
func TestBothWaysOnOneKey(t *testing.T) {
	t.Parallel()
	l := newShop(t, func(c *pgxpool.Config) { c.MaxConns = 20 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		var won atomic.Int64
		var running sync.WaitGroup
		for i := range 16 {
			claim := l.store.Claim
			if i%2 == 0 {
				claim = nil
			}
			running.Go(func() { l.untilDone(ctx, request(id), claim, &won) })
		}
		running.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("key %s: %d finished", id, n)
		}
	}
	l.business(5)
}

// untilDone behaves as a duplicate does: it asks until the work is done by itself or by another.
func (l *lab) untilDone(ctx context.Context, q idem.Request, claim func(context.Context, idem.Request) (idem.Answer, error), won *atomic.Int64) {
	q = again(q)
	for {
		var answer idem.Answer
		var work context.Context
		var tx idem.Tx
		var err error
		if claim == nil {
			answer, work, tx, err = l.store.ClaimTx(ctx, q, time.Minute)
		} else if answer, err = claim(ctx, q); err == nil && answer.Outcome == idem.Won {
			work, tx = l.store.Open(ctx, answer.Claim, time.Minute)
		}
		switch {
		case err != nil:
			l.Errorf("claim: %v", err)
			return
		case answer.Outcome == idem.Done:
			return
		case answer.Outcome == idem.Won:
			l.insertBusiness(work)
			if err := tx.Complete(work, result()); err != nil {
				l.Errorf("Complete: %v", err)
			}
			won.Add(1)
			return
		}
	}
}

// A server that dies between claim and commit leaves the evidence of a claim that was committed first, and nothing of one that was not.
func TestServerDiesDuringTheWork(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			server := testkit.PostgresServer(t)
			db := server.Database(t)
			db.Exec(t, script(t))
			db.Exec(t, `CREATE TABLE business (id text)`)
			pool := db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.ConnectTimeout = 2 * time.Second })
			l := &lab{T: t, db: db, pool: pool, store: open(t, pool)}
			q := request("1")
			ctx, tx := w.start(l, q)
			l.insertBusiness(ctx)
			server.Stop(t)
			if err := tx.Complete(ctx, result()); err == nil {
				t.Fatal("Complete succeeded on a dead server")
			}
			server.Start(t)
			testkit.Eventually(t, 10*time.Second, "it answers again", func() bool { return l.store.Ping(t.Context()) == nil })
			l.business(0)
			l.leaves(q, w.after)
			if w.after == idem.Processing {
				l.lapse(q.Key)
				l.won(again(q), 2)
			}
		})
	}
}

func TestRetentionAndKeep(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		keep            time.Duration
		until, expiring string // SQL over the row
	}{
		"as long as the record": {0, `result_until IS NULL`, `expires_at > now() + interval '23 hours'`},
		"an hour":               {time.Hour, `result_until BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes'`, `expires_at > now() + interval '23 hours'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := newLab(t), request("1")
			claim := l.won(q, 1)
			l.exec(`UPDATE ` + table + ` SET expires_at = now()`)
			kept := result()
			kept.Keep = row.keep
			if err := l.store.Complete(t.Context(), claim, kept); err != nil {
				t.Fatal(err)
			}
			for _, condition := range []string{row.until, row.expiring} {
				if !query[bool](l, `SELECT `+condition+` FROM `+table) {
					t.Errorf("not so: %s", condition)
				}
			}
			l.exec(`UPDATE ` + table + ` SET result_until = now() - interval '1 second'`)
			answer := l.asked(idem.Done, again(q))
			if r := answer.Record.Result; r.Kept || r.Status != 201 || len(r.Header) > 0 || len(r.Body) > 0 {
				t.Errorf("a result past its time: %+v", r)
			}
		})
	}
}

// What people see in the table is what was asked, as far as it fits.
func TestRowsAreReadable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	q := request("order 17")
	q.Key.Scope = "alice"
	if err := l.store.Complete(t.Context(), l.won(q, 1), result()); err != nil {
		t.Fatal(err)
	}
	want := `shop|order.create|~alice~order 17|succeeded|1|alice|request-order 17|201|[["Location","/orders/1"]]|1`
	got := query[string](l, `SELECT concat_ws('|', tenant, biz_type, biz_key, status, attempt, subject, request_id, result_status, result_headers, format) FROM `+table)
	if got != want {
		t.Errorf("row %s, want %s", got, want)
	}
	elsewhere := idem.Request{Key: idem.Key{Tenant: "shop", Type: "order.create", ID: "never"}, Subject: q.Subject, RequestID: q.RequestID}
	record, err := l.store.Lookup(t.Context(), elsewhere)
	if err != nil || record.Key != q.Key {
		t.Errorf("found by request id: %+v, %v; want key %+v", record.Key, err, q.Key)
	}
}

// A trigger of the application's own that fails is reported as what it is.
func TestTriggersOnTheTable(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	l.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'audit is full' USING ERRCODE = '53100'; END $$`)
	claim := l.won(q, 1)
	l.exec(`CREATE TRIGGER audit BEFORE UPDATE ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION refuse()`)
	for name, err := range map[string]error{
		"complete": l.store.Complete(t.Context(), claim, result()),
		"release":  l.store.Release(t.Context(), claim, idem.Failed, ""),
	} {
		if err == nil || errors.Is(err, idem.ErrClaimLost) {
			t.Errorf("%s: %v, want the trigger's error", name, err)
		}
	}
	l.exec(`DROP TRIGGER audit ON ` + table)
	if err := l.store.Complete(t.Context(), claim, result()); err != nil {
		t.Error(err)
	}
}

func TestReleaseTakesThreeStates(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	claim := l.won(request("1"), 1)
	for _, as := range []idem.State{"", idem.Succeeded, "done"} {
		if err := l.store.Release(t.Context(), claim, as, ""); !errors.Is(err, idem.ErrInvalid) {
			t.Errorf("as %q: %v, want ErrInvalid", as, err)
		}
	}
	l.stands(request("1"), idem.Processing, 1)
}

func TestPurgeOfNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, limit := range []int{-1, 0, 1} {
		if n, err := l.store.Purge(t.Context(), nil, limit); n != 0 || err != nil {
			t.Errorf("Purge(%d): %d, %v", limit, n, err)
		}
	}
}

// A pool without a free connection delays, and the caller's context bounds it.
func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	l := newShop(t, one)
	claim := l.won(request("other"), 1)
	ctx, tx := l.store.Open(t.Context(), l.won(request("1"), 1), time.Minute)
	l.insertBusiness(ctx)
	bounded, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	work, _ := l.store.Open(bounded, claim, time.Minute)
	for name, call := range map[string]func() error{
		"claim":    func() error { _, err := l.store.Claim(bounded, request("2")); return err },
		"claim tx": func() error { _, _, _, err := l.store.ClaimTx(bounded, request("2"), time.Minute); return err },
		"tx":       func() error { _, err := pgstore.Tx(work); return err },
		"complete": func() error { return l.store.Complete(bounded, claim, result()) },
	} {
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}
	l.commit(ctx, tx)
	l.stands(request("other"), idem.Processing, 1)
}
