package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresInstance is a private server on a free loopback port, in a temporary folder.
type PostgresInstance struct {
	supervised
	binaries string
	port     int
	settings []string
}

// PostgresServer starts a server for one test, which may stop and restart it. Settings are "name=value".
func PostgresServer(t testing.TB, settings ...string) *PostgresInstance {
	t.Helper()
	server := newPostgres(t, settings...)
	t.Cleanup(func() { server.end("remove") })
	return server
}

func newPostgres(t testing.TB, settings ...string) *PostgresInstance {
	t.Helper()
	initdb := Binary(t, "initdb", "postgresql", "/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin")
	if program, err := filepath.EvalSymlinks(initdb); err == nil {
		initdb = program // its neighbours are there, not beside the link
	}
	folder, err := os.MkdirTemp("", "idem-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	server := &PostgresInstance{supervised: supervised{folder: folder}, binaries: filepath.Dir(initdb), port: FreePort(t), settings: settings}
	if attributes := server.attributes(t); attributes.Credential != nil {
		if err := os.Chown(folder, int(attributes.Credential.Uid), int(attributes.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), initdb, "-D", server.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
	cmd.SysProcAttr, cmd.Dir = server.attributes(t), folder
	if output, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(folder)
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	server.Start(t)
	return server
}

func (s *PostgresInstance) data() string { return filepath.Join(s.folder, "data") }

// attributes let root run the server as the user that the package made: Postgres refuses root.
func (s *PostgresInstance) attributes(t testing.TB) *syscall.SysProcAttr {
	t.Helper()
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attributes
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("root cannot run Postgres, and there is no user for it: %v", err)
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes
}

// supervise waits for a line or the end of its input, which comes with the end of the test binary, whatever ended it. It then ends the server at
// once, as a crash would, and removes the folder unless the line says to keep it. A signal to the parent would not do: it is bound to a thread.
const supervise = `folder=$1; shift
"$@" >"$folder/log" 2>&1 </dev/null & server=$!
read -r word
kill -QUIT $server; wait $server
[ "$word" = keep ] || rm -rf "$folder"`

// Start starts a stopped server on its port and waits until it answers. It does not wait for the disk: that matters when the machine dies, and here only processes do.
func (s *PostgresInstance) Start(t testing.TB) {
	t.Helper()
	arguments := []string{"-c", supervise, "supervise", s.folder, filepath.Join(s.binaries, "postgres"), "-D", s.data(),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "port=" + strconv.Itoa(s.port),
		"-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "fsync=off", "-c", "full_page_writes=off"}
	for _, setting := range s.settings {
		arguments = append(arguments, "-c", setting)
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", arguments...) // it may outlive the test that starts it
	cmd.SysProcAttr, cmd.Dir = s.attributes(t), s.folder
	s.begin(t, cmd)
	s.await(t)
}

func (s *PostgresInstance) await(t testing.TB) {
	t.Helper()
	dsn := fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&connect_timeout=2", s.Addr())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	t.Fatalf("Postgres does not answer: %v\n%s", last, log)
}

// Stop ends the server at once, as a crash would. Its data stay.
func (s *PostgresInstance) Stop(t testing.TB) {
	t.Helper()
	s.end("keep")
}

// Addr is the server's "host:port", the same after a restart.
func (s *PostgresInstance) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }
