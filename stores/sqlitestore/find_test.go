package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

func (f fixture) finds(q idem.Query, want ...string) {
	f.Helper()
	records, err := f.store.Find(f.Context(), q)
	if err != nil {
		f.Fatalf("Find: %v", err)
	}
	var got []string
	for _, r := range records {
		got = append(got, r.Key.ID)
	}
	if !slices.Equal(got, want) {
		f.Fatalf("Find(%+v): %q, want %q", q, got, want)
	}
}

func TestFindByTheStoresClock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	q := idem.Query{State: idem.Processing, Types: []string{"order.create"}, Quiet: time.Minute, Limit: 10}
	f.won(request("1"), 1)
	f.clock.advance(lease - time.Microsecond)
	q.Quiet = 0
	f.finds(q)
	f.clock.advance(time.Microsecond)
	f.finds(q, "1")
	q.Quiet = time.Minute
	f.clock.advance(time.Minute - lease - time.Microsecond)
	f.finds(q)
	f.clock.advance(time.Microsecond)
	f.finds(q, "1")
	f.exec(`UPDATE idempotent_record SET format = 2`)
	f.finds(q)
}

// asynq#1051: active without lease, never recovered.
func TestProcessingWithoutLeaseIsFound(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	q.Retention = time.Hour
	f.won(q, 1)
	f.exec(`UPDATE idempotent_record SET lease_until = NULL`)
	f.finds(idem.Query{State: idem.Processing, Types: []string{"order.create"}, Limit: 10}, "1")
	f.won(again(q), 2)
	f.exec(`UPDATE idempotent_record SET lease_until = NULL`)
	f.clock.advance(time.Hour)
	if n, err := f.store.Purge(t.Context(), []string{"order.create"}, 10); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
}

// The janitor knows resolvers and compensations by the types that its user wrote, whatever the column has of them, and asks about the key that was sent out.
func TestJanitorOfTypesThatFitNoColumn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	odd := func(id string) idem.Request {
		q := request(id)
		q.Key.Type, q.Key.Scope = "refund~"+strings.Repeat("é", 300), "a~b"
		return q
	}
	lapsed, failed := f.won(odd("lapsed~"), 1), f.won(odd("failed"), 1)
	if err := f.store.Release(t.Context(), failed, idem.Failed, ""); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Hour)
	j := idem.Janitor{
		Ledger: f.store,
		Resolvers: map[string]idem.Resolver{lapsed.Key.Type: func(_ context.Context, c idem.Claim) (idem.Ending, error) {
			if c.OutboundKey() != lapsed.OutboundKey() {
				t.Error("asked under another key than the attempt had")
			}
			return idem.Ending{State: idem.Succeeded, Result: created()}, nil
		}},
		Compensations: map[string]idem.Work{failed.Key.Type: func(context.Context) idem.Ending { return idem.Ending{State: idem.Cancelled} }},
	}
	if done, err := j.Round(t.Context()); err != nil || done != (idem.Tidied{Recovered: 1, Compensated: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	for claim, want := range map[string]idem.State{"lapsed~": idem.Succeeded, "failed": idem.Cancelled} {
		if record, err := f.store.Lookup(t.Context(), odd(claim)); err != nil || record.State != want {
			t.Errorf("%s: %+v, %v", claim, record, err)
		}
	}
}

// A failed record that gives its request id up was changed.
func TestGivingUpTheRequestIDIsAChange(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	q.RequestID = "intention"
	if err := f.store.Release(t.Context(), f.won(q, 1), idem.Failed, ""); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Hour)
	search := idem.Query{State: idem.Failed, Types: []string{"order.create"}, Quiet: time.Minute, Limit: 10}
	f.finds(search, "1")
	next := request("2")
	next.RequestID = q.RequestID
	f.won(next, 1)
	f.finds(search)
}

// Who waits for a transaction of this process to be renewed is not dead, whatever its lease says.
func TestFindLeavesOutWaitingRenewals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	short := request("waiting")
	short.Lease = 3 * time.Millisecond
	waiting := f.won(short, 1)
	f.won(request("dead"), 1)
	_, _, work := f.work(f.won(request("slow"), 1))
	f.clock.advance(2 * lease)
	if lost, err := f.store.Extend(t.Context(), []idem.Claim{waiting}); err != nil || len(lost) != 0 {
		t.Fatalf("Extend: lost %v, %v", lost, err)
	}
	q := idem.Query{State: idem.Processing, Types: []string{"order.create"}, Limit: 10}
	f.finds(q, "dead")
	f.rollback(work)
}

func TestSearchesUseIndexes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, want := range map[string]string{
		`SELECT * FROM idempotent_record WHERE status = 'processing' AND updated_at <= 1 AND biz_type IN (SELECT value FROM json_each('["a"]'))
			AND lease_until <= 1 ORDER BY updated_at LIMIT 1`: "idempotent_record_processing",
		`SELECT * FROM idempotent_record WHERE status = 'failed' AND updated_at <= 1 AND biz_type IN (SELECT value FROM json_each('["a"]'))
			ORDER BY updated_at LIMIT 1`: "idempotent_record_failed",
		`SELECT rowid FROM idempotent_record WHERE status <> 'processing' AND expires_at <= 1 ORDER BY expires_at LIMIT 1`: "idempotent_record_finished",
	} {
		if plan := f.plan(name); !strings.Contains(plan, "USING INDEX "+want) {
			t.Errorf("%s\n%s", name, plan)
		}
	}
}

func (f fixture) plan(query string) string {
	f.Helper()
	rows, err := f.db.QueryContext(f.Context(), `EXPLAIN QUERY PLAN `+query)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			f.Fatal(err)
		}
		fmt.Fprintln(&plan, detail)
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return plan.String()
}

func TestFence(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	draw := func(store *sqlitestore.Store, want int64) {
		t.Helper()
		if number, err := store.Fence(t.Context()); err != nil || number != want {
			t.Fatalf("Fence: %d, %v; want %d", number, err, want)
		}
	}
	draw(f.store, 1)
	f.clock.advance(1000 * time.Hour)
	if _, err := f.store.Purge(t.Context(), []string{"order.create"}, 100); err != nil {
		t.Fatal(err)
	}
	draw(f.another(), 2)
	if err := sqlitestore.Migrate(t.Context(), f.db, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	f.exec(sqlitestore.SQL(sqlitestore.Options{}))
	draw(f.store, 3)

	ctx, _, work := f.work(f.won(request("1"), 1))
	if number, err := f.store.Fence(ctx); number != 0 || !errors.Is(err, sqlitestore.ErrNested) {
		t.Errorf("in work with its transaction open: %d, %v; want ErrNested", number, err)
	}
	f.rollback(work)
	draw(f.store, 4)
}

func TestAbandonedByTheStoresClock(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	q.Retention = time.Hour
	claim := f.won(q, 1)
	f.won(func() idem.Request { q := q; q.Key, q.Owner = idem.K("refund", "1"), idem.NewOwner(); return q }(), 1)
	purge := func(want int, types ...string) {
		t.Helper()
		if n, err := f.store.Purge(t.Context(), types, 10); err != nil || n != want {
			t.Fatalf("purged %d, %v; want %d", n, err, want)
		}
	}
	f.clock.advance(59 * time.Minute)
	if lost, err := f.store.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
		t.Fatalf("Extend: lost %v, %v", lost, err)
	}
	f.clock.advance(time.Hour - time.Microsecond)
	purge(0, "order.create")
	f.clock.advance(time.Microsecond)
	purge(0)
	purge(0, "order", "ORDER.CREATE", "%", `order.create"`)
	purge(1, "unheard of", "order.create")
	purge(0, "order.create")
	f.records(1)
	purge(1, "refund")
}

func TestKeysReadBackAreBusyAtOnce(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request(strings.Repeat("x", 600))
	q.Key.Scope, q.Subject, q.RequestID = "a~b", "c\x00d", "e\nf"
	_, _, work := f.claimTx(q, 0)
	back := again(q)
	back.Key, back.Subject, back.RequestID = idem.KeyOf("", q.Key.Type, q.Key.Column()), idem.Column(q.Subject), ""
	f.claim(back, idem.Busy)
	back.Key.ID, back.RequestID = "another", idem.Column(q.RequestID)
	f.claim(back, idem.Busy)
	f.rollback(work)
	f.won(back, 1)
}
