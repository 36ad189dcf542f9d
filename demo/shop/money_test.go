package shop_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// balances are the accounts, by name.
func (s *site) balances() map[string]int {
	s.Helper()
	a := s.get("/api/accounts")
	s.want(a, http.StatusOK)
	var list struct {
		Accounts []struct {
			Name    string
			Balance int
		}
	}
	must(s.T, json.Unmarshal([]byte(a.body), &list))
	all := map[string]int{}
	for _, one := range list.Accounts {
		all[one.Name] = one.Balance
	}
	return all
}

func (s *site) wantBalances(want map[string]int) {
	s.Helper()
	if got := s.balances(); !maps.Equal(got, want) {
		s.Errorf("balances %v, want %v", got, want)
	}
}

func (s *site) transfer(key, query, body string) answer {
	s.Helper()
	return s.post("/api/transfers"+query, body, "Idempotency-Key", key)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		s.wantBalances(map[string]int{"alice": 1000, "bob": 1000, "carol": 1000})
		const body = `{"from":"alice","to":"bob","amount":300}`
		first := s.transfer("k-1", "", body)
		s.want(first, http.StatusCreated)
		if got := strings.TrimSpace(first.body); got != body {
			s.Errorf("answer %s, want %s", got, body)
		}
		s.wantReplay(s.transfer("k-1", "", body), first)
		s.wantReplay(s.transfer(`"k-1";v=1`, "", body), first) // the same key, as a structured field
		s.wantBalances(map[string]int{"alice": 700, "bob": 1300, "carol": 1000})
		s.want(s.transfer("k-2", "", body), http.StatusCreated)
		s.wantBalances(map[string]int{"alice": 400, "bob": 1600, "carol": 1000})
		a := s.transfer("k-2", "", `{"from":"alice","to":"bob","amount":301}`)
		s.want(a, http.StatusUnprocessableEntity)
		if got := member[string](s, a, "code"); got != "payload_mismatch" {
			s.Errorf("code %q", got)
		}
	})
}

func TestTransferRefused(t *testing.T) {
	t.Parallel()
	eachBackend(t, transfersRefused)
}

func transfersRefused(s *site) {
	for name, c := range map[string]struct {
		key, body string
		status    int
		says      string
	}{
		"no key":             {"", `{"from":"alice","to":"bob","amount":1}`, 400, "key_missing"},
		"key with a space":   {"a b", `{"from":"alice","to":"bob","amount":1}`, 400, "key_invalid"},
		"unknown from":       {"k", `{"from":"mallory","to":"bob","amount":1}`, 422, `"from","detail":"names no account`},
		"unknown to":         {"k", `{"from":"alice","to":"mallory","amount":1}`, 422, `"to","detail":"names no account`},
		"name by case":       {"k", `{"from":"Alice","to":"bob","amount":1}`, 422, `"from","detail":"names no account`},
		"to oneself":         {"k", `{"from":"alice","to":"alice","amount":1}`, 422, `another account than from`},
		"nothing":            {"k", `{"from":"alice","to":"bob","amount":0}`, 422, `whole number from 1`},
		"backwards":          {"k", `{"from":"alice","to":"bob","amount":-5}`, 422, `whole number from 1`},
		"above the balance":  {"k", `{"from":"alice","to":"bob","amount":1001}`, 422, `above the balance of alice, which is 1000`},
		"a fraction":         {"k", `{"from":"alice","to":"bob","amount":0.5}`, 422, `whole number from 1`},
		"more than there is": {"k", `{"from":"alice","to":"bob","amount":9223372036854775808}`, 422, `whole number from 1`},
		"without members":    {"k", `{}`, 422, `from is required; to is required; amount is required`},
		"unknown member":     {"k", `{"from":"alice","to":"bob","amount":1,"now":true}`, 400, `is not known`},
		"not JSON":           {"k", `from=alice`, 400, `one JSON object`},
	} {
		s.Run(name, func(t *testing.T) {
			s := s.in(t)
			a := s.transfer(c.key, "", c.body)
			s.want(a, c.status)
			if !strings.Contains(a.body, c.says) || a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %s, want %s", a.Header.Get("Content-Type"), a.body, c.says)
			}
			s.wantBalances(map[string]int{"alice": 1000, "bob": 1000, "carol": 1000})
		})
	}
	// The key is free for a corrected transfer.
	s.want(s.transfer("k", "", `{"from":"alice","to":"bob","amount":1000}`), http.StatusCreated)
}

// Transfers that cross neither wait for one another for ever nor lose a unit.
func TestTransfersThatCross(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		names := []string{"alice", "bob", "carol"}
		var all sync.WaitGroup
		for i := range 30 {
			from, to := names[i%3], names[(i+1+i%2)%3]
			body := fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d}`, from, to, i+1)
			for range 2 { // each of them twice
				r := s.request(http.MethodPost, "/api/transfers", body, "Idempotency-Key", fmt.Sprintf("cross-%d", i))
				all.Go(func() {
					if a, err := s.try(r); err != nil || a.StatusCode != http.StatusCreated {
						s.Errorf("transfer %d: %v, %s", i, err, a.body)
					}
				})
			}
		}
		all.Wait()
		want := map[string]int{"alice": 1000, "bob": 1000, "carol": 1000}
		for i := range 30 {
			want[names[i%3]] -= i + 1
			want[names[(i+1+i%2)%3]] += i + 1
		}
		s.wantBalances(want)
	})
}

// A transfer holds its transaction while it is slow; what else is written waits for it, and does not fail.
func TestOthersWaitForATransfer(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		wanted, token := item(), s.token()
		slow := s.request(http.MethodPost, "/api/transfers?delay=1s", `{"from":"alice","to":"bob","amount":1}`, "Idempotency-Key", "slow")
		var all sync.WaitGroup
		all.Go(func() {
			if a, err := s.try(slow); err != nil || a.StatusCode != http.StatusCreated {
				s.Errorf("transfer: %v, %s", err, a.body)
			}
		})
		s.want(s.order(token, "", one(wanted)), http.StatusCreated)
		s.want(s.post("/api/unguarded/orders", one(wanted)), http.StatusCreated)
		s.want(s.post("/api/refunds", `{"refundNo":"`+item()+`","orderNo":"o-1","amount":5}`), http.StatusCreated)
		all.Wait()
		s.wantOrders(wanted, 2)
	})
}

func TestRefund(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		no := item()
		body := `{"refundNo":"` + no + `","orderNo":"o-1","amount":5}`
		first := s.post("/api/refunds", body)
		s.want(first, http.StatusCreated)
		if want := `{"refundNo":"` + no + `","orderNo":"o-1","amount":5,"state":"refunded","attempt":1}`; strings.TrimSpace(first.body) != want {
			s.Errorf("answer %s, want %s", first.body, want)
		}
		s.client = newBrowser(s.T) // the number is everybody's
		s.wantReplay(s.post("/api/refunds", body), first)
		s.parts.forget()
		s.wantReplay(s.post("/api/refunds", body), first)
		a := s.post("/api/refunds", strings.Replace(body, `"amount":5`, `"amount":6`, 1))
		s.want(a, http.StatusUnprocessableEntity)
		if got := member[string](s, a, "code"); got != "payload_mismatch" {
			s.Errorf("code %q", got)
		}
	})
}

func TestRefundsSentTogether(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		body := `{"refundNo":"` + item() + `","orderNo":"o-1","amount":5}`
		for _, a := range s.together(6, func() *http.Request { return s.request(http.MethodPost, "/api/refunds?delay=100ms", body) }) {
			s.want(a, http.StatusCreated)
			if got := member[float64](s, a, "attempt"); got != 1 {
				s.Errorf("attempt %v", got)
			}
		}
	})
}

// After an attempt that died behind the gateway's back nothing is sent again: the resolver has the gateway's answer.
func TestRefundIsResolved(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		body := `{"refundNo":"` + item() + `","orderNo":"o-1","amount":5}`
		s.exitIn("/api/refunds?fail=exit", body)
		a := s.post("/api/refunds", body)
		s.want(a, http.StatusCreated)
		if a.Header.Get("Idempotent-Replayed") != "true" || a.Header.Get("Content-Type") != "application/json" {
			s.Errorf("header %v: the gateway's answer is a replay", a.Header)
		}
		if got := member[float64](s, a, "attempt"); got != 2 {
			s.Errorf("attempt %v, want the one that recorded it", got)
		}
		s.wantReplay(s.post("/api/refunds", body), a)
	})
}

// One that failed before the gateway was asked is not known there, and may be corrected.
func TestFailedRefundIsSentAgain(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		no := item()
		s.want(s.post("/api/refunds?fail=500", `{"refundNo":"`+no+`","orderNo":"o-1","amount":5}`), http.StatusInternalServerError)
		a := s.post("/api/refunds", `{"refundNo":"`+no+`","orderNo":"o-1","amount":6}`)
		s.want(a, http.StatusCreated)
		if a.Header.Get("Idempotent-Replayed") != "" || member[float64](s, a, "amount") != 6 || member[float64](s, a, "attempt") != 2 {
			s.Errorf("answer %s, header %v", a.body, a.Header)
		}
	})
}

func TestRefundRefused(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"no number":         {`{"orderNo":"o-1","amount":5}`, 400, "key_missing"},
		"blank number":      {`{"refundNo":" ","orderNo":"o-1","amount":5}`, 400, "key_missing"},
		"number twice":      {`{"refundNo":"a","refundNo":"b","orderNo":"o-1","amount":5}`, 400, "key_invalid"},
		"number an object":  {`{"refundNo":{},"orderNo":"o-1","amount":5}`, 400, "key_invalid"},
		"number a number":   {`{"refundNo":7,"orderNo":"o-1","amount":5}`, 422, `"refundNo","detail":"must be a string"`},
		"no order":          {`{"refundNo":"r-2","amount":5}`, 422, `"orderNo","detail":"is required"`},
		"nothing":           {`{"refundNo":"r-3","orderNo":"o-1","amount":0}`, 422, `whole number from 1`},
		"no amount":         {`{"refundNo":"r-4","orderNo":"o-1"}`, 422, `"amount","detail":"is required"`},
		"unknown member":    {`{"refundNo":"r-5","orderNo":"o-1","amount":5,"why":""}`, 400, `is not known`},
		"not JSON":          {`refundNo=r-6`, 400, `key_invalid`},
		"number over long":  {`{"refundNo":"` + strings.Repeat("r", 101) + `","orderNo":"o-1","amount":5}`, 422, `at most 100 characters`},
		"order's over long": {`{"refundNo":"r-7","orderNo":"` + strings.Repeat("o", 101) + `","amount":5}`, 422, `at most 100 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.in(t).post("/api/refunds", c.body)
			s.want(a, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("%s, want %s", a.body, c.says)
			}
		})
	}
}
