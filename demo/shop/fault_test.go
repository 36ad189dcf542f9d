package shop_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// routes that take the fault parameters, and how to call them.
func guardedRoutes() map[string]func(s *site) func(query string) answer {
	return map[string]func(s *site) func(query string) answer{
		"orders": func(s *site) func(string) answer {
			token, body := s.token(), one(item())
			return func(query string) answer { return s.order(token, query, body) }
		},
		"refunds": func(s *site) func(string) answer {
			body := `{"refundNo":"` + item() + `","orderNo":"o-1","amount":5}`
			return func(query string) answer { return s.post("/api/refunds"+query, body) }
		},
		"transfers": func(s *site) func(string) answer {
			key := strings.ReplaceAll(item(), " ", "-")
			return func(query string) answer {
				return s.post("/api/transfers"+query, `{"from":"alice","to":"bob","amount":1}`, "Idempotency-Key", key)
			}
		},
	}
}

func TestFirstAttemptFails(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		for fail, status := range map[string]int{"500": 500, "422": 422, "panic": 500} {
			for route, prepare := range guardedRoutes() {
				s.Run(fail+" "+route, func(t *testing.T) {
					s := s.in(t)
					send := prepare(s)
					s.want(send("?fail="+fail), status)
					if route == "transfers" { // each call that asks for it fails
						s.want(send("?fail="+fail), status)
						s.want(send(""), http.StatusCreated)
						return
					}
					a := send("?fail=" + fail)
					s.want(a, http.StatusCreated)
					if got := member[float64](s, a, "attempt"); got != 2 || a.Header.Get("Idempotent-Replayed") != "" {
						s.Errorf("attempt %v, replayed %q; want the second attempt itself", got, a.Header.Get("Idempotent-Replayed"))
					}
					s.wantReplay(send(""), a)
				})
			}
		}
	})
}

// A failed attempt takes with it what it had written.
func TestFailedAttemptWritesNothing(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		for _, fail := range []string{"500", "422", "panic"} {
			wanted, token := item(), s.token()
			s.order(token, "?fail="+fail, one(wanted))
			s.wantOrders(wanted, 0)
			s.want(s.order(token, "", one(wanted)), http.StatusCreated)
			s.wantOrders(wanted, 1)
		}
		before := s.get("/api/accounts").body
		s.post("/api/transfers?fail=500", `{"from":"alice","to":"bob","amount":1}`, "Idempotency-Key", "k")
		if after := s.get("/api/accounts").body; after != before {
			s.Errorf("accounts %s, were %s", after, before)
		}
	})
}

// exitIn sends a request in whose middle the process is to end. The fixture ends the connection instead.
func (s *site) exitIn(path, body string, header ...string) {
	s.Helper()
	r := s.request(http.MethodPost, path, body, header...)
	if a, err := s.try(r); err == nil {
		s.Fatalf("answered %d %s", a.StatusCode, a.body)
	}
	select {
	case code := <-s.exits:
		if code != 137 {
			s.Errorf("exit status %d", code)
		}
	case <-time.After(10 * time.Second):
		s.Fatal("the process was not ended")
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, token := item(), s.token()
		s.exitIn("/api/orders?fail=exit", one(wanted), "Idempotent-Token", token)
		s.wantOrders(wanted, 0)
		a := s.order(token, "?fail=exit", one(wanted))
		s.want(a, http.StatusCreated)
		if got := member[float64](s, a, "attempt"); got != 2 {
			s.Errorf("attempt %v, want 2", got)
		}
		s.wantOrders(wanted, 1)
	})
}

func TestParameters(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct {
		query  string
		status int
	}{
		"no delay":            {"?delay=0s", 201},
		"a short delay":       {"?delay=1ms", 201},
		"a word":              {"?delay=soon", 400},
		"no unit":             {"?delay=5", 400},
		"empty":               {"?delay=", 400},
		"negative":            {"?delay=-1s", 400},
		"over twenty seconds": {"?delay=20001ms", 400},
		"fails by no fault":   {"?fail=", 201},
		"unknown fault":       {"?fail=501", 400},
		"fault in upper case": {"?fail=PANIC", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			for route, a := range map[string]answer{
				"guarded":   s.order(s.token(), c.query, one("cup")),
				"unguarded": s.post("/api/unguarded/orders"+c.query, one("cup")),
				"transfers": s.post("/api/transfers"+c.query, `{"from":"alice","to":"bob","amount":1}`, "Idempotency-Key", item()[7:]),
				"refunds":   s.post("/api/refunds"+c.query, `{"refundNo":"`+item()+`","orderNo":"o-1","amount":5}`),
			} {
				s.want(a, c.status)
				if c.status == http.StatusBadRequest && a.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: Content-Type %q", route, a.Header.Get("Content-Type"))
				}
			}
			if want := map[int]int{201: 200, 400: 400}[c.status]; s.get("/form"+c.query).StatusCode != want {
				t.Error("the form thinks otherwise")
			}
		})
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const delay = 150 * time.Millisecond
	for route, prepare := range guardedRoutes() {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			s := open(t, onSQLite(t))
			send := prepare(s)
			begun := time.Now()
			first := send("?delay=" + delay.String())
			s.want(first, http.StatusCreated)
			if took := time.Since(begun); took < delay {
				t.Errorf("took %v", took)
			}
			s.wantReplay(send("?delay=20s"), first) // a replay is not worked for
		})
	}
}
