package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/idemkit/idem/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a log that can be read while it is written.
type journal struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buffer.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buffer.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines are those with the message.
func (j *journal) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for text := range strings.Lines(j.String()) {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("log line %q: %v", text, err)
		}
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// load reads settings; the database is a file of the test's own where none is named.
func load(t *testing.T, environ map[string]string) server.Config {
	t.Helper()
	all := map[string]string{"IDEM_ADDR": "127.0.0.1:0", "IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")}
	for name, value := range environ {
		all[name] = value
	}
	c, err := server.Load(all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens the back ends of the settings, and closes them with the test.
func open(t *testing.T, environ map[string]string, logger *slog.Logger) *server.Backends {
	t.Helper()
	b, err := server.Open(t.Context(), load(t, environ), logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// client has connections of its own, which are closed with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// send makes one call and reads the answer.
func send(t *testing.T, c *http.Client, method, url, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}
