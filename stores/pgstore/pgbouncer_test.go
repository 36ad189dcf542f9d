package pgstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/storetest"
)

const bouncerSettings = `[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 1000
`

// bouncer starts a PgBouncer in transaction mode in front of the server and returns its "host:port". It has fewer sessions than its clients, so that they really share.
func bouncer(t *testing.T, server string) string {
	t.Helper()
	program := testkit.Binary(t, "pgbouncer", "pgbouncer", "/usr/sbin", "/opt/homebrew/bin")
	folder, err := os.MkdirTemp("", "idem-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	listen := testkit.FreePort(t)
	file := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(file, fmt.Appendf(nil, bouncerSettings, host, port, listen), 0o644); err != nil {
		t.Fatal(err)
	}
	arguments := []string{file}
	if os.Geteuid() == 0 {
		arguments = []string{"-u", "postgres", file} // it refuses to run as root
	}
	process := testkit.Start(t, exec.Command(program, arguments...), syscall.SIGINT)
	addr := fmt.Sprintf("127.0.0.1:%d", listen)
	awaitBouncer(t, addr, process)
	return addr
}

func awaitBouncer(t *testing.T, addr string, process *testkit.Process) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, "PgBouncer answers", func() bool {
		conn, err := pgx.Connect(context.Background(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
		if err != nil {
			select {
			case <-process.Done():
				t.Fatalf("PgBouncer ended: %s", process.Output())
			default:
			}
			return false
		}
		_ = conn.Close(context.Background())
		return true
	})
}

// A session's lock, a LISTEN or a prepared statement would be another client's the next moment. These are the query modes that pgx names for such a
// pooler: the others keep statements, or what they learnt of them, with a session.
func TestContractBehindPgBouncer(t *testing.T) {
	t.Parallel()
	addr := bouncer(t, testkit.Postgres(t).Addr)
	for name, m := range map[string]pgx.QueryExecMode{"exec": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, backend(t, addr, mode(m)))
		})
	}
	t.Run("database/sql", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, sqlBackend(t, addr, "&default_query_exec_mode=exec"))
	})
}

func TestMigrateBehindPgBouncer(t *testing.T) {
	t.Parallel()
	db := testkit.Postgres(t)
	addr := bouncer(t, db.Addr)
	if err := pgstore.MigrateSQL(t.Context(), handle(t, db, addr, "&default_query_exec_mode=exec"), pgstore.Options{Schema: "by_sql"}); err != nil {
		t.Error(err)
	}
	var running sync.WaitGroup
	for range 2 {
		pool := db.PoolVia(t, addr, mode(pgx.QueryExecModeExec), func(c *pgxpool.Config) { c.MaxConns = 1 })
		running.Go(func() {
			if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{Schema: "app"}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}
