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
