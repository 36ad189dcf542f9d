package shop_test

import (
	"net/http"
	"strings"
	"testing"
)

func paying(no, channel string) string {
	return `{"orderNo":"` + no + `","paymentChannel":"` + channel + `","amount":5}`
}

func (s *site) wantDuplicate(a answer) {
	s.Helper()
	s.want(a, http.StatusTooManyRequests)
	if got := member[string](s, a, "code"); got != "duplicate_in_window" {
		s.Errorf("code %q", got)
	}
	if left := member[float64](s, a, "retryAfter"); left < 1 || left > 10 || a.Header.Get("Retry-After") != "" {
		s.Errorf("retryAfter %v, header %q", left, a.Header.Get("Retry-After"))
	}
}

func TestPayment(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		no := item()
		first := s.post("/api/payments", paying(no, "card"))
		s.want(first, http.StatusCreated)
		if got := strings.TrimSpace(first.body); got != paying(no, "card") {
			s.Errorf("answer %s", got)
		}
		s.wantDuplicate(s.post("/api/payments", paying(no, "card")))
		s.wantDuplicate(s.post("/api/payments", strings.Replace(paying(no, "card"), `"amount":5`, `"amount":6`, 1)))
		s.client = newBrowser(s.T) // the window is everybody's
		s.wantDuplicate(s.post("/api/payments", `{"paymentChannel":"card","amount":5,"orderNo":"`+no+`"}`))
		s.want(s.post("/api/payments", paying(no, "cash")), http.StatusCreated)
		s.want(s.post("/api/payments", paying(no+"c", "ard")), http.StatusCreated) // the parts are told apart
	})
}

func TestPaymentsSentTogether(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		no, paid := item(), 0
		for _, a := range s.together(8, func() *http.Request {
			return s.request(http.MethodPost, "/api/payments?delay=100ms", paying(no, "card"))
		}) {
			if a.StatusCode == http.StatusCreated {
				paid++
				continue
			}
			s.wantDuplicate(a)
		}
		if paid != 1 {
			s.Errorf("paid %d times", paid)
		}
	})
}

// One that failed wrote nothing, and the next may follow at once.
func TestFailedPaymentOpensTheWindow(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		for fail, status := range map[string]int{"500": 500, "422": 422, "panic": 500} {
			no := item()
			for range 2 { // each call that asks for it fails
				s.want(s.post("/api/payments?fail="+fail, paying(no, "card")), status)
			}
			s.want(s.post("/api/payments", `{"orderNo":"`+no+`","paymentChannel":"card","amount":0}`), http.StatusUnprocessableEntity)
			s.want(s.post("/api/payments", paying(no, "card")), http.StatusCreated)
			s.wantDuplicate(s.post("/api/payments?fail="+fail, paying(no, "card")))
		}
	})
}

// Of a payment whose writing got no answer nobody knows: the window stays closed.
func TestUnknownPaymentKeepsTheWindowClosed(t *testing.T) {
	t.Parallel()
	p, db := onFile(t)
	s := open(t, p)
	_, err := db.ExecContext(t.Context(), `DROP TABLE shop_payment`)
	must(t, err)
	a := s.post("/api/payments", paying("o-1", "card"))
	s.want(a, http.StatusServiceUnavailable)
	if !strings.Contains(a.body, "not known") || a.Header.Get("Retry-After") != "" || strings.Contains(a.body, "shop_payment") {
		t.Errorf("Retry-After %q, %s", a.Header.Get("Retry-After"), a.body)
	}
	s.wantDuplicate(s.post("/api/payments", paying("o-1", "card")))
}

func TestPaymentRefused(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"no order":       {`{"paymentChannel":"card","amount":5}`, 400, "orderNo"},
		"no channel":     {`{"orderNo":"o-1","amount":5}`, 400, "paymentChannel"},
		"channel is {}":  {`{"orderNo":"o-1","paymentChannel":{},"amount":5}`, 400, "key_invalid"},
		"channel is 7":   {`{"orderNo":"o-2","paymentChannel":7,"amount":5}`, 422, "must be a string"},
		"no amount":      {`{"orderNo":"o-3","paymentChannel":"card"}`, 422, `"amount","detail":"is required"`},
		"unknown member": {`{"orderNo":"o-4","paymentChannel":"card","amount":5,"why":""}`, 400, "is not known"},
		"not JSON":       {`orderNo=o-5`, 400, "key_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			a := s.post("/api/payments", c.body)
			s.want(a, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("%s, want %s", a.body, c.says)
			}
			if c.status == http.StatusUnprocessableEntity { // a corrected one may follow at once
				s.want(s.post("/api/payments", c.body), c.status)
			}
		})
	}
}

// Without its database the shop pays nothing.
func TestMoneyWithoutADatabase(t *testing.T) {
	t.Parallel()
	p, db := onFile(t)
	s := open(t, p)
	must(t, db.Close())
	s.want(s.post("/api/payments", paying("o-1", "card")), http.StatusServiceUnavailable)
	a := s.post("/api/stock", `{"sku":"cup","delta":1}`) // no number can be drawn
	s.want(a, http.StatusServiceUnavailable)
	if got := member[string](s, a, "code"); got != "store_unavailable" {
		t.Errorf("code %q", got)
	}
}
