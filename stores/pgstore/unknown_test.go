package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

// linked is a shop whose store is behind a link; the lab's own pool is not. The mode needs no preparing, so that finish and COMMIT are one message.
func linked(t *testing.T) (near, far *lab, link *testkit.Link) {
	t.Helper()
	near = newShop(t)
	store, link := near.via(mode(pgx.QueryExecModeExec))
	far = &lab{T: t, db: near.db, pool: near.pool, store: store}
	return near, far, link
}

func TestReplyOfTheCommitIsLost(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, far, link := linked(t)
		q := request("1")
		ctx, tx := w.start(far, q)
		l.insertBusiness(ctx)
		link.DropReplies(1)
		if err := tx.Complete(ctx, result()); err != nil {
			t.Fatalf("Complete: %v; it was committed, and a new connection can tell", err)
		}
		l.business(1)
		if record := l.stands(q, idem.Succeeded, 1); record.Owner != q.Owner {
			t.Errorf("owner %q, want %q", record.Owner, q.Owner)
		}
	})
}

func TestCommitNeverArrived(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, far, link := linked(t)
		q := request("1")
		ctx, tx := w.start(far, q)
		l.insertBusiness(ctx)
		link.Cut()
		err := tx.Complete(ctx, result())
		if err == nil || errors.Is(err, idem.ErrClaimLost) || errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Fatalf("Complete: %v, want an error that says that it is rolled back", err)
		}
		l.business(0)
		l.leaves(q, w.after)
		if w.after == "" {
			return
		}
		if record := l.stands(q, idem.Processing, 1); record.Owner != "" || record.Live() {
			t.Errorf("record %+v, want no owner and no lease", record)
		}
		late := idem.Claim{Request: q, Attempt: 1}
		if err := l.store.Complete(t.Context(), late, result()); !errors.Is(err, idem.ErrClaimLost) {
			t.Errorf("the late finish: %v, want ErrClaimLost", err)
		}
	})
}

func TestCommitUnderWayWhenTheContextEnds(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, far, link := linked(t)
		q := request("1")
		ctx, tx := w.start(far, q)
		l.insertBusiness(ctx)
		link.Latency(400 * time.Millisecond)
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		err := tx.Complete(ctx, result())
		record, missing := l.second().Lookup(t.Context(), q)
		done := missing == nil && record.State == idem.Succeeded
		if (err == nil) != done {
			t.Errorf("Complete: %v, and the record is %s", err, record.State)
		}
		if done {
			l.business(1)
		} else {
			l.business(0)
		}
	})
}

func TestNoNewConnectionAfterACutCommit(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l, far, link := linked(t)
		ctx, tx := w.start(far, request("1"))
		l.insertBusiness(ctx)
		link.Refuse(true)
		link.DropReplies(1)
		if err := tx.Complete(ctx, result()); !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Fatalf("Complete: %v, want ErrOutcomeUnknown", err)
		}
		l.business(1)
	})
}

// Where the claim was lost before the link, the answer is that.
func TestCutCommitOfALostClaim(t *testing.T) {
	t.Parallel()
	l, far, link := linked(t)
	q := request("1")
	ctx, tx := far.store.Open(t.Context(), far.won(q, 1), time.Minute)
	l.insertBusiness(ctx)
	l.lapse(q.Key)
	l.won(again(q), 2)
	link.DropReplies(1)
	if err := tx.Complete(ctx, result()); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("Complete: %v, want ErrClaimLost", err)
	}
	l.business(0)
	l.stands(q, idem.Processing, 2)
}

func TestFinishWithoutATransactionOverABadLink(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault func(*testkit.Link)
		want  error
	}{
		"its reply is lost":         {func(l *testkit.Link) { l.DropReplies(1) }, nil},
		"the link is cut before it": {func(l *testkit.Link) { l.Cut() }, nil},
		"the link stays away":       {func(l *testkit.Link) { l.Refuse(true); l.Cut() }, idem.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, far, link := linked(t)
			q := request("1")
			ctx, tx := far.store.Open(t.Context(), far.won(q, 1), time.Minute)
			row.fault(link)
			if err := tx.Complete(ctx, result()); !errors.Is(err, row.want) {
				t.Fatalf("Complete: %v, want %v", err, row.want)
			}
			if row.want == nil {
				l.stands(q, idem.Succeeded, 1)
			}
		})
	}
}

// The server ends a session that does not go on, and with it the transaction that holds the key.
func TestFrozenHolderLosesTheKey(t *testing.T) {
	t.Parallel()
	l, q := newShop(t), request("1")
	const limit = 300 * time.Millisecond
	answer, ctx, frozen, err := l.store.ClaimTx(t.Context(), q, limit)
	if err != nil || answer.Outcome != idem.Won {
		t.Fatalf("ClaimTx: %v, %v", answer.Outcome, err)
	}
	l.insertBusiness(ctx)
	if busy, _, _, err := l.second().ClaimTx(t.Context(), again(q), limit); err != nil || busy.Outcome != idem.Busy {
		t.Fatalf("a duplicate: %v, %v; want busy", busy.Outcome, err)
	}
	testkit.Eventually(t, 10*time.Second, "a duplicate wins", func() bool {
		next, ctx, tx, err := l.store.ClaimTx(t.Context(), again(q), limit)
		if err != nil {
			t.Fatal(err)
		}
		if next.Outcome == idem.Won {
			l.commit(ctx, tx)
		}
		return next.Outcome == idem.Won
	})
	if err := frozen.Complete(ctx, result()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) {
		t.Errorf("the frozen one's Complete: %v, want an error that says that nothing was committed", err)
	}
	l.business(0)
}

// A claim that was committed first stands on its own lease; only the work's transaction goes.
func TestFrozenWorkOfACommittedClaim(t *testing.T) {
	t.Parallel()
	l, q := newShop(t), request("1")
	ctx, frozen := l.store.Open(t.Context(), l.won(q, 1), 50*time.Millisecond)
	l.insertBusiness(ctx)
	testkit.Eventually(t, 10*time.Second, "the session ends", func() bool {
		return query[int](l, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`) == 0
	})
	if err := frozen.Complete(ctx, result()); err == nil || errors.Is(err, idem.ErrOutcomeUnknown) || errors.Is(err, idem.ErrClaimLost) {
		t.Errorf("Complete: %v, want an error that says that nothing was committed", err)
	}
	l.business(0)
	l.stands(q, idem.Processing, 1)
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	server := testkit.PostgresServer(t)
	db := server.Database(t)
	db.Exec(t, script(t))
	pool := db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.ConnectTimeout = 2 * time.Second })
	l := &lab{T: t, db: db, pool: pool, store: open(t, pool)}
	q := request("1")
	claim := l.won(q, 1)
	if _, err := l.store.Extend(t.Context(), []idem.Claim{claim}); err != nil {
		t.Fatal(err)
	}
	server.Stop(t)
	for name, call := range map[string]func() error{
		"claim":    func() error { _, err := l.store.Claim(t.Context(), request("2")); return err },
		"claim tx": func() error { _, _, _, err := l.store.ClaimTx(t.Context(), request("2"), time.Second); return err },
		"lookup":   func() error { _, err := l.store.Lookup(t.Context(), q); return err },
		"extend":   func() error { _, err := l.store.Extend(t.Context(), []idem.Claim{claim}); return err },
		"complete": func() error { return l.store.Complete(t.Context(), claim, result()) },
		"release":  func() error { return l.store.Release(t.Context(), claim, idem.Failed, "") },
		"purge":    func() error { _, err := l.store.Purge(t.Context(), nil, 1); return err },
		"ping":     func() error { return l.store.Ping(t.Context()) },
	} {
		err := call()
		if err == nil || errors.Is(err, idem.ErrClaimLost) || errors.Is(err, idem.ErrNotFound) {
			t.Errorf("%s while the server is away: %v", name, err)
		}
	}
	server.Start(t)
	testkit.Eventually(t, 10*time.Second, "it answers again", func() bool { return l.store.Ping(t.Context()) == nil })
	if lost, err := l.store.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) > 0 {
		t.Errorf("Extend after the restart: %v, %v", lost, err)
	}
	l.stands(q, idem.Processing, 1)
}
