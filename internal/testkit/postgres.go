package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sharedPostgres is the one server of a test binary: initdb takes longer than most tests, and a database of its own keeps tests apart. It is a
// package variable because tests have nothing else in common. Its supervisor ends it and removes its folder when the binary exits, however it does.
var sharedPostgres struct { //nolint:gochecknoglobals // the tests of one binary share nothing else, and a server each would take minutes
	sync.Mutex
	server *PostgresInstance
}

// PostgresDB is an empty database of one test.
type PostgresDB struct {
	Name string // the database
	Addr string // "host:port" of its server, for a Proxy
}

// Postgres returns a new database on the test binary's own server, which starts with the first call. The database is dropped with the test.
func Postgres(t testing.TB) *PostgresDB {
	t.Helper()
	return sharedServer(t).Database(t)
}

func sharedServer(t testing.TB) *PostgresInstance {
	t.Helper()
	sharedPostgres.Lock()
	defer sharedPostgres.Unlock()
	if sharedPostgres.server == nil {
		sharedPostgres.server = newPostgres(t)
	}
	return sharedPostgres.server
}

// Database creates a database that is dropped, with whatever connections are left on it, when the test ends.
func (s *PostgresInstance) Database(t testing.TB) *PostgresDB {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	s.admin(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if s.Running() {
			s.admin(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		}
	})
	return &PostgresDB{Name: name, Addr: s.Addr()}
}

// URL is the connection string of the database.
func (d *PostgresDB) URL() string { return d.URLVia(d.Addr) }

// URLVia is the connection string by way of another "host:port", such as a Proxy's or a PgBouncer's.
func (d *PostgresDB) URLVia(addr string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: addr, Path: "/" + d.Name, RawQuery: "sslmode=disable"}).String()
}

// Pool opens a pool of connections, which is closed with the test. The functions change its configuration before.
func (d *PostgresDB) Pool(t testing.TB, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	return d.PoolVia(t, d.Addr, configure...)
}

// PoolVia is Pool by way of another "host:port".
func (d *PostgresDB) PoolVia(t testing.TB, addr string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(d.URLVia(addr))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range configure {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Exec runs one statement, or several without parameters, on a connection of its own.
func (d *PostgresDB) Exec(t testing.TB, sql string, arguments ...any) {
	t.Helper()
	execute(t, d.URL(), sql, arguments...)
}

func (s *PostgresInstance) admin(t testing.TB, sql string) {
	t.Helper()
	execute(t, fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.Addr()), sql)
}

// execute has a context of its own: a test's has ended by the time its databases are dropped.
func execute(t testing.TB, dsn, sql string, arguments ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // the statement has been answered
	if _, err := conn.Exec(ctx, sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
