package idem_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

func TestEntranceAway(t *testing.T) {
	t.Parallel()
	t.Run("with a ledger it goes on", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, both), succeed("receipt")
		call := r.order(t, "request-1")
		r.entrance.away.Store(true)
		first, again := r.must(t, call, work.work), r.must(t, call, work.work)
		if first.Replayed || !again.Replayed || work.runs.Load() != 1 {
			t.Fatalf("first %+v, again %+v", first, again)
		}
	})
	t.Run("away while working", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, both), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		r.entrance.away.Store(true)
		close(work.release)
		if a := await(t, first, "the first answer"); a.err != nil || a.reply.Replayed {
			t.Fatalf("first: %+v", a)
		}
		if reply := r.must(t, call, work.work); !reply.Replayed {
			t.Fatalf("retry: %+v", reply)
		}
	})
	t.Run("without a ledger it refuses", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, entranceOnly), succeed("receipt")
		call := r.order(t, "request-1")
		r.entrance.away.Store(true)
		if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, idem.ErrUnavailable) || work.runs.Load() != 0 {
			t.Fatalf("%v, runs %d", err, work.runs.Load())
		}
	})
}

func TestEntranceForgets(t *testing.T) {
	t.Parallel()
	t.Run("between issue and submit, with a ledger", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, both), succeed("receipt")
		call := r.order(t, "request-1")
		r.entrance.Forget()
		if reply := r.must(t, call, work.work); reply.Replayed || work.runs.Load() != 1 {
			t.Fatalf("%+v", reply)
		}
	})
	t.Run("between submit and retry, and is repaired", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, both), succeed("receipt")
		call := r.order(t, "request-1")
		r.must(t, call, work.work)
		drain(t, r.Engine)
		r.entrance.Forget()
		if reply := r.must(t, call, work.work); !reply.Replayed || work.runs.Load() != 1 {
			t.Fatalf("%+v", reply)
		}
		drain(t, r.Engine)
		before := r.ledger.lookups.Load()
		r.ledger.away.Store(true)
		if reply := r.must(t, call, work.work); !reply.Replayed || r.ledger.lookups.Load() != before {
			t.Fatalf("a repaired replay asked the ledger: %+v", reply)
		}
	})
	t.Run("while the first runs", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, both), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		r.entrance.Forget()
		second := r.goDo(t.Context(), call, work.work)
		close(work.release)
		await(t, first, "the first answer")
		if a := await(t, second, "the duplicate"); a.err != nil || !a.reply.Replayed {
			t.Fatalf("duplicate: %+v", a)
		}
	})
	t.Run("without a ledger the token is used", func(t *testing.T) {
		t.Parallel()
		r, work := newRig(t, entranceOnly), succeed("receipt")
		call := r.order(t, "request-1")
		r.entrance.Forget()
		if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, idem.ErrTokenUsed) {
			t.Fatalf("%v", err)
		}
	})
}

func TestLedgerAway(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, both), succeed("receipt")
	done, fresh := r.order(t, "request-1"), r.order(t, "request-2")
	r.must(t, done, work.work)
	drain(t, r.Engine)
	r.ledger.away.Store(true)
	if reply := r.must(t, done, work.work); !reply.Replayed {
		t.Fatalf("what the entrance holds: %+v", reply)
	}
	if _, err := r.Do(t.Context(), fresh, work.work); !errors.Is(err, idem.ErrUnavailable) || work.runs.Load() != 1 {
		t.Fatalf("what it does not: %v, runs %d", err, work.runs.Load())
	}
	r.ledger.away.Store(false)
	if reply := r.must(t, noWait(fresh), work.work); reply.Replayed {
		t.Fatalf("back again: %+v", reply)
	}
}

// The first answered, and died before it told the entrance: the duplicate must not wait for a lease to end.
func TestDiedBetweenLedgerAndEntrance(t *testing.T) {
	t.Parallel()
	r := newRig(t, both)
	call := noWait(r.order(t, "request-1"))
	first := call.Request
	first.Owner, first.Ledger = idem.NewOwner(), r.ledger.Name()
	if _, err := r.entrance.Spend(t.Context(), call.TokenID, first); err != nil {
		t.Fatal(err)
	}
	answer, err := r.ledger.Claim(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ledger.Complete(t.Context(), answer.Claim, succeed("receipt").ending.Result); err != nil {
		t.Fatal(err)
	}
	if reply := r.must(t, call, succeed("second").work); !reply.Replayed || string(reply.Result.Body) != "receipt" {
		t.Fatalf("%+v", reply)
	}
	drain(t, r.Engine)
	if r.entrance.restored.Load() != 1 {
		t.Fatalf("restored %d times", r.entrance.restored.Load())
	}
}

func TestOneRequestIDUnderTwoBusinessKeys(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*rig){"": func(*rig) {}, "entrance away": func(r *rig) { r.entrance.away.Store(true) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, work := newRig(t, both), succeed("receipt")
			one := noWait(r.order(t, "request-1"))
			prepare(r)
			one.Key = idem.K("order.create", "A-1")
			two := payload(one, "two apples")
			two.Key = idem.K("order.create", "A-2")
			r.must(t, one, end(idem.Failed).work)
			r.must(t, two, work.work) // the failed one gave the request id up
			if _, err := r.Do(t.Context(), one, work.work); !errors.Is(err, idem.ErrPayloadMismatch) {
				t.Fatalf("back to the first key: %v", err)
			}
			if reply := r.must(t, two, work.work); !reply.Replayed || work.runs.Load() != 1 {
				t.Fatalf("%+v, %d effects", reply, work.runs.Load())
			}
		})
	}
}

func TestLostClaimAnswersWithTheWinner(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, ledgerOnly), stubborn(succeed("late").ending)
	call := r.order(t, "request-1")
	call.TokenID, call.Lease = "", 100*time.Millisecond
	r.ledger.extending.Store(false)
	first := r.goDo(t.Context(), call, work.work)
	await(t, work.started, "the first")
	reply := r.must(t, call, succeed("winner").work)
	if reply.Attempt != 2 || reply.Replayed {
		t.Fatalf("winner: %+v", reply)
	}
	close(work.release)
	a := await(t, first, "the one that lost")
	if a.err != nil || !a.reply.Replayed || string(a.reply.Result.Body) != "winner" {
		t.Fatalf("loser: %+v", a)
	}
	if !errors.Is(work.cause, idem.ErrLeaseExpired) {
		t.Fatalf("its work was cancelled by %v", work.cause)
	}
}

func TestLostClaimWithoutWinnerIsSaid(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, ledgerOnly), stubborn(succeed("late").ending)
	call := r.order(t, "request-1")
	call.TokenID, call.Lease = "", 50*time.Millisecond
	r.ledger.extending.Store(false)
	first := r.goDo(t.Context(), call, work.work)
	await(t, work.started, "the first")
	r.must(t, call, end(idem.Failed).work)
	close(work.release)
	if a := await(t, first, "the one that lost"); !errors.Is(a.err, idem.ErrClaimLost) {
		t.Fatalf("loser: %+v", a)
	}
}

func TestOutcomeThatCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, both), succeed("receipt")
	call := noWait(r.order(t, "request-1"))
	failure := errors.New("link cut at the commit")
	r.ledger.commit.Store(&failure)
	reply, err := r.Do(t.Context(), call, work.work)
	if !errors.Is(err, idem.ErrOutcomeUnknown) || reply.Attempt != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	r.ledger.commit.Store(nil)
	if _, err := r.Do(t.Context(), payload(call, "other"), work.work); !errors.Is(err, idem.ErrPayloadMismatch) {
		t.Fatalf("the payload is not bound: %v", err)
	}
	if reply := r.must(t, call, work.work); reply.Attempt != 2 {
		t.Fatalf("the same again: %+v", reply)
	}
}
