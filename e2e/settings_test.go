package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// TestWrongSettings: one line that names the variable, and no start. What was wrong may be a secret and is not shown.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting string
		shows   string // what must not be shown; empty: nothing is secret
	}{
		"address without a port":        {"IDEM_ADDR=localhost", ""},
		"address with a name for port":  {"IDEM_ADDR=127.0.0.1:http", ""},
		"duration":                      {"IDEM_LEASE=soon", "soon"},
		"duration out of range":         {"IDEM_LEASE=0s", ""},
		"retention below the token":     {"IDEM_RETENTION=1m", ""},
		"waiting a negative time":       {"IDEM_WAIT=-1s", ""},
		"life of a token":               {"IDEM_TOKEN_TTL=0", ""},
		"result retention":              {"IDEM_RESULT_RETENTION=1 day", "1 day"},
		"rate":                          {"IDEM_TOKEN_RATE=a few", "a few"},
		"Redis, another scheme":         {"IDEM_REDIS_URL=http://user:hunter2@localhost", "hunter2"},
		"Redis, a port that is none":    {"IDEM_REDIS_URL=redis://user:hunter2@localhost:port", "hunter2"},
		"Redis without keys":            {"IDEM_REDIS_URL=redis://127.0.0.1:1", ""},
		"database, another scheme":      {"IDEM_DATABASE_URL=mysql://user:hunter2@localhost/shop", "hunter2"},
		"database, a port that is none": {"IDEM_DATABASE_URL=postgres://user:hunter2@localhost:port/shop", "hunter2"},
		"database in memory":            {"IDEM_DATABASE_URL=sqlite::memory:", ""},
		"keys that are none":            {"IDEM_KEYS=hunter2", "hunter2"},
		"keys that are too short":       {"IDEM_KEYS=k:aHVudGVyMg==", "aHVudGVyMg"},
		"public URL with a path":        {"IDEM_PUBLIC_URL=https://shop.example/path", ""},
		"service key with a blank":      {"IDEM_SERVICE_KEY=hunter two", "hunter"},
		"password with a line break":    {"IDEM_OPS_PASSWORD=hunter\ntwo", "hunter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			variable, _, _ := strings.Cut(c.setting, "=")
			if variable == "IDEM_REDIS_URL" && c.shows == "" {
				variable = "IDEM_KEYS"
			}
			output, code := runBriefly(t, c.setting)
			if code == 0 || code == -1 {
				t.Errorf("it ended with %d", code)
			}
			if lines := strings.Split(strings.TrimSpace(output), "\n"); len(lines) != 1 || !strings.HasPrefix(lines[0], variable+" ") {
				t.Errorf("it says %q, want one line that begins with %s", output, variable)
			}
			if c.shows != "" && strings.Contains(output, c.shows) {
				t.Errorf("it shows %q: %s", c.shows, output)
			}
		})
	}
}

// TestSettingsAllAtOnce: a line each, so that nobody has to start as often as there are mistakes.
func TestSettingsAllAtOnce(t *testing.T) {
	t.Parallel()
	output, code := runBriefly(t, "IDEM_LEASE=x", "IDEM_WAIT=y", "IDEM_ADDR=z")
	for _, variable := range []string{"IDEM_LEASE", "IDEM_WAIT", "IDEM_ADDR"} {
		if strings.Count(output, variable+" ") != 1 {
			t.Errorf("%s is not named once in %q", variable, output)
		}
	}
	if code != 1 {
		t.Errorf("it ended with %d", code)
	}
}

// TestDatabaseAwayAtStart: without the ledger there is nothing to serve. The password stays out of sight.
func TestDatabaseAwayAtStart(t *testing.T) {
	t.Parallel()
	output, code := runBriefly(t, "IDEM_DATABASE_URL=postgres://shop:hunter2@127.0.0.1:1/shop?sslmode=disable", "IDEM_KEYS="+keys(t))
	if code != 1 || !strings.Contains(output, "IDEM_DATABASE_URL") || strings.Contains(output, "hunter2") {
		t.Errorf("it ended with %d and says %q", code, output)
	}
}

// TestPortTaken names the variable to change.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	d := start(t, embedded(t))
	output, code := runBriefly(t, "IDEM_ADDR="+d.addr)
	if code != 1 || !strings.Contains(output, "IDEM_ADDR") {
		t.Errorf("it ended with %d and says %q", code, output)
	}
}

// runBriefly runs the demo with settings that it is to refuse; -1: it was still running.
func runBriefly(t *testing.T, env ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "TMPDIR=" + cmd.Dir, "IDEM_ADDR=127.0.0.1:0"}, env...)
	process := testkit.Start(t, cmd, stopSignal)
	select {
	case <-process.Done():
		return process.Output(), cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		return process.Output(), -1
	}
}
