package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// asProgram makes the test binary the demo itself: a process that ends in the middle of its work must be a real one.
const asProgram = "DEMO_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// demo is a running shop, which can be started again on the same address and file.
type demo struct {
	*testing.T
	addr    string
	file    string // of the database, where no variable says otherwise
	env     []string
	process *testkit.Process
	client  *http.Client
}

func start(t *testing.T, env ...string) *demo {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(testkit.FreePort(t)))
	d := &demo{T: t, addr: addr, file: filepath.Join(t.TempDir(), "demo.db"), client: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	d.env = append([]string{
		asProgram + "=1", "IDEM_ADDR=" + addr, "IDEM_LEASE=500ms", "IDEM_DATABASE_URL=sqlite:" + d.file,
	}, env...)
	d.restart()
	return d
}

func (d *demo) restart() {
	d.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), d.env...)
	d.process = testkit.Start(d, cmd, syscall.SIGTERM)
	testkit.Eventually(d, 20*time.Second, "the demo is ready", func() bool {
		status, _, err := d.try(http.MethodGet, "/readyz", "")
		return err == nil && status == http.StatusOK
	})
}

func (d *demo) try(method, path, body string, header ...string) (int, string, error) {
	r, err := http.NewRequestWithContext(d.Context(), method, "http://"+d.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := d.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// want sends a request and returns the answer's body.
func (d *demo) want(status int, method, path, body string, header ...string) string {
	d.Helper()
	got, text, err := d.try(method, path, body, header...)
	if err != nil || got != status {
		d.Fatalf("%s %s: %d, %v, want %d: %s", method, path, got, err, status, text)
	}
	return text
}

func (d *demo) token() string {
	d.Helper()
	var issued struct{ Token string }
	if err := json.Unmarshal([]byte(d.want(201, http.MethodPost, "/api/idempotent/token", `{"action":"order.create"}`)), &issued); err != nil {
		d.Fatal(err)
	}
	return issued.Token
}

// dies sends a request in whose middle the process ends.
func (d *demo) dies(path, body string, header ...string) {
	d.Helper()
	if status, text, err := d.try(http.MethodPost, path, body, header...); err == nil {
		d.Fatalf("answered %d: %s", status, text)
	}
	select {
	case <-d.process.Done():
	case <-time.After(10 * time.Second):
		d.Fatal("the process goes on")
	}
}

func backends(t *testing.T) map[string][]string {
	t.Helper()
	key := "IDEM_KEYS=a:" + strings.Repeat("A", 43) + "="
	return map[string][]string{
		"sqlite":             nil,
		"postgres and redis": {"IDEM_DATABASE_URL=" + testkit.Postgres(t).URL(), "IDEM_REDIS_URL=redis://" + testkit.Redis(t).Addr, key},
	}
}

// The process ends after it has claimed and before it has committed. Whoever comes next takes over, and the work is done once.
func TestProcessEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, env := range backends(t) {
		t.Run(name, func(t *testing.T) {
			d := start(t, env...)
			const order, refund, transfer = `{"item":"cup","quantity":1}`, `{"refundNo":"r-1","orderNo":"o-1","amount":5}`, `{"from":"alice","to":"bob","amount":300}`
			token := d.token()
			d.dies("/api/orders?fail=exit", order, "Idempotent-Token", token)
			d.restart()
			d.has(order201(2), d.want(201, http.MethodPost, "/api/orders?fail=exit", order, "Idempotent-Token", token))
			d.has(`"count":1,`, d.want(200, http.MethodGet, "/api/orders?item=cup", ""))

			d.dies("/api/refunds?fail=exit", refund)
			d.restart()
			d.has(`"state":"refunded","attempt":2`, d.want(201, http.MethodPost, "/api/refunds", refund))

			d.dies("/api/transfers?fail=exit", transfer, "Idempotency-Key", "k")
			d.restart()
			d.has(`{"name":"alice","balance":1000}`, d.want(200, http.MethodGet, "/api/accounts", ""))
			d.want(201, http.MethodPost, "/api/transfers", transfer, "Idempotency-Key", "k")
			d.has(`{"name":"alice","balance":700}`, d.want(200, http.MethodGet, "/api/accounts", ""))
		})
	}
}

func order201(attempt int) string {
	return `"item":"cup","quantity":1,"attempt":` + strconv.Itoa(attempt)
}

func (d *demo) has(part, text string) {
	d.Helper()
	if !strings.Contains(text, part) {
		d.Errorf("%s lacks %s", text, part)
	}
}

// With no setting it needs nothing: keys and file are made, and found again.
func TestReplayAfterRestart(t *testing.T) {
	t.Parallel()
	d := start(t)
	token := d.token()
	first := d.want(201, http.MethodPost, "/api/orders", `{"item":"cup","quantity":1}`, "Idempotent-Token", token)
	d.process.End(syscall.SIGTERM)
	d.restart()
	if again := d.want(201, http.MethodPost, "/api/orders", `{"item":"cup","quantity":1}`, "Idempotent-Token", token); again != first {
		t.Errorf("replayed %s, the first was %s", again, first)
	}
	d.has(`"count":1,`, d.want(200, http.MethodGet, "/api/orders?item=cup", ""))
}

// A stop lets work that has begun come to its end.
func TestStopsGracefully(t *testing.T) {
	t.Parallel()
	d := start(t)
	token := d.token()
	answered := make(chan int, 1)
	go func() {
		status, _, _ := d.try(http.MethodPost, "/api/orders?delay=1s", `{"item":"cup","quantity":1}`, "Idempotent-Token", token)
		answered <- status
	}()
	db, err := sqlitestore.Open(d.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testkit.Eventually(t, 10*time.Second, "the order has begun", func() bool {
		running := 0
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM idempotent_record WHERE status = 'processing'`).Scan(&running)
		return err == nil && running == 1
	})
	if err := d.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("status %d", status)
	}
	<-d.process.Done()
}

func TestOperations(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.has(`{"status":"ok"}`, d.want(200, http.MethodGet, "/healthz", ""))
	d.want(201, http.MethodPost, "/api/orders?delay=1ms", `{"item":"cup","quantity":1}`, "Idempotent-Token", d.token())
	d.has("idem_", d.want(200, http.MethodGet, "/metrics", ""))
	d.has("Demos", d.want(200, http.MethodGet, "/", ""))
	d.has("idem", d.want(200, http.MethodGet, "/idem/idem-client.js", ""))
	d.want(500, http.MethodPost, "/api/orders?fail=panic", `{"item":"cup","quantity":1}`, "Idempotent-Token", d.token())
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ variable, value string }{
		"address":  {"IDEM_ADDR", "nowhere"},
		"duration": {"IDEM_LEASE", "soon"},
		"database": {"IDEM_DATABASE_URL", "mysql://x"},
		"file":     {"IDEM_DATABASE_URL", "sqlite:/nowhere/at/all/demo.db"},
		"redis":    {"IDEM_REDIS_URL", "http://x"},
		"keys":     {"IDEM_KEYS", "short:AAAA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"IDEM_ADDR": "127.0.0.1:0", "IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "demo.db")}
			settings[c.variable] = c.value
			err := run(t.Context(), settings, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.variable) {
				t.Errorf("%v; it must name %s", err, c.variable)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	logger := slog.New(slog.NewTextHandler(&cancelling{Buffer: &said, cancel: cancel}, nil))
	settings := map[string]string{"IDEM_ADDR": "127.0.0.1:0", "IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "demo.db")}
	if err := run(ctx, settings, logger); err != nil {
		t.Errorf("%v after %s", err, said.String())
	}
}

// cancelling ends the context with the line that says that the shop is open.
type cancelling struct {
	*bytes.Buffer
	cancel func()
}

func (c *cancelling) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("serving")) {
		c.cancel()
	}
	return c.Buffer.Write(line)
}
