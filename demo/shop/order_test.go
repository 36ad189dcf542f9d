package shop_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted := item()
		a := s.order(s.token(), "", `{"item":"`+wanted+`","quantity":3}`)
		s.want(a, http.StatusCreated)
		id := member[string](s, a, "id")
		if got := a.Header.Get("Location"); got != "/orders/"+id || !strings.HasPrefix(id, "o-") || len(id) != 12 {
			s.Errorf("id %q, Location %q", id, got)
		}
		if want := `{"id":"` + id + `","item":"` + wanted + `","quantity":3,"attempt":1}`; strings.TrimSpace(a.body) != want {
			s.Errorf("answer %s, want %s", a.body, want)
		}
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			s.Errorf("Content-Type %q", got)
		}
		s.wantOrders(wanted, 1)
		s.want(s.get("/orders/"+id), http.StatusOK)
	})
}

func TestListOfOrders(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted := item()
		for range 3 {
			s.want(s.order(s.token(), "", one(wanted)), http.StatusCreated)
		}
		s.want(s.order(s.token(), "", one(item())), http.StatusCreated)
		a := s.get("/api/orders?item=" + url.QueryEscape(wanted))
		s.want(a, http.StatusOK)
		var list struct {
			Count  int
			Orders []struct {
				ID, Item          string
				Quantity, Attempt int
			}
		}
		must(s.T, json.Unmarshal([]byte(a.body), &list))
		if list.Count != 3 || len(list.Orders) != 3 {
			s.Fatalf("list %s", a.body)
		}
		for _, o := range list.Orders {
			if o.Item != wanted || o.Quantity != 1 || o.Attempt != 1 || o.ID == "" {
				s.Errorf("order %+v", o)
			}
		}
		if got := a.Header.Get("Cache-Control"); got != "no-store" {
			s.Errorf("Cache-Control %q: a count must not be a cached one", got)
		}
	})
}

func TestListOfNothing(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	a := s.get("/api/orders?item=nothing")
	if got := strings.TrimSpace(a.body); got != `{"count":0,"orders":[]}` {
		t.Errorf("list %s", got)
	}
	s.want(s.get("/api/orders"), http.StatusBadRequest)
}

// The order is the same however many arrive at once, and the winner alone is not a replay.
func TestSubmittedTogether(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, token := item(), s.token()
		answers := s.together(8, func() *http.Request {
			return s.request(http.MethodPost, "/api/orders?delay=200ms", one(wanted), "Idempotent-Token", token)
		})
		firsts := 0
		for _, a := range answers {
			s.want(a, http.StatusCreated)
			if a.body != answers[0].body {
				s.Errorf("answers differ: %s and %s", a.body, answers[0].body)
			}
			if a.Header.Get("Idempotent-Replayed") == "" {
				firsts++
			}
		}
		if firsts != 1 {
			s.Errorf("%d answers are not marked as replays, want 1", firsts)
		}
		s.wantOrders(wanted, 1)
	})
}

// together sends copies of a request at once.
func (s *site) together(n int, request func() *http.Request) []answer {
	s.Helper()
	answers, errs := make([]answer, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		r := request()
		all.Go(func() { answers[i], errs[i] = s.try(r) })
	}
	all.Wait()
	for _, err := range errs {
		must(s.T, err)
	}
	return answers
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(s *site){
		"as it is":             func(*site) {},
		"the entrance forgot":  func(s *site) { s.parts.forget() },
		"another tab, another": func(s *site) { s.want(s.order(s.token(), "", one(item())), http.StatusCreated) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(s *site) {
				wanted, token := item(), s.token()
				first := s.order(token, "", one(wanted))
				between(s)
				s.wantReplay(s.order(token, "", one(wanted)), first)
				s.wantReplay(s.order(token, "?delay=10ms&fail=500", one(wanted)), first) // what the fingerprint ignores
				s.wantOrders(wanted, 1)
			})
		})
	}
}

func TestCorrected(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, token := item(), s.token()
		a := s.order(token, "", `{"item":"`+wanted+`","quantity":100}`)
		s.want(a, http.StatusUnprocessableEntity)
		if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
			s.Errorf("Content-Type %q", got)
		}
		if !strings.Contains(a.body, `"errors":[{"field":"quantity","detail":"must be a whole number from 1 to 99"}]`) {
			s.Errorf("problem %s", a.body)
		}
		a = s.order(token, "", `{"item":"`+wanted+`","quantity":99}`)
		s.want(a, http.StatusCreated)
		if got := member[float64](s, a, "attempt"); got != 2 {
			s.Errorf("attempt %v, want 2", got)
		}
		s.wantOrders(wanted, 1)
	})
}

// Every refusal leaves the shop as it was.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send   func(s *site, token, item string) answer
		status int
		code   string
	}{
		"no token":   {func(s *site, _, item string) answer { return s.post("/api/orders", one(item)) }, 400, "token_missing"},
		"forged":     {func(s *site, token, item string) answer { return s.order(token+"x", "", one(item)) }, 403, "token_invalid"},
		"in the URL": {func(s *site, token, item string) answer { return s.order(token, "?idempotent_token=x", one(item)) }, 400, "token_in_url"},
		"another's": {func(s *site, token, item string) answer {
			s.client = newBrowser(s.T)
			s.token()
			return s.order(token, "", one(item))
		}, 403, "token_wrong_subject"},
		"for another action": {func(s *site, _, item string) answer {
			a := s.post("/idem/token", `{"action":"order.cancel"}`)
			return s.order(member[string](s, a, "token"), "", one(item))
		}, 403, "token_wrong_action"},
		"another site's": {func(s *site, token, item string) answer {
			return s.post("/api/orders", one(item), "Idempotent-Token", token, "Sec-Fetch-Site", "cross-site")
		}, 403, "cross_origin"},
		"too large": {func(s *site, token, _ string) answer {
			return s.order(token, "", one(strings.Repeat("x", 11<<20)))
		}, 413, "body_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, onSQLite(t))
			wanted := item()
			a := c.send(s, s.token(), wanted)
			s.want(a, c.status)
			if got := member[string](s, a, "code"); got != c.code {
				t.Errorf("code %q, want %q", got, c.code)
			}
			s.wantOrders(wanted, 0)
		})
	}
}

func TestAnotherPayload(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, other, token := item(), item(), s.token()
		s.want(s.order(token, "", one(wanted)), http.StatusCreated)
		a := s.order(token, "", one(other))
		s.want(a, http.StatusUnprocessableEntity)
		if got := member[string](s, a, "code"); got != "payload_mismatch" {
			s.Errorf("code %q", got)
		}
		s.wantOrders(other, 0)
		s.want(s.order(s.token(), "", one(other)), http.StatusCreated)
	})
}

// What the guard is there for.
func TestUnguarded(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted := item()
		answers := s.together(3, func() *http.Request {
			return s.request(http.MethodPost, "/api/unguarded/orders?delay=20ms", one(wanted))
		})
		for _, a := range answers {
			s.want(a, http.StatusCreated)
			if got := member[float64](s, a, "attempt"); got != 0 {
				s.Errorf("attempt %v: nobody counts them", got)
			}
		}
		s.wantOrders(wanted, 3)
	})
}
