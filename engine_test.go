package idem_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

func everyLayer(t *testing.T, test func(t *testing.T, have layers)) {
	t.Helper()
	for name, have := range map[string]layers{"entrance and ledger": both, "entrance only": entranceOnly, "ledger only": ledgerOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, have)
		})
	}
}

func TestDuplicateGetsTheFirstResult(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), succeed("receipt")
		call := r.order(t, "request-1")
		first := r.must(t, call, work.work)
		again := r.must(t, call, work.work)
		if work.runs.Load() != 1 || first.Replayed || !again.Replayed {
			t.Fatalf("runs %d, replayed %v then %v", work.runs.Load(), first.Replayed, again.Replayed)
		}
		if string(again.Result.Body) != "receipt" || again.Result.Status != 201 || first.Attempt != 1 {
			t.Fatalf("first %+v, again %+v", first, again)
		}
	})
}

func TestAHundredDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		var rest []<-chan answered
		for range 99 {
			rest = append(rest, r.goDo(t.Context(), call, func(context.Context) idem.Ending { panic("ran twice") }))
		}
		close(work.release)
		if a := await(t, first, "the first answer"); a.err != nil || a.reply.Replayed {
			t.Fatalf("first: %+v", a)
		}
		for _, answers := range rest {
			if a := await(t, answers, "a duplicate"); a.err != nil || !a.reply.Replayed || string(a.reply.Result.Body) != "receipt" {
				t.Fatalf("duplicate: %+v", a)
			}
		}
	})
}

func TestFailureLetsTheCorrectedPayloadFollowAtOnce(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, refused, work := newRig(t, have), end(idem.Failed), succeed("receipt")
		call := noWait(r.order(t, "request-1"))
		if reply := r.must(t, call, refused.work); reply.State != idem.Failed {
			t.Fatalf("first: %+v", reply)
		}
		reply := r.must(t, payload(call, "two apples"), work.work)
		if reply.Attempt != 2 || work.runs.Load() != 1 {
			t.Fatalf("corrected: %+v, runs %d", reply, work.runs.Load())
		}
	})
}

func TestOtherPayloadIsAMismatch(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), hold(succeed("receipt").ending)
		call := noWait(r.order(t, "request-1"))
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		if _, err := r.Do(t.Context(), payload(call, "other"), work.work); !errors.Is(err, idem.ErrPayloadMismatch) {
			t.Fatalf("while running: %v", err)
		}
		close(work.release)
		await(t, first, "the first answer")
		if _, err := r.Do(t.Context(), payload(call, "other"), work.work); !errors.Is(err, idem.ErrPayloadMismatch) {
			t.Fatalf("after success: %v", err)
		}
	})
}

func TestWaiterTakesOverAfterFailure(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, failing, work := newRig(t, have), hold(end(idem.Failed).ending), succeed("receipt")
		call := r.order(t, "request-1")
		first := r.goDo(t.Context(), call, failing.work)
		await(t, failing.started, "the first")
		left, leave := context.WithCancel(t.Context())
		gone := r.goDo(left, call, func(context.Context) idem.Ending { panic("its client left") })
		var waiting []<-chan answered
		for range 5 {
			waiting = append(waiting, r.goDo(t.Context(), call, work.work))
		}
		leave()
		if a := await(t, gone, "the one that left"); !errors.Is(a.err, context.Canceled) {
			t.Fatalf("left: %+v", a)
		}
		close(failing.release)
		await(t, first, "the first answer")
		executed := 0
		for _, answers := range waiting {
			a := await(t, answers, "a waiter")
			if a.err != nil || string(a.reply.Result.Body) != "receipt" {
				t.Fatalf("waiter: %+v", a)
			}
			if !a.reply.Replayed {
				executed++
			}
		}
		if executed != 1 || work.runs.Load() != 1 {
			t.Fatalf("%d executed, %d runs", executed, work.runs.Load())
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		for name, wait := range map[string]time.Duration{"not at all": 0, "a little": 20 * time.Millisecond} {
			call.Wait = wait
			reply, err := r.Do(t.Context(), call, work.work)
			if !errors.Is(err, idem.ErrInProgress) || reply.Record.LeaseLeft <= 0 {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
		}
		close(work.release)
		await(t, first, "the first answer")
	})
}

func TestCallerWhoLeavesCancelsNothing(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		ctx, leave := context.WithCancel(t.Context())
		first := r.goDo(ctx, call, work.work)
		await(t, work.started, "the first")
		leave()
		close(work.release)
		if a := await(t, first, "the first answer"); a.err != nil || work.cause != nil {
			t.Fatalf("first: %+v, cause %v", a, work.cause)
		}
		if reply := r.must(t, call, work.work); !reply.Replayed {
			t.Fatalf("retry: %+v", reply)
		}
	})
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), succeed("receipt")
		call := noWait(r.order(t, "request-1"))
		func() {
			defer func() {
				if v := recover(); v != "out of paper" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = r.Do(t.Context(), call, func(context.Context) idem.Ending { panic("out of paper") })
		}()
		if reply := r.must(t, call, work.work); reply.Attempt != 2 {
			t.Fatalf("after the panic: %+v", reply)
		}
	})
}

func TestWorkSeesItsClaimAndLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, both)
	call := r.order(t, "request-1")
	call.Limit = time.Millisecond
	var seen idem.Claim
	var cause error
	r.must(t, call, func(ctx context.Context) idem.Ending {
		seen = idem.FromContext(ctx)
		<-ctx.Done()
		cause = context.Cause(ctx)
		return end(idem.Failed).ending
	})
	if seen.Attempt != 1 || seen.OutboundKey() != call.Key.Digest() || !errors.Is(cause, context.DeadlineExceeded) {
		t.Fatalf("claim %+v, cause %v", seen, cause)
	}
	if none := idem.FromContext(t.Context()); none.Attempt != 0 {
		t.Fatalf("outside of work: %+v", none)
	}
}

func TestCrashedClaimIsTakenOver(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), succeed("receipt")
		call := r.order(t, "request-1")
		crashed := call.Request
		crashed.Owner, crashed.Lease = idem.NewOwner(), 30*time.Millisecond
		var store idem.Store = r.ledger
		if have == entranceOnly {
			store = r.entrance
		}
		if answer, err := store.Claim(t.Context(), crashed); err != nil || answer.Outcome != idem.Won {
			t.Fatalf("crashed claim: %v, %v", answer.Outcome, err)
		}
		reply := r.must(t, call, work.work)
		if reply.Attempt != 2 || reply.Replayed {
			t.Fatalf("takeover: %+v", reply)
		}
	})
}

func TestFlightsOfAllKeysEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, both)
	var done atomic.Int64
	for i := range 50 {
		call := r.order(t, fmt.Sprintf("request-%d", i))
		for range 3 {
			go func() {
				_, err := r.Do(context.WithoutCancel(t.Context()), call, succeed("receipt").work)
				if err == nil {
					done.Add(1)
				}
			}()
		}
	}
	testkit.Eventually(t, 10*time.Second, "150 answers", func() bool { return done.Load() == 150 })
	if left := idem.Flying(r.Engine); left != 0 {
		t.Fatalf("%d flights are left", left)
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	if _, err := idem.NewEngine(idem.EngineConfig{}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("no stores: %v", err)
	}
	resolve := func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil }
	cases := map[string]struct {
		have   layers
		change func(*idem.Call)
	}{
		"no lease":                         {both, func(c *idem.Call) { c.Lease = 0 }},
		"negative lease":                   {both, func(c *idem.Call) { c.Lease = -time.Second }},
		"no limit":                         {both, func(c *idem.Call) { c.Limit = 0 }},
		"no key":                           {both, func(c *idem.Call) { c.Key.ID = "" }},
		"retention below the lease":        {both, func(c *idem.Call) { c.Retention = time.Second }},
		"same transaction without ledger":  {entranceOnly, func(c *idem.Call) { c.SameTx = true }},
		"business key without ledger":      {entranceOnly, func(c *idem.Call) { c.Key = idem.K("order", "1") }},
		"same transaction with a resolver": {both, func(c *idem.Call) { c.SameTx, c.Resolve = true, resolve }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, work := newRig(t, c.have), succeed("receipt")
			call := r.order(t, "request-1")
			c.change(&call)
			if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, idem.ErrInvalid) || work.runs.Load() != 0 {
				t.Fatalf("%v, runs %d", err, work.runs.Load())
			}
		})
	}
}
