package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/tokens"
)

// asCommand lets a test start this binary as the command itself.
const asCommand = "IDEM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// output can be read while it is written.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// buffered is the program with buffers, and an environment of its own.
func buffered(environ map[string]string) (p program, out, errors *output) {
	out, errors = &output{}, &output{}
	logger := slog.New(slog.NewTextHandler(errors, nil))
	return program{out: out, err: errors, logger: logger, getenv: func(name string) string { return environ[name] }}, out, errors
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line    string
		code    int
		out     string // a part of standard output; empty: there is none
		errors  string // likewise
		environ map[string]string
	}{
		"nothing":              {code: 2, errors: "usage: idem COMMAND"},
		"help":                 {line: "-h", out: "  migrate  bring the ledger's table"},
		"help by word":         {line: "help", out: "usage: idem COMMAND"},
		"no such command":      {line: "drive", code: 2, errors: `idem: there is no command "drive"`},
		"serve, help":          {line: "serve -h", out: "  IDEM_LEASE: 1ms to 1h, such as 15s (default 15s)"},
		"serve, a flag":        {line: "serve -port 80", code: 2, errors: "idem serve: flag provided but not defined: -port"},
		"serve, a word":        {line: "serve now", code: 2, errors: `idem serve: "now" is one word too many`},
		"serve, a bad setting": {line: "serve", code: 1, errors: "IDEM_LEASE is not a duration; it may be 1ms to 1h, such as 15s\n", environ: map[string]string{"IDEM_LEASE": "soon"}},
		"migrate, help":        {line: "migrate -h", out: "usage: idem migrate\n\nIts setting, by environment variable:\n\n  IDEM_DATABASE_URL: "},
		"migrate, nothing set": {line: "migrate", code: 1, errors: "IDEM_DATABASE_URL is empty, and idem migrate needs it: sqlite:PATH, or postgres://"},
		"migrate, no database": {line: "migrate", code: 1, errors: "IDEM_DATABASE_URL is not a database", environ: map[string]string{"IDEM_DATABASE_URL": "x"}},
		"migrate, a word":      {line: "migrate up", code: 2, errors: "one word too many"},
		"keys, help":           {line: "keys -h", out: "-kid string"},
		"keys, another kind":   {line: "keys rsa", code: 2, errors: `idem keys: there are no keys of the kind "rsa"`},
		"keys, two words":      {line: "keys ed25519 rsa", code: 2, errors: `"rsa" is one word too many`},
		"keys, no kid":         {line: "keys -kid a/b", code: 1, errors: "the kid must be 1 to 64 characters"},
		"keys, no kid of pair": {line: "keys -kid a/b ed25519", code: 1, errors: "the kid must be 1 to 64 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, out, errors := buffered(c.environ)
			if code := p.run(t.Context(), strings.Fields(c.line)); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, stream := range []struct{ got, want string }{{out.String(), c.out}, {errors.String(), c.errors}} {
				if !strings.Contains(stream.got, stream.want) || (stream.want == "") != (stream.got == "") {
					t.Errorf("%q, want %q", stream.got, stream.want)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, form string }{
		"HS256":               {"keys", `\Ak[a-z2-7]{8}:[A-Za-z0-9_-]{43}\n\z`},
		"HS256 by name":       {"keys -kid autumn", `\Aautumn:[A-Za-z0-9_-]{43}\n\z`},
		"EdDSA":               {"keys ed25519", `\Ak[a-z2-7]{8}:ed25519:[A-Za-z0-9_-]{43}\n\z`},
		"EdDSA by name":       {"keys -kid autumn ed25519", `\Aautumn:ed25519:[A-Za-z0-9_-]{43}\n\z`},
		"EdDSA, flag by name": {"keys --kid=autumn ed25519", `\Aautumn:ed25519:`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, out, errors := buffered(nil)
			if code := p.run(t.Context(), strings.Fields(c.line)); code != 0 || !regexp.MustCompile(c.form).MatchString(out.String()) {
				t.Fatalf("%d %q %q", code, out, errors)
			}
			ring, err := tokens.ParseKeys(out.String())
			if err != nil || !ring[0].CanSign() {
				t.Fatalf("%v, %v", ring, err)
			}
			issuer, err := tokens.New(tokens.Config{Keys: ring})
			if err != nil {
				t.Fatal(err)
			}
			issued, err := issuer.Issue(tokens.Grant{Action: "a"})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(c.line, "ed25519") {
				return
			}
			public, _ := strings.CutPrefix(errors.String(), "for services that only verify: ")
			others, err := tokens.ParseKeys(public)
			if err != nil {
				t.Fatal(err)
			}
			verifier, err := tokens.NewVerifier(tokens.Config{Keys: others})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := verifier.Verify(issued.Token); err != nil {
				t.Error(err)
			}
		})
	}
	first, one, _ := buffered(nil)
	second, other, _ := buffered(nil)
	if first.run(t.Context(), []string{"keys"}); second.run(t.Context(), []string{"keys"}) != 0 || one.String() == other.String() {
		t.Error("the same key twice")
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"SQLite":   "sqlite:" + filepath.Join(t.TempDir(), "a.db"),
		"Postgres": testkit.Postgres(t).URL(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				p, _, errors := buffered(map[string]string{"IDEM_DATABASE_URL": url})
				if code := p.run(t.Context(), []string{"migrate"}); code != 0 || !strings.Contains(errors.String(), "the ledger's table is up to date") {
					t.Fatalf("%d %s", code, errors)
				}
			}
			key, err := tokens.GenerateHS256("k")
			if err != nil {
				t.Fatal(err)
			}
			c, err := server.Load(map[string]string{"IDEM_DATABASE_URL": url, "IDEM_KEYS": key})
			if err != nil {
				t.Fatal(err)
			}
			b, err := server.Open(t.Context(), c, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if err := b.Ledger.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// called makes one call, on a connection of its own.
func called(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// The process itself: its environment, its exit code, and SIGTERM.
func TestServe(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.Command(self, "serve")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), asCommand+"=1", "IDEM_ADDR=127.0.0.1:0")
	process := testkit.Start(t, cmd, syscall.SIGKILL)
	var url string
	testkit.Eventually(t, 20*time.Second, "it serves", func() bool {
		if found := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)`).FindStringSubmatch(process.Output()); found != nil {
			url = found[1]
		}
		return url != ""
	})
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		contains           string
	}{
		"alive":                      {http.MethodGet, "/healthz", "", 200, `{"status":"ok"}`},
		"ready":                      {http.MethodGet, "/readyz", "", 200, `{"status":"ok"}`},
		"metrics":                    {http.MethodGet, "/metrics", "", 200, "idem_entrance_failures_total 0"},
		"a token":                    {http.MethodPost, "/idem/token", `{"action":"order.create"}`, 201, `"action":"order.create"`},
		"a token by the long prefix": {http.MethodPost, "/api/idempotent/token", "", 201, `"action":"default"`},
		"the browser client":         {http.MethodGet, "/idem/idem-client.js", "", 200, "Idempotent"},
		"what a code means":          {http.MethodGet, "/idem/problems/token_used", "", 200, "token_used"},
		"calls of services are off":  {http.MethodPost, "/api/idempotent/consume", "{}", 404, ""},
		"nothing else":               {http.MethodGet, "/", "", 404, ""},
	} {
		if status, body := called(t, c.method, url+c.path, c.body); status != c.status || !strings.Contains(body, c.contains) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, file := range []string{"idem-demo.db", "idem-demo.keys"} {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-process.Done()
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(process.Output(), "idem: stopping") {
		t.Errorf("exit code %d: %s", code, process.Output())
	}
}

// What goes wrong after the settings are read is one line and an exit code, too.
func TestServeFails(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel rows, which a defer would come before
	nobody := net.JoinHostPort("127.0.0.1", strconv.Itoa(testkit.FreePort(t)))
	for name, c := range map[string]struct {
		environ map[string]string
		says    string
	}{
		"the address is taken":    {map[string]string{"IDEM_ADDR": taken.Addr().String()}, "; end what listens there, or choose another address"},
		"there is no such folder": {map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "none", "a.db")}, "IDEM_DATABASE_URL: the database cannot be used: "},
		"Postgres is away": {
			map[string]string{"IDEM_DATABASE_URL": "postgres://u:hush@" + nobody + "/d?sslmode=disable", "IDEM_KEYS": "k:" + strings.Repeat("hush", 11)},
			"IDEM_DATABASE_URL: the database cannot be used: ",
		},
		"Postgres without keys": {map[string]string{"IDEM_DATABASE_URL": "postgres://u:hush@" + nobody + "/d"}, "IDEM_KEYS is empty, and must not be with a shared Redis or Postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "a.db")}
			maps.Copy(environ, c.environ)
			p, out, errors := buffered(environ)
			if code := p.run(t.Context(), []string{"serve"}); code != 1 || out.String() != "" {
				t.Errorf("exit code %d, %q", code, out)
			}
			if text := errors.String(); !strings.Contains(text, c.says) || strings.Contains(text, "hush") {
				t.Error(text)
			}
		})
	}
}
