package e2e_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

func (v *visitor) changing(sku, query string, delta int) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, "/api/stock"+query, fmt.Sprintf(`{"sku":%q,"delta":%d}`, sku, delta), "Content-Type", "application/json")
}

// change must be answered.
func (v *visitor) change(sku string, delta int) (stock, fence int) {
	v.Helper()
	a := v.do(v.changing(sku, "", delta))
	v.want(a, http.StatusOK)
	return int(member[float64](v, a, "stock")), int(member[float64](v, a, "fence"))
}

func (v *visitor) wantStock(sku string, want int) {
	v.Helper()
	if got, _ := v.change(sku, 0); got != want {
		v.Errorf("stock %d, want %d", got, want)
	}
}

// wantChanges: the answer is a change, or a refusal that says that there was none. It returns how many of one piece each there were.
func (v *visitor) wantChanges(answers []answer) (changed int) {
	v.Helper()
	fences := map[float64]bool{}
	for _, a := range answers {
		if a.StatusCode == http.StatusConflict {
			if code := member[string](v, a, "code"); code != "claim_lost" && code != "in_progress" {
				v.Errorf("refused with %s", code)
			}
			continue
		}
		v.want(a, http.StatusOK)
		if fence := member[float64](v, a, "fence"); fences[fence] {
			v.Errorf("two holders have the number %v", fence)
		} else {
			fences[fence] = true
		}
		changed++
	}
	return changed
}

// TestStockIsExact: 200 changes at once over two processes, none of which is lost. Where the processes share no Redis, the fence alone keeps them apart:
// some are refused then.
func TestStockIsExact(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b, "IDEM_WAIT=60s"))
		both := []*visitor{v, v.at(start(t, b, "IDEM_WAIT=60s"))}
		changed := v.wantChanges(v.together(200, func(i int) *http.Request { return both[i%2].changing("cup", "", 1) }))
		v.wantStock("cup", changed)
		if b.redis != nil && changed != 200 {
			t.Errorf("%d of 200 were answered", changed)
		}
	})
}

// TestStockIsExactThoughRedisForgets: flushed in the middle, again and again. Two hold the lock then, and one of them is told that it lost.
func TestStockIsExactThoughRedisForgets(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		both := []*visitor{v, v.at(start(t, b))}
		done, flushed := make(chan struct{}), make(chan int)
		go func() {
			times := 0
			defer func() { flushed <- times }()
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					b.redis.FlushAll(t)
					times++
				}
			}
		}()
		answers := v.together(200, func(i int) *http.Request { return both[i%2].changing("cup", "?delay=2ms", 1) })
		close(done)
		if times := <-flushed; times == 0 {
			t.Error("it was over before Redis was flushed")
		}
		changed := v.wantChanges(answers)
		v.wantStock("cup", changed)
		if changed == 0 {
			t.Error("nobody got through")
		}
	})
}

// TestFrozenHolder stands still for longer than its lease. Another process has the lock then, and what the first one writes when it thaws is refused.
func TestFrozenHolder(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		frozen := start(t, b, "IDEM_LEASE=1s")
		v := visit(t, frozen)
		other := v.at(start(t, b, "IDEM_LEASE=1s"))
		_, before := v.change("cup", 1)
		running := v.begin(v.changing("cup", "?delay=1500ms", 10))
		db := b.open(t)
		defer db.Close()
		testkit.Eventually(t, 20*time.Second, "it holds the lock", func() bool {
			return b.count(t, db, `SELECT fence FROM shop_stock WHERE sku = 'cup'`) > before
		})
		must(t, frozen.process.Signal(syscall.SIGSTOP))
		stock, fence := other.change("cup", 100)
		must(t, frozen.process.Signal(syscall.SIGCONT))
		if stock != 101 || fence <= before {
			t.Errorf("stock %d under %d, after %d", stock, fence, before)
		}
		v.wantRefused(v.wait(running), http.StatusConflict, "claim_lost")
		other.wantStock("cup", 101)
	})
}

// TestHolderKilled: its lock falls with its lease.
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		doomed := start(t, b, "IDEM_LEASE=1s")
		v := visit(t, doomed)
		other := v.at(start(t, b, "IDEM_LEASE=1s"))
		if a, err := v.try(v.changing("cup", "?fail=exit", 10)); err == nil {
			t.Fatalf("the process was to end, and answered %d %s", a.StatusCode, a.body)
		}
		doomed.gone(t)
		if stock, _ := other.change("cup", 1); stock != 1 {
			t.Errorf("stock %d", stock)
		}
	})
}

// TestLocksWithoutRedis: what needs it is refused, and nothing has run.
func TestLocksWithoutRedis(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		v.change("cup", 1)
		b.redis.Kill()
		v.becomes(http.StatusOK, "degraded")
		for _, r := range []*http.Request{v.changing("cup", "", 1), v.paying("o-1", "")} {
			v.wantRefused(v.do(r), http.StatusServiceUnavailable, "store_unavailable")
		}
		b.redis.Restart(t)
		v.becomes(http.StatusOK, "ok")
		v.wantStock("cup", 1)
		v.want(v.do(v.paying("o-1", "")), http.StatusCreated)
		b.wantCount(t, 1, paid, "o-1")
	})
}
