package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
)

// refusals counts the statements that ended with lock_not_available, which the store itself turns into answers.
type refusals struct{ n atomic.Int64 }

func (r *refusals) count(err error) {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "55P03" {
		r.n.Add(1)
	}
}

func (r *refusals) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (r *refusals) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	r.count(d.Err)
}
func (r *refusals) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (r *refusals) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	r.count(d.Err)
}
func (r *refusals) TraceBatchEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	r.count(d.Err)
}

// The rows are as many as an application leaves behind in a while: a tenth of them abandoned, the others finished, all long over.
func (l *lab) pastRows(n int) {
	l.Helper()
	l.exec(`INSERT INTO `+table+` SELECT 'shop', CASE i % 20 WHEN 1 THEN 'resolved' ELSE 'order.create' END, 'past ' || i,
		CASE i % 10 WHEN 0 THEN 'processing' WHEN 1 THEN 'processing' WHEN 2 THEN 'failed' ELSE 'succeeded' END, 1, 'owner', 'alice', 'past ' || i,
		NULL, 201, '[]', '', NULL, 1, past, NULL, past + interval '1 day', past, past
		FROM (SELECT i, now() - interval '30 days' + i * interval '1 second' AS past FROM generate_series(1, $1::int) i) r`, n)
	l.exec(`ANALYZE ` + table)
}

func TestPurgeWhileOtherKeysAreClaimed(t *testing.T) {
	t.Parallel()
	l, seen := newLab(t), &refusals{}
	l.pastRows(rowsPurged)
	traffic := open(t, l.db.Pool(t, setting("lock_timeout", "50ms"), func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen }))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	var served atomic.Int64
	for worker := range 4 {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := serve(t.Context(), traffic, request(fmt.Sprintf("live %d %d", worker, i))); err != nil {
					t.Errorf("beside the purge: %v", err)
					return
				}
				served.Add(1)
			}
		})
	}
	purged, err := idem.Janitor{Ledger: l.store, Abandoned: []string{"order.create"}, Batch: 2000}.Purge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	running.Wait()
	if n := seen.n.Load(); n != 0 {
		t.Errorf("%d statements waited for longer than their lock_timeout", n)
	}
	// Every twentieth is processing and of a type that was not named.
	if want := rowsPurged - rowsPurged/20; purged != want || served.Load() == 0 {
		t.Errorf("purged %d rows of %d, and served %d requests", purged, want, served.Load())
	}
	if n := query[int64](l, `SELECT count(*) FROM `+table+` WHERE biz_key LIKE 'live%' AND status = 'succeeded'`); n != served.Load() {
		t.Errorf("%d records of %d requests", n, served.Load())
	}
}

func serve(ctx context.Context, store idem.Ledger, q idem.Request) error {
	answer, err := store.Claim(ctx, q)
	if err != nil || answer.Outcome != idem.Won {
		return fmt.Errorf("claim: %v, %w", answer.Outcome, err)
	}
	if lost, err := store.Extend(ctx, []idem.Claim{answer.Claim}); err != nil || len(lost) > 0 {
		return fmt.Errorf("extend: lost %v, %w", lost, err)
	}
	return store.Complete(ctx, answer.Claim, result())
}

// What somebody is writing, or a newer version wrote, is passed by.
func TestPurgePassesBy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pastRows(20)
	purge := func(want int) {
		t.Helper()
		if n, err := l.store.Purge(t.Context(), []string{"order.create", "resolved"}, 100); err != nil || n != want {
			t.Fatalf("purged %d, %v; want %d", n, err, want)
		}
	}
	tx, err := l.db.Pool(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM `+table+` WHERE biz_key IN ('past 10', 'past 12', 'past 13') FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	l.exec(`UPDATE `+table+` SET format = $1 WHERE biz_key IN ('past 1', 'past 2')`, idem.Format+1)
	purge(15)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	purge(3)
	l.exec(`UPDATE ` + table + ` SET format = 1`)
	purge(2)
}

// The clock is the server's, so the rows are moved instead.
func TestAbandonedByAge(t *testing.T) {
	t.Parallel()
	const past = `now() - interval '1 hour'`
	for name, row := range map[string]struct {
		change string
		purged int
	}{
		"claimed, and gone since":      {``, 1},
		"the lease stands":             {`lease_until = now() + interval '1 second'`, 0},
		"retention not over":           {`expires_at = now() + interval '1 second', created_at = ` + past, 0},
		"renewed within its retention": {`updated_at = now() - interval '30 seconds'`, 0},
		"renewed longer ago":           {`updated_at = now() - interval '61 seconds'`, 1},
		"taken over within it":         {`attempt = 2, updated_at = now() - interval '30 seconds', expires_at = now() + interval '30 seconds'`, 0},
		"taken over long ago":          {`attempt = 2, created_at = now() - interval '90 minutes'`, 1},
		"another type":                 {`biz_type = 'refund'`, 0},
		"finished":                     {`status = 'failed', biz_type = 'refund'`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.won(request("1"), 1)
			l.exec(`UPDATE ` + table + ` SET created_at = ` + past + `, updated_at = ` + past + `, lease_until = ` + past + `,
				expires_at = ` + past + ` + interval '1 minute'`)
			if row.change != "" {
				l.exec(`UPDATE ` + table + ` SET ` + row.change)
			}
			if n, err := l.store.Purge(t.Context(), []string{"order.create"}, 10); err != nil || n != row.purged {
				t.Errorf("purged %d, %v; want %d", n, err, row.purged)
			}
		})
	}
}
