package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
)

// serviceKey is what the demo and its services share.
const serviceKey = "tea-for-two-and-two-for-tea"

// services are the examples, by how each is run.
func services(t *testing.T) map[string][]string {
	t.Helper()
	testkit.Binary(t, "curl", "curl")
	example := func(name string) string {
		path, err := filepath.Abs(filepath.Join("..", "examples", name))
		must(t, err)
		return path
	}
	return map[string][]string{
		"Python": {testkit.Binary(t, "python3", "python3"), example("order.py")},
		"shell":  {testkit.Binary(t, "sh", "dash"), example("order.sh")},
	}
}

// service is one example against one demo.
type service struct {
	*visitor
	command []string
}

// run calls the example as a page's backend would, with the token and the browser that it is bound to.
func (s service) run(token, item string) (said string, ok bool) {
	s.Helper()
	subject := ""
	address, err := url.Parse(s.demo.url())
	must(s.T, err)
	for _, cookie := range s.client.Jar.Cookies(address) {
		subject = cookie.Value
	}
	command := exec.CommandContext(s.Context(), s.command[0], append(s.command[1:], token, subject, item)...)
	command.Env = append(command.Environ(), "IDEM_URL="+s.url(""), "IDEM_SERVICE_KEY="+serviceKey, "IDEM_RENEW=0.3", "no_proxy=127.0.0.1")
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

func (s service) wantSaid(token, item, want string, succeeds bool) {
	s.Helper()
	if said, ok := s.run(token, item); said != want+"\n" || ok != succeeds {
		s.Errorf("it said %q, succeeded %v; want %q", said, ok, want)
	}
}

// TestServiceExamples: a backend in another language guards its work here, and gets the first answer the second time.
func TestServiceExamples(t *testing.T) {
	t.Parallel()
	for name, command := range services(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(t *testing.T, b *backend) {
				d := start(t, b, "IDEM_SERVICE_KEY="+serviceKey)
				d.secret(serviceKey)
				s := service{visit(t, d), command}
				token := s.token()
				s.wantSaid(token, "", "failed: an order needs an item", false)
				s.wantSaid(token, "a teapot", "attempt 2: ordered a teapot", true)
				s.wantSaid(token, "a teapot", "replayed: ordered a teapot", true)
				s.wantSaid(token[:len(token)-3], "a teapot", "refused: token_invalid", false)
				other, _ := s.tokenFor("order.cancel")
				s.wantSaid(other, "a teapot", "refused: token_wrong_action", false)
				if b.redis != nil {
					b.redis.FlushAll(t)
					s.wantSaid(token, "a teapot", "replayed: ordered a teapot", true)
				}
			})
		})
	}
}

// road is a way to the demo on which something befalls the calls before they arrive; where that reports true the answer is lost.
func (s service) road(befall func(call string, nth int, body string) (lost bool)) service {
	var mu sync.Mutex
	calls := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := path.Base(r.URL.Path)
		mu.Lock()
		calls[call]++
		nth := calls[call]
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.Error(err)
		}
		lost := befall(call, nth, string(body))
		a, err := s.try(s.request(http.MethodPost, r.URL.Path, string(body), "Authorization", r.Header.Get("Authorization")))
		if err != nil || lost {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(a.StatusCode)
		_, _ = io.WriteString(w, a.body)
	}))
	s.Cleanup(server.Close)
	along := *s.visitor
	along.base = server.URL
	return service{&along, s.command}
}

// TestServiceExamplesInTrouble: they repeat what was not answered, keep their claim for as long as it takes, and see that they have lost it.
func TestServiceExamplesInTrouble(t *testing.T) {
	t.Parallel()
	for name, command := range services(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, embedded(t), "IDEM_SERVICE_KEY="+serviceKey, "IDEM_LEASE=1s")
			d.secret(serviceKey)
			s := service{visit(t, d), command}
			token := s.token()
			s.road(func(call string, nth int, _ string) bool { return call == "complete" && nth == 1 }).
				wantSaid(token, "a teapot", "attempt 1: ordered a teapot", true)
			s.wantSaid(token, "a teapot", "replayed: ordered a teapot", true)

			s.keepsIts(s.token())

			s.road(func(call string, _ int, body string) bool {
				if _, claim, found := strings.Cut(body, `"claim"`); found && call == "complete" {
					claim = strings.Split(claim, `"`)[1]
					s.want(s.post("/api/idempotent/fail", `{"claim":"`+claim+`"}`, "Authorization", "Bearer "+serviceKey), http.StatusOK)
				}
				return false
			}).wantSaid(s.token(), "a teapot", "refused: claim_lost", false)
			s.wantSaid(`","businessKey":"7`, "a teapot", "refused: token_invalid", false)
		})
	}
}

// keepsIts claim for longer than its lease, which is a second.
func (s service) keepsIts(token string) {
	s.Helper()
	renewed := make(chan struct{}, 100)
	s.road(func(call string, _ int, _ string) bool {
		switch call {
		case "extend":
			renewed <- struct{}{}
		case "complete":
			for range 5 { // each after 0.3 s
				select {
				case <-renewed:
				case <-s.Context().Done():
				}
			}
			s.wantSaid(token, "a teapot", "refused: in_progress", false)
		}
		return false
	}).wantSaid(token, "a teapot", "attempt 1: ordered a teapot", true)
}

// TestServiceCallsAreOff without a key, and refuse another one.
func TestServiceCallsAreOff(t *testing.T) {
	t.Parallel()
	b := embedded(t)
	v := visit(t, start(t, b))
	with := visit(t, start(t, b, "IDEM_SERVICE_KEY="+serviceKey))
	for _, call := range []string{"consume", "extend", "complete", "fail"} {
		v.want(v.post("/api/idempotent/"+call, "{}", "Authorization", "Bearer "+serviceKey), http.StatusNotFound)
		with.wantRefused(with.post("/api/idempotent/"+call, "{}", "Authorization", "Bearer tea"), http.StatusUnauthorized, "unauthorized")
		with.want(with.post("/api/idempotent/"+call, "{}", "Authorization", "Bearer "+serviceKey), http.StatusBadRequest)
	}
}
