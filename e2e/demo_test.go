package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// demo is the program as a process. It ends with the test that started it, which then looks at what it has left and logged.
type demo struct {
	backend   *backend
	addr      string // "host:port", the same after a restart; empty before the first start
	env       []string
	temporary string // its TMPDIR
	cmd       *exec.Cmd
	process   *testkit.Process
	killed    bool
	ended     string // what processes before this one printed
	mu        sync.Mutex
	secrets   []string // what its log must not show
}

// start runs a demo on the backend with further settings, "NAME=value", and waits until it is ready.
func start(t *testing.T, b *backend, env ...string) *demo {
	t.Helper()
	d := &demo{backend: b, temporary: t.TempDir()}
	d.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.folder, "TMPDIR=" + d.temporary}, append(b.env, env...)...)
	d.run(t)
	b.demos++
	t.Cleanup(func() { d.inspect(t) })
	return d
}

var servingAt = regexp.MustCompile(`idem: serving.* address=([0-9.:]+)`)

// run retries where the port of a demo that ended was taken by somebody's connection meanwhile.
func (d *demo) run(t *testing.T) {
	t.Helper()
	for range 20 {
		addr := d.addr
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		d.cmd, d.killed = exec.Command(program), false
		d.cmd.Dir, d.cmd.Env = d.backend.folder, append(d.env, "IDEM_ADDR="+addr)
		d.process = testkit.Start(t, d.cmd, syscall.SIGTERM)
		if d.serves(t) {
			return
		}
		if !strings.Contains(d.process.Output(), "address already in use") {
			t.Fatalf("the demo ended: %s", d.process.Output())
		}
	}
	t.Fatal("the demo does not get its port again")
}

// serves reports false where the program ended instead.
func (d *demo) serves(t *testing.T) bool {
	t.Helper()
	testkit.Eventually(t, 60*time.Second, "the demo serves", func() bool {
		select {
		case <-d.process.Done():
			return true
		default:
			return servingAt.MatchString(d.process.Output())
		}
	})
	found := servingAt.FindStringSubmatch(d.process.Output())
	if found == nil {
		return false
	}
	d.addr = found[1]
	return true
}

func (d *demo) url() string { return "http://" + d.addr }

// kill is kill -9.
func (d *demo) kill() {
	d.killed = true
	d.process.End(syscall.SIGKILL)
}

// gone waits until the process has ended by itself.
func (d *demo) gone(t *testing.T) {
	t.Helper()
	d.killed = true
	select {
	case <-d.process.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the process still runs")
	}
}

// restart begins again on the same files and port, after a kill.
func (d *demo) restart(t *testing.T) {
	t.Helper()
	d.ended += d.process.Output()
	d.run(t)
}

// exit waits for the end and is the status then.
func (d *demo) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-d.process.Done():
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("the process still runs after %v", within)
		return -1
	}
}

// secret is never to be logged.
func (d *demo) secret(words ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.secrets = append(d.secrets, words...)
}

// inspect ends the demo in order. It must say nothing of what was sent, and leave nothing but its database and its key.
func (d *demo) inspect(t *testing.T) {
	t.Helper()
	d.process.End(syscall.SIGTERM)
	if code := d.cmd.ProcessState.ExitCode(); code != 0 && !d.killed {
		t.Errorf("the demo ended with %d: %s", code, last(d.process.Output()))
	}
	output := d.ended + d.process.Output()
	for _, word := range d.secrets {
		if word != "" && strings.Contains(output, word) {
			t.Errorf("the log shows %q", word)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.temporary, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if d.backend.demos--; d.backend.demos > 0 {
		return // another one works in the same folder
	}
	files, _ := filepath.Glob(filepath.Join(d.backend.folder, "*"))
	for _, file := range files {
		switch name := filepath.Base(file); {
		case name == "idem-demo.db", name == "idem-demo.keys":
		case strings.HasPrefix(name, "idem-demo.db-") && d.killed: // SQLite's, for the next start
		default:
			t.Errorf("left behind: %s", name)
		}
	}
}

func last(output string) string { return output[max(0, len(output)-2000):] }

// ready is the status of readyz, and what it says.
func (d *demo) ready(v *visitor) (int, string) {
	a := v.get("/readyz")
	return a.StatusCode, member[string](v, a, "status")
}

// becomes waits until readyz says so.
func (v *visitor) becomes(status int, text string) {
	v.Helper()
	testkit.Eventually(v, 20*time.Second, fmt.Sprintf("readyz is %d %s", status, text), func() bool {
		code, said := v.demo.ready(v)
		return code == status && said == text
	})
	if status == http.StatusOK && v.get("/healthz").StatusCode != http.StatusOK {
		v.Error("it is ready but not alive")
	}
}
