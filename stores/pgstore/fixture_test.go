package pgstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/storetest"
)

const table = `public.idempotent_record`

// lab is a migrated database of one test.
type lab struct {
	*testing.T
	db    *testkit.PostgresDB
	pool  *pgxpool.Pool
	store *pgstore.Store
}

func newLab(t *testing.T, configure ...func(*pgxpool.Config)) *lab {
	t.Helper()
	db := migrated(t)
	pool := db.Pool(t, configure...)
	return &lab{T: t, db: db, pool: pool, store: open(t, pool)}
}

// migrated runs the SQL itself where that is all a test needs: it is faster than Migrate, which has tests of its own.
func migrated(t testing.TB) *testkit.PostgresDB {
	t.Helper()
	db := testkit.Postgres(t)
	db.Exec(t, script(t))
	return db
}

func script(t testing.TB) string {
	t.Helper()
	text, err := pgstore.SQL(pgstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func open(t testing.TB, pool *pgxpool.Pool) *pgstore.Store {
	t.Helper()
	return openAs(t, pool, pgstore.Options{})
}

func openAs(t testing.TB, pool *pgxpool.Pool, options pgstore.Options) *pgstore.Store {
	t.Helper()
	store, err := pgstore.New(pool, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// second is the store as another process has it.
func (l *lab) second() *pgstore.Store { return open(l, l.db.Pool(l)) }

// via is the store behind a link whose faults the test switches.
func (l *lab) via(configure ...func(*pgxpool.Config)) (*pgstore.Store, *testkit.Link) {
	l.Helper()
	link := testkit.Proxy(l, l.db.Addr)
	return open(l, l.db.PoolVia(l, link.Addr(), configure...)), link
}

func (l *lab) lapse(k idem.Key) { l.Helper(); lapse(l, l.pool, table, k) }

func lapse(t testing.TB, pool *pgxpool.Pool, table string, k idem.Key) {
	t.Helper()
	tag, err := pool.Exec(t.Context(), `UPDATE `+table+` SET lease_until = clock_timestamp() - interval '1 second'
		WHERE tenant = $1 AND biz_type = $2 AND biz_key = $3`, idem.Column(k.Tenant), idem.Column(k.Type), k.Column())
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("lapse %+v: %v, %v", k, tag, err)
	}
}

// exec changes the database behind the store's back.
func (l *lab) exec(sql string, arguments ...any) {
	l.Helper()
	if _, err := l.pool.Exec(l.Context(), sql, arguments...); err != nil {
		l.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](l *lab, sql string, arguments ...any) T {
	l.Helper()
	var value T
	if err := l.pool.QueryRow(l.Context(), sql, arguments...).Scan(&value); err != nil {
		l.Fatalf("%s: %v", sql, err)
	}
	return value
}

func request(id string) idem.Request {
	return idem.Request{
		Key: idem.Key{Tenant: "shop", Type: "order.create", ID: id}, Subject: "alice", RequestID: "request-" + id,
		Fingerprint: []byte("payload"), Owner: idem.NewOwner(), Lease: time.Hour, Retention: 24 * time.Hour,
	}
}

func again(q idem.Request) idem.Request {
	q.Owner = idem.NewOwner()
	return q
}

func result() idem.Result {
	return idem.Result{Status: 201, Header: [][2]string{{"Location", "/orders/1"}}, Body: []byte("{\"b\":1, \"a\":\x00\xff}"), Kept: true}
}

func (l *lab) won(q idem.Request, attempt int) idem.Claim {
	l.Helper()
	answer := l.asked(idem.Won, q)
	if answer.Claim.Attempt != attempt {
		l.Fatalf("attempt %d, want %d", answer.Claim.Attempt, attempt)
	}
	return answer.Claim
}

func (l *lab) asked(want idem.Outcome, q idem.Request) idem.Answer {
	l.Helper()
	answer, err := l.store.Claim(l.Context(), q)
	if err != nil || answer.Outcome != want {
		l.Fatalf("Claim: %v, %v; want %v", answer.Outcome, err, want)
	}
	return answer
}

func (l *lab) stands(q idem.Request, state idem.State, attempt int) idem.Record {
	l.Helper()
	record, err := l.second().Lookup(l.Context(), q)
	if err != nil || record.State != state || record.Attempt != attempt {
		l.Fatalf("record %s at attempt %d, %v; want %s at %d", record.State, record.Attempt, err, state, attempt)
	}
	return record
}

// backend gives each check a table of its own, in one database: making and dropping a database takes longer than most checks. The stores connect to addr; empty:
// to the server itself. The lossy store's connections are open already, so that the reply that gets lost is the command's.
func backend(t *testing.T, addr string, configure ...func(*pgxpool.Config)) func(t testing.TB) storetest.Backend {
	t.Helper()
	db := testkit.Postgres(t)
	direct := db.Pool(t)
	if addr == "" {
		addr = db.Addr
	}
	return func(t testing.TB) storetest.Backend {
		options := pgstore.Options{Schema: "s_" + strings.ToLower(idem.NewOwner())}
		text, err := pgstore.SQL(options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := direct.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		return storetest.Backend{
			Store: openAs(t, db.PoolVia(t, addr, configure...), options), Another: openAs(t, db.PoolVia(t, addr, configure...), options),
			Lapse: func(t testing.TB, key idem.Key) { lapse(t, direct, options.Schema+".idempotent_record", key) },
			Lossy: func(t testing.TB) idem.Store {
				link := testkit.Proxy(t, addr)
				store := openAs(t, db.PoolVia(t, link.Addr(), configure...), options)
				warm(t, store)
				link.DropReplies(1)
				return store
			},
		}
	}
}

// warm makes the store open its connections and prepare its statements.
func warm(t testing.TB, store *pgstore.Store) {
	t.Helper()
	q := request("warm")
	q.Key.Type, q.Key.Tenant = "warm", idem.NewOwner()
	answer, err := store.Claim(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Extend(t.Context(), []idem.Claim{answer.Claim}); err != nil {
		t.Fatal(err)
	}
	if err := store.Complete(t.Context(), answer.Claim, result()); err != nil {
		t.Fatal(err)
	}
}

func mode(m pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = m }
}
