package idem

import (
	"context"
	"errors"
)

// largestEntranceBody is the largest body that an entrance record repeats beside a ledger's; larger ones are replayed from the ledger.
const largestEntranceBody = 16 << 10

// maxPending is how much may run behind the answers at once: an entrance that hangs must not fill the memory.
const maxPending = 1000

var errPending = errors.New("idem: too much waits for the entrance already")

// repair tells the entrance what the ledger knows, behind the answer: it forgot, or nobody lived to tell it. Drain waits for it. Where too much is under way it is left
// to the next duplicate.
func (v *visit) repair(ctx context.Context, attempt int, result Result) {
	select {
	case v.pending <- struct{}{}:
	default:
		v.observe(ctx, Event{Kind: EntranceFailed, Type: v.call.Key.Type, Err: errPending})
		v.flights.wake(v.call.Key)
		return
	}
	detached := context.WithoutCancel(ctx)
	v.background.Go(func() {
		defer func() { <-v.pending }()
		bounded, cancel := context.WithTimeout(detached, finishLimit)
		defer cancel()
		v.restore(bounded, attempt, result)
		v.flights.wake(v.call.Key)
	})
}

// restore writes the ledger's success into the entrance, whoever holds the record there.
func (v *visit) restore(ctx context.Context, attempt int, result Result) {
	if !v.guardsEntrance() || v.ledger == nil {
		return
	}
	if len(result.Body) > largestEntranceBody {
		result.Header, result.Body, result.Kept = nil, nil, false
	}
	err := v.store.Restore(ctx, Claim{Request: v.entranceRequest(), Attempt: attempt}, result)
	if err != nil {
		v.observe(ctx, Event{Kind: EntranceFailed, Type: v.call.Key.Type, Err: err})
	}
}

// releaseEntrance gives the entrance free after a refusal; a replay leaves that to the repair.
func (v *visit) releaseEntrance(ctx context.Context, answer Answer, err error) {
	if err == nil && answer.Outcome == Done {
		return
	}
	v.freeEntrance(context.WithoutCancel(ctx))
}

// freeEntrance ends the claim in the entrance, if this call holds one beside a ledger.
func (v *visit) freeEntrance(ctx context.Context) {
	if v.entrance == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, entranceLimit)
	defer cancel()
	err := v.store.Release(bounded, *v.entrance, Failed, "")
	if err != nil && !errors.Is(err, ErrClaimLost) {
		v.observe(ctx, Event{Kind: EntranceFailed, Type: v.call.Key.Type, Err: err})
	}
	v.entrance = nil
}
