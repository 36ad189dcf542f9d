package idem_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
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

func TestLeaseIsRenewedWhileWorkGoesOn(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		synctest.Test(t, func(t *testing.T) {
			r, work := newRig(t, have), hold(succeed("receipt").ending)
			call := r.order(t, "request-1")
			call.Lease = 10 * time.Second
			first := r.goDo(t.Context(), call, work.work)
			await(t, work.started, "the first")
			call.Wait = 4 * call.Lease
			if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, idem.ErrInProgress) {
				t.Fatalf("taken over: %v", err)
			}
			close(work.release)
			if a := await(t, first, "the first answer"); a.err != nil || work.cause != nil {
				t.Fatalf("first: %+v, cause %v", a, work.cause)
			}
		})
	})
}

// patchy is a store of which one part is away: it cannot say anything of the claim with that id.
type patchy struct {
	*entrance
	away string
}

func (p patchy) Extend(ctx context.Context, claims []idem.Claim) ([]int, error) {
	at := slices.IndexFunc(claims, func(c idem.Claim) bool { return c.Key.ID == p.away })
	if at < 0 {
		return p.entrance.Extend(ctx, claims)
	}
	lost, err := p.entrance.Extend(ctx, slices.Delete(slices.Clone(claims), at, at+1))
	if len(lost) > 0 || err != nil {
		return nil, errAway
	}
	return nil, &idem.PartError{Unasked: []int{at}, Err: errAway}
}

// A node of a cluster that is away costs its own claims and nobody else's, although all are renewed together.
func TestPartOfTheStoreAway(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		r := newRig(t, entranceOnly)
		engine, err := idem.NewEngine(idem.EngineConfig{Store: patchy{r.entrance, "request-2"}})
		if err != nil {
			t.Fatal(err)
		}
		r.Engine = engine
		works := map[string]*held{"request-1": hold(succeed("1").ending), "request-2": stubborn(succeed("2").ending), "request-3": hold(succeed("3").ending)}
		answers := map[string]<-chan answered{}
		for id, work := range works {
			call := r.order(t, id)
			call.Lease = 10 * time.Second
			answers[id] = r.goDo(t.Context(), call, work.work)
			await(t, work.started, id)
		}
		pass(4 * 10 * time.Second)
		for id, work := range works {
			close(work.release)
			await(t, answers[id], id)
			want := error(nil)
			if id == "request-2" {
				want = idem.ErrLeaseExpired
			}
			if !errors.Is(work.cause, want) {
				t.Errorf("%s: cause %v, want %v", id, work.cause, want)
			}
		}
	})
}

// A claim that was long in coming is renewed before the work begins, instead of being given up for its own deadline.
func TestClaimThatWasLongInComing(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		r, work := newRig(t, ledgerOnly), hold(succeed("receipt").ending)
		r.ledger.slow = 300 * time.Millisecond
		call := r.order(t, "request-1")
		call.TokenID, call.Lease = "", 200*time.Millisecond
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the work")
		pass(2 * call.Lease)
		close(work.release)
		if a := await(t, first, "the answer"); a.err != nil || a.reply.Attempt != 1 || work.cause != nil {
			t.Fatalf("%+v, cause %v", a, work.cause)
		}
	})
}

func TestOutageShorterThanTheLeaseIsSurvived(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		r, work := newRig(t, ledgerOnly), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		call.TokenID, call.Lease = "", 600*time.Millisecond
		r.ledger.extending.Store(false)
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		pass(call.Lease / 2)
		r.ledger.extending.Store(true)
		call.Wait = 2 * call.Lease
		if _, err := r.Do(t.Context(), call, work.work); !errors.Is(err, idem.ErrInProgress) {
			t.Fatalf("taken over: %v", err)
		}
		close(work.release)
		if a := await(t, first, "the first answer"); a.err != nil {
			t.Fatalf("first: %+v", a)
		}
	})
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
