package testkit_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem/internal/testkit"
)

func TestPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	t.Parallel()
	first, second := testkit.Postgres(t), testkit.Postgres(t)
	if first.Addr != second.Addr {
		t.Errorf("two servers for one test binary: %s and %s", first.Addr, second.Addr)
	}
	first.Exec(t, "CREATE TABLE only_here (id integer)")
	for _, row := range []struct {
		name string
		db   *testkit.PostgresDB
		want bool
	}{{"the first has its table", first, true}, {"the second does not", second, false}} {
		var there bool
		pool := row.db.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
		if err := pool.QueryRow(t.Context(), "SELECT to_regclass('only_here') IS NOT NULL").Scan(&there); err != nil {
			t.Fatal(err)
		}
		if there != row.want {
			t.Errorf("%s: %v", row.name, there)
		}
	}
}

func TestPostgresServerKeepsItsDataOverACrash(t *testing.T) {
	t.Parallel()
	server := testkit.PostgresServer(t, "log_statement=none")
	db := server.Database(t)
	db.Exec(t, "CREATE TABLE kept AS SELECT 7 AS id")
	pool := db.Pool(t)

	server.Stop(t)
	if server.Running() {
		t.Fatal("it says that it runs after Stop")
	}
	if err := pool.Ping(t.Context()); err == nil {
		t.Fatal("a stopped server answered")
	}

	server.Start(t)
	testkit.Eventually(t, 10*time.Second, "the table is there after the restart", func() bool {
		var id int
		return pool.QueryRow(t.Context(), "SELECT id FROM kept").Scan(&id) == nil && id == 7
	})
}
