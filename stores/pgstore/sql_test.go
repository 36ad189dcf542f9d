package pgstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/storetest"
)

// handle opens pgx's driver on database/sql, by way of "host:port", with more settings such as "&a=b".
func handle(t testing.TB, db *testkit.PostgresDB, addr string, settings ...string) *sql.DB {
	t.Helper()
	opened, err := sql.Open("pgx", db.URLVia(addr)+strings.Join(settings, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

func openSQL(t testing.TB, db *sql.DB, options pgstore.Options) *pgstore.Store {
	t.Helper()
	store, err := pgstore.NewSQL(db, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// sqlShop is a shop whose store is on database/sql; the lab's own pool looks on.
func sqlShop(t *testing.T) (*lab, *sql.DB) {
	t.Helper()
	l := newShop(t)
	db := handle(t, l.db, l.db.Addr)
	l.store = openSQL(t, db, pgstore.Options{})
	return l, db
}

func TestContractOnDatabaseSQL(t *testing.T) {
	t.Parallel()
	storetest.Run(t, sqlBackend(t, testkit.Postgres(t).Addr))
}

func sqlBackend(t *testing.T, addr string, settings ...string) func(t testing.TB) storetest.Backend {
	t.Helper()
	db := testkit.Postgres(t)
	direct := db.Pool(t)
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
			Store: openSQL(t, handle(t, db, addr, settings...), options), Another: openAs(t, db.Pool(t), options), // a deploy from one to the other
			Lapse: func(t testing.TB, key idem.Key) { lapse(t, direct, options.Schema+".idempotent_record", key) },
			Lossy: func(t testing.TB) idem.Store {
				link := testkit.Proxy(t, addr)
				store := openSQL(t, handle(t, db, link.Addr(), settings...), options)
				warm(t, store)
				link.DropReplies(1)
				return store
			},
		}
	}
}

func TestBothHandlesAreOneLedger(t *testing.T) {
	t.Parallel()
	l, db := sqlShop(t)
	if a, b := l.store.Name(), open(t, l.pool).Name(); a != b {
		t.Errorf("named %s on database/sql, %s on a pool: entrance records name one of them", a, b)
	}
	fromPool := stdlib.OpenDBFromPool(l.pool)
	t.Cleanup(func() { _ = fromPool.Close() })
	for name, handle := range map[string]*sql.DB{"sql.Open": db, "stdlib.OpenDBFromPool": fromPool} {
		l.store = openSQL(t, handle, pgstore.Options{})
		q := request(name)
		ctx, tx := l.begun(q)
		l.insertBusiness(ctx)
		l.commit(ctx, tx)
		if err := l.store.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.business(2)
}

func TestCommitOverABadLinkOnDatabaseSQL(t *testing.T) {
	for name, row := range map[string]struct {
		fault func(link *testkit.Link)
		rows  int
		want  func(error) bool
	}{
		"the link is cut before it": {func(link *testkit.Link) { link.Cut() }, 0, func(err error) bool {
			return err != nil && !errors.Is(err, idem.ErrOutcomeUnknown) && !errors.Is(err, idem.ErrClaimLost)
		}},
		"nobody can be asked": {func(link *testkit.Link) { link.Refuse(true); link.Cut() }, 0, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w way) {
				l := newShop(t)
				link := testkit.Proxy(t, l.db.Addr)
				far := &lab{T: t, db: l.db, pool: l.pool, store: openSQL(t, handle(t, l.db, link.Addr()), pgstore.Options{})}
				ctx, tx := w.start(far, request("1"))
				far.insertBusiness(ctx)
				row.fault(link)
				if err := tx.Complete(ctx, result()); !row.want(err) {
					t.Errorf("Complete: %v", err)
				}
				l.business(row.rows)
			})
		})
	}
}

// strange is a driver of somebody else's.
type strange struct{ driver.Connector }

func (strange) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("it was asked to connect")
}

func (strange) Driver() driver.Driver { return strangeDriver{} }

type strangeDriver struct{ driver.Driver }

func TestNewSQLRefuses(t *testing.T) {
	t.Parallel()
	other := sql.OpenDB(strange{})
	t.Cleanup(func() { _ = other.Close() })
	own := handle(t, testkit.Postgres(t), "127.0.0.1:1")
	for name, row := range map[string]struct {
		db      *sql.DB
		options pgstore.Options
		want    string
	}{
		"no handle":        {nil, pgstore.Options{}, "needs a *sql.DB"},
		"another's driver": {other, pgstore.Options{}, "strangeDriver"},
		"a bad name":       {own, pgstore.Options{Table: "a b"}, "Options.Table"},
	} {
		for command, call := range map[string]func() error{
			"NewSQL":     func() error { _, err := pgstore.NewSQL(row.db, row.options); return err },
			"MigrateSQL": func() error { return pgstore.MigrateSQL(t.Context(), row.db, row.options) },
		} {
			if err := call(); !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s, %s: %v, want ErrInvalid with %q", command, name, err, row.want)
			}
		}
	}
	if _, err := pgstore.NewSQL(own, pgstore.Options{}); err == nil || errors.Is(err, idem.ErrInvalid) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestMigrateSQL(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	db := handle(t, l.db, l.db.Addr)
	db.SetMaxOpenConns(1)
	for range 2 {
		if err := pgstore.MigrateSQL(t.Context(), db, pgstore.Options{Schema: "app"}); err != nil {
			t.Fatal(err)
		}
	}
	l.store = openSQL(t, db, pgstore.Options{Schema: "app"})
	claim := l.won(request("1"), 1)
	ctx, tx := l.store.Open(t.Context(), claim, time.Minute)
	if _, err := pgstore.SQLTx(ctx); err != nil { // the only connection
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if lost, err := l.store.Extend(bounded, []idem.Claim{claim}); err != nil || len(lost) > 0 {
		t.Errorf("Extend with every connection of the handle in use: %v, %v", lost, err)
	}
	l.commit(ctx, tx)
}
