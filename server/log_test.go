package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem/server"
)

// troubled answers as its path says.
func troubled(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/silent":
	case "/created":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "made")
	case "/panic":
		w.Header().Set("Content-Length", "1000")
		panic("nothing works")
	case "/half":
		_, _ = io.WriteString(w, "half an ans")
		_ = http.NewResponseController(w).Flush()
		panic("in the middle")
	case "/abort":
		panic(http.ErrAbortHandler)
	}
}

func TestLogAndRecover(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		status  int // 0: the connection is cut
		body    string
		logged  float64
		bytes   float64
		panics  int
		aborted bool
	}{
		"/silent":  {status: 200, logged: 200},
		"/created": {status: 201, body: "made", logged: 201, bytes: 4},
		"/panic":   {status: 500, body: "Internal Server Error\n", logged: 500, bytes: 22, panics: 1},
		"/half":    {logged: 200, bytes: 11, panics: 1, aborted: true},
		"/abort":   {logged: 0, aborted: true},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			var handler http.Handler = http.HandlerFunc(troubled)
			stack := load(t, nil).Middleware(log.logger())
			for i := len(stack) - 1; i >= 0; i-- {
				handler = stack[i](handler)
			}
			host := httptest.NewServer(handler)
			defer host.Close()

			// A GET is repeated by Go's client where the connection is cut; a POST is not.
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host.URL+path+"?token="+mark, strings.NewReader(mark))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Idempotent-Token": {mark}, "Cookie": {"idem=" + mark}, "Authorization": {"Bearer " + mark}, "User-Agent": {mark}}
			status, body, err := do(client(t), req)
			if c.status == 0 && err == nil || c.status != 0 && (err != nil || status != c.status || body != c.body) {
				t.Errorf("%d %q, %v", status, body, err)
			}
			host.Close() // the log line follows the answer

			lines := log.lines(t, "request")
			if len(lines) != 1 {
				t.Fatalf("log: %s", log)
			}
			line := lines[0]
			if line["method"] != "POST" || line["path"] != path || line["status"] != c.logged || line["bytes"] != c.bytes || line["took"] == nil {
				t.Errorf("%v", line)
			}
			if (line["aborted"] == true) != c.aborted || len(log.lines(t, "panic")) != c.panics || strings.Contains(log.String(), mark) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

func do(c *http.Client, req *http.Request) (status int, body string, err error) {
	res, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), errors.Join(err, res.Body.Close())
}

func TestRecoverSaysWhatPanickedAndWhere(t *testing.T) {
	t.Parallel()
	log := &journal{}
	handler := server.Recover(log.logger())(http.HandlerFunc(troubled))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/panic?q=1", nil))
	lines := log.lines(t, "panic")
	if len(lines) != 1 || lines[0]["panic"] != "nothing works" || lines[0]["path"] != "/panic" || !strings.Contains(fmt.Sprint(lines[0]["stack"]), "log_test.go") {
		t.Errorf("%v", lines)
	}
}
