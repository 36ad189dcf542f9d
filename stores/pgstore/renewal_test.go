package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

func one(c *pgxpool.Config) { c.MaxConns = 1 }

func TestRenewalsPassAnExhaustedPool(t *testing.T) {
	t.Parallel()
	l, q := newShop(t, one), request("1")
	claim := l.won(q, 1)
	l.lapse(q.Key)
	ctx, tx := l.store.Open(t.Context(), claim, time.Minute)
	l.insertBusiness(ctx)
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if lost, err := l.store.Extend(bounded, []idem.Claim{claim}); err != nil || len(lost) > 0 {
		t.Fatalf("Extend with every connection of the pool in use: %v, %v", lost, err)
	}
	if record := l.stands(q, idem.Processing, 1); !record.Live() {
		t.Errorf("record %+v", record)
	}
	l.commit(ctx, tx)
	l.stands(q, idem.Succeeded, 1)
}

// The renewal of one claim must not wait for another's row, which a taker's transaction may hold for as long as it works.
func TestRenewalsPassLockedRows(t *testing.T) {
	t.Parallel()
	l := newShop(t)
	taken, kept, gone := request("taken"), request("kept"), request("gone")
	claims := []idem.Claim{l.won(taken, 1), l.won(kept, 1), l.won(gone, 1)}
	for _, q := range []idem.Request{taken, kept, gone} {
		l.lapse(q.Key)
	}
	l.won(again(gone), 2)
	ctx, tx := l.begun(again(taken))
	lost, err := l.store.Extend(t.Context(), claims)
	var part *idem.PartError
	if !errors.As(err, &part) || !slices.Equal(part.Unasked, []int{0}) || !slices.Equal(lost, []int{2}) {
		t.Fatalf("Extend: lost %v, %v; want [2], and [0] not to be known", lost, err)
	}
	if record := l.stands(kept, idem.Processing, 1); !record.Live() {
		t.Errorf("record %+v", record)
	}
	l.commit(ctx, tx)
	if lost, err = l.store.Extend(t.Context(), claims); err != nil || !slices.Equal(lost, []int{0, 2}) {
		t.Errorf("after the commit: lost %v, %v; want [0 2]", lost, err)
	}
}

func (l *lab) sessions(name string) int {
	l.Helper()
	return query[int](l, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, name)
}

func called(name string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = name }
}

func TestRenewalsReopenTheirConnection(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	store := open(t, l.db.Pool(t, called("renewing")))
	claim := l.won(request("1"), 1)
	for range 3 {
		if lost, err := store.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) > 0 {
			t.Fatalf("Extend: %v, %v", lost, err)
		}
		if n := l.sessions("renewing"); n != 1 {
			t.Fatalf("%d sessions, want the one for renewals", n)
		}
		l.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'renewing'`)
		testkit.Eventually(t, 5*time.Second, "the session ends", func() bool { return l.sessions("renewing") == 0 })
	}
}

func TestRenewalsUseTheHooksOfThePool(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var before, after int
	pool := l.db.Pool(t, func(c *pgxpool.Config) {
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			before++
			c.RuntimeParams["application_name"] = "by the hook"
			return nil
		}
		c.AfterConnect = func(context.Context, *pgx.Conn) error { after++; return nil }
	})
	if _, err := open(t, pool).Extend(t.Context(), []idem.Claim{l.won(request("1"), 1)}); err != nil {
		t.Fatal(err)
	}
	if before != 1 || after != 1 || l.sessions("by the hook") != 1 {
		t.Errorf("hooks called %d and %d times, %d sessions", before, after, l.sessions("by the hook"))
	}
}

func TestRenewalsWhoseConnectionFails(t *testing.T) {
	t.Parallel()
	refusal := errors.New("no password today")
	for name, configure := range map[string]func(*pgxpool.Config){
		"before": func(c *pgxpool.Config) {
			c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return refusal }
		},
		"after": func(c *pgxpool.Config) {
			c.AfterConnect = func(context.Context, *pgx.Conn) error { return refusal }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t, testkit.Postgres(t).Pool(t, configure))
			if _, err := store.Extend(t.Context(), []idem.Claim{{Request: request("1"), Attempt: 1}}); !errors.Is(err, refusal) {
				t.Errorf("Extend: %v, want the hook's error", err)
			}
		})
	}
}

func TestClosedStoreRenewsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	store := open(t, l.db.Pool(t, called("renewing")))
	claims := []idem.Claim{l.won(request("1"), 1)}
	if _, err := store.Extend(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	store.Close()
	testkit.Eventually(t, 5*time.Second, "the session ends", func() bool { return l.sessions("renewing") == 0 })
	if _, err := store.Extend(t.Context(), claims); err == nil {
		t.Error("a closed store renewed")
	}
	store.Close()
}
