package testkit

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQInstance is a private broker on free loopback ports, in a temporary folder, with an epmd of its own.
type RabbitMQInstance struct {
	supervised
	program, epmd                string
	port, management, dist, name int // the ports of AMQP, of the management API, of Erlang's distribution and of epmd
}

// PrivateRabbitMQ starts a broker for one test, which may kill and start it again on the same data. It is up in about seven seconds: tests that
// need no such thing share RabbitMQ.
func PrivateRabbitMQ(t testing.TB) *RabbitMQInstance {
	t.Helper()
	server := newRabbitMQ(t)
	t.Cleanup(func() { server.end("remove") })
	return server
}

func newRabbitMQ(t testing.TB) *RabbitMQInstance {
	t.Helper()
	// The wrapper of the package in PATH wants a user of its own; the program beside the plugins runs for anybody.
	programs, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
	if len(programs) == 0 {
		programs = []string{Binary(t, "rabbitmq-server", "rabbitmq-server", "/opt/homebrew/sbin", "/usr/local/sbin")}
	}
	epmd := Binary(t, "epmd", "erlang-base", "/usr/lib/erlang/erts-*/bin", "/opt/homebrew/lib/erlang/erts-*/bin")
	folder, err := os.MkdirTemp("", "idem-rabbitmq-")
	if err != nil {
		t.Fatal(err)
	}
	server := &RabbitMQInstance{
		supervised: supervised{folder: folder}, program: programs[len(programs)-1], epmd: epmd,
		port: FreePort(t), management: FreePort(t), dist: FreePort(t), name: FreePort(t),
	}
	server.write(t, "enabled_plugins", "[rabbitmq_management].\n")
	server.write(t, "rabbitmq.conf", fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
disk_free_limit.absolute = 1MB
`, server.port, server.management))
	// Totals of quorum queues are counted at each tick, by default every five seconds.
	server.write(t, "advanced.config", "[{rabbit, [{quorum_tick_interval, 100}]}].\n")
	server.Start(t)
	return server
}

func (s *RabbitMQInstance) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// superviseRabbitMQ waits, as supervise does, for a line or the end of its input, which comes with the end of the test binary, whatever ended it. It
// then ends the broker as a crash would, and the epmd that it started before: an Erlang node that finds none would leave a daemon behind.
const superviseRabbitMQ = `folder=$1; epmd=$2; server=$3
"$epmd" -address 127.0.0.1 -port "$ERL_EPMD_PORT" >"$folder/epmd.log" 2>&1 </dev/null & names=$!
"$server" >>"$folder/log" 2>&1 </dev/null & server=$!
read -r word
kill -KILL $server; wait $server
kill $names; wait $names
[ "$word" = keep ] || { rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }; }`

// environment keeps everything in the folder. Allowing input makes the start script become the Erlang machine instead of its parent, so that
// one process id is the broker's; the machine itself reads none. Schedulers that wait busily would take the processor from the tests.
func (s *RabbitMQInstance) environment() []string {
	in := func(name string) string { return filepath.Join(s.folder, name) }
	var inherited []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "RABBITMQ_") && !strings.HasPrefix(variable, "ERL_") {
			inherited = append(inherited, variable)
		}
	}
	return append(inherited,
		"HOME="+s.folder,
		"RABBITMQ_BASE="+s.folder,
		"RABBITMQ_HOME_DIR="+s.folder,
		"RABBITMQ_MNESIA_BASE="+in("mnesia"),
		"RABBITMQ_LOG_BASE="+s.folder,
		"RABBITMQ_LOGS=-",
		"RABBITMQ_CONF_ENV_FILE="+in("rabbitmq-env.conf"),
		"RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+in("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		"RABBITMQ_PID_FILE="+in("rabbitmq.pid"),
		"RABBITMQ_NODENAME=idem@localhost",
		"RABBITMQ_DIST_PORT="+strconv.Itoa(s.dist),
		"RABBITMQ_ALLOW_INPUT=1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput -kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
		"ERL_EPMD_PORT="+strconv.Itoa(s.name),
		"ERL_EPMD_ADDRESS=127.0.0.1",
	)
}

// Start starts a killed broker on its ports and its data, and waits until it answers.
func (s *RabbitMQInstance) Start(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", superviseRabbitMQ, "supervise", s.folder, s.epmd, s.program) // it may outlive the test that starts it
	cmd.SysProcAttr, cmd.Dir, cmd.Env = &syscall.SysProcAttr{Setpgid: true}, s.folder, s.environment()
	s.begin(t, cmd)
	s.await(t)
}

func (s *RabbitMQInstance) await(t testing.TB) {
	t.Helper()
	var last error
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if last = s.ask(); last == nil {
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	s.end("remove")
	t.Fatalf("RabbitMQ does not answer: %v\n%s", last, log)
}

// ask is nil where both the broker and its management answer.
func (s *RabbitMQInstance) ask() error {
	conn, err := amqp.DialConfig("amqp://guest:guest@"+s.Addr()+"/", amqp.Config{Dial: amqp.DefaultDial(2 * time.Second)})
	if err != nil {
		return err
	}
	_ = conn.Close()
	_, err = s.call("GET", "/api/vhosts", nil)
	return err
}

// Kill ends the broker as a crash does (SIGKILL). Its data stay; Start starts it again. It first waits until the broker has written down which quorum queues
// there are: RabbitMQ 3.10 does so up to a second after a declaration, and a crash before that loses what such a young queue holds, confirmed or not.
func (s *RabbitMQInstance) Kill(t testing.TB) {
	t.Helper()
	Eventually(t, 10*time.Second, "the broker has written down its queues", s.written)
	s.end("keep")
}

func (s *RabbitMQInstance) written() bool {
	folders, _ := filepath.Glob(filepath.Join(s.folder, "mnesia", "*", "quorum", "*", "*", "config"))
	names, _ := filepath.Glob(filepath.Join(s.folder, "mnesia", "*", "quorum", "*", "names.dets"))
	if len(names) != 1 {
		return len(folders) == 0
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		return false
	}
	for _, config := range folders {
		if !bytes.Contains(text, []byte(filepath.Base(filepath.Dir(config)))) {
			return false
		}
	}
	return true
}

// Addr is the broker's "host:port", the same after a restart.
func (s *RabbitMQInstance) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }
