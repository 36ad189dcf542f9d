package shop_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

func changing(sku string, delta int) string {
	return fmt.Sprintf(`{"sku":%q,"delta":%d}`, sku, delta)
}

// stock reads what there is.
func (s *site) stock(sku string) int {
	s.Helper()
	a := s.post("/api/stock", changing(sku, 0))
	s.want(a, http.StatusOK)
	return int(member[float64](s, a, "stock"))
}

func TestStock(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		sku, fence := item(), 0.0
		for _, c := range []struct{ delta, stock int }{{0, 0}, {5, 5}, {-2, 3}, {0, 3}, {-4, -1}, {1, 0}} {
			a := s.post("/api/stock", changing(sku, c.delta))
			s.want(a, http.StatusOK)
			now := member[float64](s, a, "fence")
			if want := fmt.Sprintf(`{"sku":%q,"stock":%d,"fence":%d}`, sku, c.stock, int(now)); strings.TrimSpace(a.body) != want {
				s.Errorf("answer %s, want %s", a.body, want)
			}
			if now <= fence {
				s.Errorf("fence %v after %v", now, fence)
			}
			fence = now
			s.parts.forget() // the number is the ledger's
		}
		if got := s.stock(item()); got != 0 {
			s.Errorf("another thing has a stock of %d", got)
		}
	})
}

func TestStockChangedTogether(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		sku := item()
		for _, a := range s.together(20, func() *http.Request { return s.request(http.MethodPost, "/api/stock?delay=2ms", changing(sku, 3)) }) {
			s.want(a, http.StatusOK)
		}
		if got := s.stock(sku); got != 60 {
			s.Errorf("stock %d, want 60", got)
		}
	})
}

// late changes a stock by ten for as long as the delay says, and returns once that has begun.
func (s *site) late(sku, delay string) <-chan answer {
	s.Helper()
	late := make(chan answer, 1)
	r := s.request(http.MethodPost, "/api/stock?delay="+delay, changing(sku, 10))
	before := s.fence(sku)
	go func() {
		a, _ := s.try(r)
		late <- a
	}()
	testkit.Eventually(s.T, 10*time.Second, "the first one has shown its number", func() bool { return s.fence(sku) > before })
	return late
}

// The store forgets the lock while its holder works: another one takes it, and the first one's write is refused.
func TestStockIsFenced(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		sku := item()
		s.want(s.post("/api/stock", changing(sku, 1)), http.StatusOK)
		late := s.late(sku, "300ms")
		s.parts.forget()
		s.want(s.post("/api/stock", changing(sku, 100)), http.StatusOK)
		a := <-late
		s.want(a, http.StatusConflict)
		if got := member[string](s, a, "code"); got != "claim_lost" {
			s.Errorf("code %q", got)
		}
		if got := s.stock(sku); got != 101 {
			s.Errorf("stock %d, want 101", got)
		}
	})
}

// A lock that is lost ends the work's context: the answer does not wait for the work's time.
func TestStockLosesItsLock(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		sku := item()
		s.want(s.post("/api/stock", changing(sku, 1)), http.StatusOK)
		late := s.late(sku, "20s")
		s.parts.forget()
		a := <-late
		s.want(a, http.StatusConflict)
		if got := s.stock(sku); got != 1 {
			s.Errorf("stock %d, want 1", got)
		}
	})
}

func TestStockFaults(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for fail, status := range map[string]int{"500": 500, "422": 422, "panic": 500} {
		for range 2 { // each call that asks for it fails, and gives the lock free
			s.want(s.post("/api/stock?fail="+fail, changing("cup", 1)), status)
		}
	}
	s.exitIn("/api/stock?fail=exit", changing("cup", 1))
	s.want(s.post("/api/stock", changing("cup", 1)), http.StatusOK)
	if got := s.stock("cup"); got != 1 {
		t.Errorf("stock %d, want 1", got)
	}
}

func TestStockRefused(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"no sku":         {`{"delta":1}`, 400, "key_missing"},
		"sku is []":      {`{"sku":[],"delta":1}`, 400, "key_invalid"},
		"sku is 7":       {`{"sku":7,"delta":1}`, 422, "must be a string"},
		"no delta":       {`{"sku":"cup"}`, 422, `"delta","detail":"is required"`},
		"half a cup":     {`{"sku":"cup","delta":0.5}`, 422, "whole number"},
		"too much":       {`{"sku":"cup","delta":1000000001}`, 422, "whole number"},
		"unknown member": {`{"sku":"cup","delta":1,"fence":9}`, 400, "is not known"},
		"not JSON":       {`sku=cup`, 400, "key_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := s.in(t).post("/api/stock", c.body)
			s.want(a, c.status)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("%s, want %s", a.body, c.says)
			}
		})
	}
}
