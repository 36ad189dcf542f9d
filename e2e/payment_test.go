package e2e_test

import (
	"net/http"
	"testing"
)

const paid = `SELECT count(*) FROM shop_payment WHERE order_no = $1`

func (v *visitor) paying(no, query string) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, "/api/payments"+query, `{"orderNo":"`+no+`","paymentChannel":"card","amount":5}`, "Content-Type", "application/json")
}

// wantDuplicate: the time left is in the body alone.
func (v *visitor) wantDuplicate(a answer) {
	v.Helper()
	v.wantRefused(a, http.StatusTooManyRequests, "duplicate_in_window")
	if left := member[float64](v, a, "retryAfter"); left < 1 || left > 10 || a.Header.Get("Retry-After") != "" {
		v.Errorf("retryAfter %v, header %q", left, a.Header.Get("Retry-After"))
	}
}

// TestPaymentsInAWindow: one of twenty at once goes through, at whichever process it arrives.
func TestPaymentsInAWindow(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		both := []*visitor{v, v.at(start(t, b))}
		first := 0
		for _, a := range v.together(20, func(i int) *http.Request { return both[i%2].paying("o-1", "?delay=100ms") }) {
			if a.StatusCode == http.StatusCreated {
				first++
				continue
			}
			v.wantDuplicate(a)
		}
		if first != 1 {
			t.Errorf("%d went through", first)
		}
		v.want(v.do(v.paying("o-2", "")), http.StatusCreated)
		b.wantCount(t, 1, paid, "o-1")
	})
}

// TestFailedPaymentReopens the window at once: the correction may follow, at the other process too.
func TestFailedPaymentReopens(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		other := v
		if b.redis != nil {
			other = v.at(start(t, b))
		}
		for fail, status := range map[string]int{"500": 500, "panic": 500, "422": 422} {
			no := "o-" + fail
			v.want(v.do(v.paying(no, "?fail="+fail)), status)
			other.want(other.do(other.paying(no, "")), http.StatusCreated)
			v.wantDuplicate(v.do(v.paying(no, "")))
			b.wantCount(t, 1, paid, no)
		}
	})
}
