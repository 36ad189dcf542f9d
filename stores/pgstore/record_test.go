package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/storetest"
)

func as(role string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.User = role }
}

// setting gives every session a default, as ALTER DATABASE would.
func setting(name, value string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

// A database whose default is stricter changes nothing: commands and the work's transactions say READ COMMITTED themselves.
func TestContractUnderSerializableDefault(t *testing.T) {
	t.Parallel()
	storetest.Run(t, backend(t, "", setting("default_transaction_isolation", "serializable")))
}

func TestWorkIsReadCommitted(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		l := newShop(t, setting("default_transaction_isolation", "repeatable read"), setting("lock_timeout", "1234"))
		ctx, tx := w.start(l, request("1"))
		for name, want := range map[string]string{
			"transaction_isolation":               "read committed",
			"idle_in_transaction_session_timeout": "1min",
			"lock_timeout":                        "1234ms", // the application's own, not the store's
		} {
			if got := l.shown(ctx, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		l.commit(ctx, tx)
		if got := query[string](l, `SHOW idle_in_transaction_session_timeout`); got != "0" {
			t.Errorf("the pool's connection keeps %q", got)
		}
	})
}

// A renewal between the work's statements changes the row that the finish then writes.
func TestRenewalDuringTheWork(t *testing.T) {
	t.Parallel()
	l, q := newShop(t, setting("default_transaction_isolation", "serializable")), request("1")
	claim := l.won(q, 1)
	ctx, tx := l.store.Open(t.Context(), claim, time.Minute)
	l.insertBusiness(ctx)
	if lost, err := l.second().Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) > 0 {
		t.Fatalf("Extend: %v, %v", lost, err)
	}
	l.commit(ctx, tx)
	l.business(1)
}

// created_at is no part of the unique key: partitioned by month, the same key was accepted on both sides of the border.
func TestSameKeyOnBothSidesOfMidnight(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	if err := l.store.Complete(t.Context(), l.won(q, 1), result()); err != nil {
		t.Fatal(err)
	}
	l.exec(`UPDATE ` + table + ` SET created_at = date_trunc('month', now()) - interval '1 microsecond'`)
	l.asked(idem.Done, again(q))
	elsewhere := again(q)
	elsewhere.Key.ID = "2"
	l.asked(idem.Mismatch, elsewhere)
	for index, want := range map[string]string{
		"idempotent_record_pkey":       "(tenant, biz_type, biz_key)",
		"idempotent_record_request_id": "(tenant, biz_type, subject, request_id)",
	} {
		if got := query[string](l, `SELECT substring(indexdef FROM '\([^)]*\)') FROM pg_indexes WHERE indexname = $1`, index); got != want {
			t.Errorf("%s is unique over %s, want %s", index, got, want)
		}
	}
}

func TestNewerFormatIsNeitherReadNorWritten(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*lab, idem.Claim) error{
		"running":   func(*lab, idem.Claim) error { return nil },
		"lapsed":    func(l *lab, c idem.Claim) error { l.lapse(c.Key); return nil },
		"succeeded": func(l *lab, c idem.Claim) error { return l.store.Complete(l.Context(), c, result()) },
		"failed":    func(l *lab, c idem.Claim) error { return l.store.Release(l.Context(), c, idem.Failed, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := newLab(t), request("1")
			claim := l.won(q, 1)
			if err := reach(l, claim); err != nil {
				t.Fatal(err)
			}
			l.exec(`UPDATE `+table+` SET format = $1, expires_at = now() - interval '1 day'`, idem.Format+1)
			before := query[string](l, `SELECT r::text FROM `+table+` r`)
			elsewhere := again(q)
			elsewhere.Key.ID = "2"
			for call, err := range l.answers(q, elsewhere, claim) {
				if !errors.Is(err, idem.ErrFormat) {
					t.Errorf("%s: %v, want ErrFormat", call, err)
				}
			}
			if lost, err := l.store.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) != 1 {
				t.Errorf("Extend: %v, %v; want it lost", lost, err)
			}
			if n, err := l.store.Purge(t.Context(), nil, 10); n != 0 || err != nil {
				t.Errorf("Purge: %d, %v", n, err)
			}
			if after := query[string](l, `SELECT r::text FROM `+table+` r`); after != before {
				t.Errorf("the row was changed from\n%s to\n%s", before, after)
			}
		})
	}
}

// answers are what every command that names the record returns.
func (l *lab) answers(q, elsewhere idem.Request, claim idem.Claim) map[string]error {
	l.Helper()
	_, claimed := l.store.Claim(l.Context(), again(q))
	_, byRequestID := l.store.Claim(l.Context(), elsewhere)
	_, _, _, inTx := l.store.ClaimTx(l.Context(), again(q), time.Minute)
	_, looked := l.store.Lookup(l.Context(), q)
	ctx, tx := l.store.Open(l.Context(), claim, time.Minute)
	return map[string]error{
		"claim": claimed, "claim by request id": byRequestID, "claim tx": inTx, "lookup": looked,
		"complete": l.store.Complete(l.Context(), claim, result()), "release": l.store.Release(l.Context(), claim, idem.Failed, ""),
		"open": tx.Complete(ctx, result()),
	}
}

func TestPurgeWaitsForNobodyAndNobodyForIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, setting("lock_timeout", "50ms"), func(c *pgxpool.Config) { c.MaxConns = 12 })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var running sync.WaitGroup
	for worker := range 6 {
		running.Go(func() { l.traffic(ctx, string(rune('a'+worker))) })
	}
	for range 2 {
		running.Go(func() {
			for ctx.Err() == nil {
				n, err := l.store.Purge(t.Context(), nil, 20)
				if err != nil {
					t.Errorf("Purge: %v", err)
				}
				if n > 20 {
					t.Errorf("purged %d at once", n)
				}
			}
		})
	}
	running.Wait()
	testkit.Eventually(t, 10*time.Second, "nothing that is over is left", func() bool {
		if _, err := l.store.Purge(t.Context(), nil, 1000); err != nil {
			t.Fatal(err)
		}
		return query[int](l, `SELECT count(*) FROM `+table+` WHERE status <> 'processing'`) == 0
	})
}

// traffic claims and finishes records that are over at once, so that purging meets rows that are being written.
func (l *lab) traffic(ctx context.Context, worker string) {
	q := request(worker)
	q.Lease, q.Retention, q.RequestID = time.Millisecond, time.Millisecond, ""
	for ctx.Err() == nil {
		answer, err := l.store.Claim(l.Context(), again(q))
		if err != nil {
			l.Errorf("Claim: %v", err)
			return
		}
		if answer.Outcome != idem.Won {
			continue
		}
		if err := l.store.Release(l.Context(), answer.Claim, idem.Failed, ""); err != nil && !errors.Is(err, idem.ErrClaimLost) {
			l.Errorf("Release: %v", err)
			return
		}
	}
}

func TestReasonIsKeptForPeople(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	if err := l.store.Release(t.Context(), l.won(q, 1), idem.Failed, "card declined\x00"); err != nil {
		t.Fatal(err)
	}
	if got := query[string](l, `SELECT error FROM `+table); got != "card declined\uFFFD" {
		t.Errorf("error %q", got)
	}
	claim := l.won(again(q), 2)
	if left := query[bool](l, `SELECT error IS NOT NULL FROM `+table); !left {
		t.Error("the next claim forgot the reason")
	}
	if err := l.store.Complete(t.Context(), claim, idem.Result{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if left := query[bool](l, `SELECT error IS NOT NULL FROM `+table); left {
		t.Error("the reason outlives the success")
	}
}
