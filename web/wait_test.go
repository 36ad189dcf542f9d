package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem/web"
)

// inBubble runs the test on a clock of its own: waiting takes no time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// pass lets time pass on a bubble's clock.
func pass(d time.Duration) { <-time.After(d) }

// racers sends n equal requests at once and returns their answers when all have come.
func racers(n int, send func(i int) *httptest.ResponseRecorder) []*httptest.ResponseRecorder {
	answers := make([]*httptest.ResponseRecorder, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = send(i) })
	}
	all.Wait()
	return answers
}

func TestDuplicatesGetTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		for _, n := range []int{2, 100} {
			t.Run(fmt.Sprintf("%s/%d", stores, n), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T) {
					f := newFixture(t, only(stores))
					token := f.token("order.create").Token
					h := &work{then: func(w http.ResponseWriter, r *http.Request) {
						pass(3 * time.Second)
						w.Header().Set("Location", "/orders/1")
						w.WriteHeader(http.StatusCreated)
						fmt.Fprint(w, "made")
					}}
					guarded := f.guard.Token("order.create")(h)
					replays := 0
					for _, rec := range racers(n, func(int) *httptest.ResponseRecorder { return f.do(guarded, f.order(token)) }) {
						if rec.Code != 201 || rec.Body.String() != "made" || rec.Header().Get("Location") != "/orders/1" {
							t.Errorf("answered %d %q %v", rec.Code, rec.Body, rec.Header())
						}
						if rec.Header().Get(replayed) == "true" {
							replays++
						}
					}
					if replays != n-1 {
						t.Errorf("%d replays of %d answers", replays, n)
					}
					h.ran(t, 1)
				})
			})
		}
	}
}

func TestWaitEndsInProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []web.Option
		takes   time.Duration
	}{
		"default":    {takes: 10 * time.Second},
		"two":        {options: []web.Option{web.Wait(2 * time.Second)}, takes: 2 * time.Second},
		"not at all": {options: []web.Option{web.Wait(0)}},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T) {
					f := newFixture(t, only(stores))
					token := f.token("order.create").Token
					h := held()
					guarded := f.guard.Token("order.create", c.options...)(h)
					first := make(chan *httptest.ResponseRecorder)
					go func() { first <- f.do(guarded, f.order(token)) }()
					<-h.started
					begun := time.Now()
					p := refused(t, f.do(guarded, f.order(token)), 409, web.InProgress)
					if took := time.Since(begun); took != c.takes || p.RetryAfter < 1 {
						t.Errorf("took %v, retryAfter %d", took, p.RetryAfter)
					}
					close(h.release)
					executed(t, <-first, 201)
					h.ran(t, 1)
				})
			})
		}
	}
}

// Where the first fails, one waiter at a time takes over.
func TestWaitersTakeOverOneAtATime(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				var mu sync.Mutex
				running, most, runs := 0, 0, 0
				h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					running++
					most = max(most, running)
					runs++
					status := 500
					if runs == 3 {
						status = 201
					}
					mu.Unlock()
					pass(time.Second)
					mu.Lock()
					running--
					mu.Unlock()
					w.WriteHeader(status)
				})
				guarded := f.guard.Token("order.create")(h)
				failures, successes := 0, 0
				for _, rec := range racers(5, func(int) *httptest.ResponseRecorder { return f.do(guarded, f.order(token)) }) {
					switch rec.Code {
					case 500:
						failures++
					case 201:
						successes++
					}
				}
				if most != 1 || runs != 3 || failures != 2 || successes != 3 {
					t.Errorf("%d at once, %d runs, %d failures, %d successes", most, runs, failures, successes)
				}
			})
		})
	}
}

func TestLimitEndsTheWorksContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []web.Option
		takes   time.Duration
	}{
		"default":          {takes: 30 * time.Second},
		"two":              {options: []web.Option{web.Limit(2 * time.Second)}, takes: 2 * time.Second},
		"same transaction": {options: []web.Option{web.SameTx(), web.Limit(2 * time.Second)}, takes: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t)
				token := f.token("order.create").Token
				begun := time.Now()
				h := &work{then: func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
						t.Errorf("ended with %v", r.Context().Err())
					}
					w.WriteHeader(http.StatusGatewayTimeout)
				}}
				executed(t, f.do(f.guard.Token("order.create", c.options...)(h), f.order(token)), 504)
				if took := time.Since(begun); took != c.takes {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// The lease is renewed while work goes on: nobody takes over work that takes longer than it.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
					pass(20 * time.Second)
					w.WriteHeader(http.StatusCreated)
				}}
				guarded := f.guard.Token("order.create", web.Lease(time.Second), web.Wait(time.Minute))(h)
				for _, rec := range racers(3, func(int) *httptest.ResponseRecorder { return f.do(guarded, f.order(token)) }) {
					if rec.Code != 201 {
						t.Errorf("answered %d %s", rec.Code, rec.Body)
					}
				}
				h.ran(t, 1)
			})
		})
	}
}
