package e2e_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
	"github.com/idemkit/idem/tokens"
)

// backend is where demos keep everything. Those that share one run in one folder, as processes on one machine do.
type backend struct {
	folder string
	env    []string
	redis  *testkit.RedisServer       // nil: tokens are kept in the process
	link   *testkit.Link              // the demos' way to Redis
	server *testkit.PostgresInstance  // where a test has one of its own
	open   func(t *testing.T) *sql.DB // the ledger's database, to be looked at from outside
	demos  int                        // how many were started and not inspected yet
}

// backends are all ways to keep tokens and ledger.
func backends() map[string]func(t *testing.T) *backend {
	return map[string]func(t *testing.T) *backend{
		"memory and SQLite":  embedded,
		"Redis and SQLite":   func(t *testing.T) *backend { t.Helper(); return embedded(t).withRedis(t) },
		"Redis and Postgres": redisAndPostgres,
		"memory, Postgres":   func(t *testing.T) *backend { t.Helper(); return bare(t).onPostgres(t, testkit.Postgres(t)) },
	}
}

func redisAndPostgres(t *testing.T) *backend {
	t.Helper()
	return bare(t).onPostgres(t, testkit.Postgres(t)).withRedis(t)
}

func bare(t *testing.T) *backend {
	t.Helper()
	return &backend{folder: t.TempDir()}
}

// embedded is what the demo does without a setting.
func embedded(t *testing.T) *backend {
	t.Helper()
	b := bare(t)
	path := filepath.Join(b.folder, "idem-demo.db")
	b.open = func(t *testing.T) *sql.DB {
		t.Helper()
		db, err := sqlitestore.Open(path)
		must(t, err)
		return db
	}
	return b
}

func (b *backend) onPostgres(t *testing.T, db *testkit.PostgresDB) *backend {
	t.Helper()
	return b.onPostgresVia(t, db, db.Addr)
}

// onPostgresVia has the demos come by another way than the test.
func (b *backend) onPostgresVia(t *testing.T, db *testkit.PostgresDB, addr string) *backend {
	t.Helper()
	b.env = append(b.env, "IDEM_DATABASE_URL="+db.URLVia(addr), "IDEM_KEYS="+keys(t))
	b.open = func(t *testing.T) *sql.DB {
		t.Helper()
		return stdlib.OpenDBFromPool(db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 2 }))
	}
	return b
}

func (b *backend) withRedis(t *testing.T) *backend {
	t.Helper()
	b.redis = testkit.Redis(t)
	b.link = testkit.Proxy(t, b.redis.Addr)
	b.env = append(b.env, "IDEM_REDIS_URL=redis://"+b.link.Addr(), "IDEM_KEYS="+keys(t))
	return b
}

// clusterAndPostgres: the tokens are spread over three nodes.
func clusterAndPostgres(t *testing.T) *backend {
	t.Helper()
	b := bare(t).onPostgres(t, testkit.Postgres(t))
	b.env = append(b.env, "IDEM_REDIS_URL=redis://"+strings.Join(testkit.Cluster(t, 3).Addrs(), ","))
	return b
}

func keys(t *testing.T) string {
	t.Helper()
	ring, err := tokens.GenerateHS256("e2e")
	must(t, err)
	return ring
}

// count is the number that one statement yields in the ledger's database.
func (b *backend) count(t *testing.T, db *sql.DB, statement string, arguments ...any) int {
	t.Helper()
	var n int
	must(t, db.QueryRowContext(t.Context(), statement, arguments...).Scan(&n))
	return n
}

// wantCount looks once.
func (b *backend) wantCount(t *testing.T, want int, statement string, arguments ...any) {
	t.Helper()
	db := b.open(t)
	defer db.Close()
	if got := b.count(t, db, statement, arguments...); got != want {
		t.Errorf("%s: %d, want %d", statement, got, want)
	}
}

// running waits until the ledger says that work of this business type is under way.
func (b *backend) running(t *testing.T, businessType string) {
	t.Helper()
	db := b.open(t)
	defer db.Close()
	testkit.Eventually(t, 20*time.Second, businessType+" is processing", func() bool {
		return b.count(t, db, `SELECT count(*) FROM idempotent_record WHERE status = 'processing' AND biz_type = $1`, businessType) > 0
	})
}

// eachBackend runs a test on every backend, beside all others.
func eachBackend(t *testing.T, test func(t *testing.T, b *backend)) {
	t.Helper()
	for name, made := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, made(t))
		})
	}
}

// eachRedis runs a test on every backend that has a Redis.
func eachRedis(t *testing.T, test func(t *testing.T, b *backend)) {
	t.Helper()
	for name, made := range map[string]func(t *testing.T) *backend{
		"SQLite":   func(t *testing.T) *backend { t.Helper(); return embedded(t).withRedis(t) },
		"Postgres": redisAndPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, made(t))
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
