package idem

import (
	"context"
	"errors"
	"time"
)

// admit asks until the answer is not Busy, or the waiting time is over. Joining the flight before
// asking makes sure that no finish in between goes unnoticed.
func (v *visit) admit(ctx context.Context) (Answer, error) {
	deadline := time.Now().Add(v.call.Wait)
	for {
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		watch := v.flights.join(v.call.Key)
		answer, probe, err := v.ask(ctx)
		if err != nil || answer.Outcome != Busy || !time.Now().Before(deadline) {
			watch.leave()
			return answer, err
		}
		err = watch.wait(ctx, deadline, probe)
		watch.leave()
		if err != nil {
			return answer, err
		}
	}
}

// ask goes once through the stores. With Busy comes the probe that tells when asking again is worth it.
func (v *visit) ask(ctx context.Context) (Answer, probe, error) {
	if v.lookOnly {
		return v.look(ctx)
	}
	if v.guardsEntrance() && v.entrance == nil {
		answer, probe, settled, err := v.askEntrance(ctx)
		if settled || err != nil {
			return answer, probe, err
		}
	}
	return v.askLedger(ctx)
}

// guardsEntrance: with a token, and for every key where there is no ledger.
func (v *visit) guardsEntrance() bool {
	return v.store != nil && (v.call.TokenID != "" || v.ledger == nil)
}

// entranceRequest asks for the entrance's record: that of the token, or of the key itself.
func (v *visit) entranceRequest() Request {
	q := v.call.Request
	if v.call.TokenID != "" {
		q.Key, q.Retention = v.call.Entrance, max(v.call.EntranceFor, q.Lease)
	}
	return q
}

// askEntrance asks the entrance store. It is settled where the entrance may answer by itself: always without a ledger, and with one
// for a kept success and for a running call that the ledger does not contradict.
func (v *visit) askEntrance(ctx context.Context) (Answer, probe, bool, error) {
	v.asked = time.Now()
	q := v.entranceRequest()
	answer, err := v.spend(ctx, q)
	if v.ledger == nil {
		return answer, v.probe(v.store, q), true, unavailable(ctx, err)
	}
	switch {
	case errors.Is(err, ErrFormat), errors.Is(err, ErrInvalid):
		return answer, nil, true, err
	case err != nil: // it is away, and the ledger decides alone
		v.observe(ctx, Event{Kind: EntranceFailed, Type: v.call.Key.Type, Err: err})
		answer = Answer{}
	}
	return v.heed(ctx, answer)
}

// heed is what an entrance in front of a ledger may settle.
func (v *visit) heed(ctx context.Context, answer Answer) (Answer, probe, bool, error) {
	switch answer.Outcome {
	case Won:
		v.entrance = &answer.Claim
		return answer, nil, false, nil
	case Done:
		v.known = true
		return answer, nil, answer.Record.Result.Kept, nil
	case Mismatch:
		return answer, nil, answer.Record.State == Succeeded, nil
	case Busy:
		return v.secondOpinion(ctx, answer)
	case Foreign, Withdrawn, Unknown:
	}
	return answer, nil, false, nil
}

// entranceLimit is how long an entrance beside a ledger is waited for: one that hangs is away.
const entranceLimit = 3 * time.Second

func (v *visit) entrancePatience() time.Duration {
	if v.ledger != nil {
		return entranceLimit
	}
	return finishLimit
}

func (v *visit) spend(ctx context.Context, q Request) (Answer, error) {
	ctx, cancel := whole(ctx, v.entrancePatience())
	defer cancel()
	if v.call.TokenID == "" {
		return v.store.Claim(ctx, q)
	}
	return v.store.Spend(ctx, v.call.TokenID, q)
}

// secondOpinion reads the ledger where the entrance says that the first still runs: it may have
// answered and died before it told the entrance, or have died with its lease run out there.
func (v *visit) secondOpinion(ctx context.Context, entrance Answer) (Answer, probe, bool, error) {
	record, err := lookup(ctx, v.ledger, v.call.Request, finishLimit)
	if errors.Is(err, ErrNotFound) {
		return entrance, v.firstSign(), true, nil
	}
	if err != nil {
		return Answer{}, nil, true, unavailable(ctx, err)
	}
	answer := v.judge(record)
	switch answer.Outcome {
	case Busy:
		return answer, v.probe(v.ledger, v.call.Request), true, nil
	case Done:
		v.repair(ctx, answer.Record.Attempt, answer.Record.Result)
		return answer, nil, true, nil
	case Won, Mismatch, Foreign, Withdrawn, Unknown:
	}
	return answer, nil, false, nil
}

// firstSign is the probe while only the entrance knows of the first: the record may yet come up in the ledger, claimed by another process, and
// then whoever holds the entrance here waits for that one, too. This process polls once for all of them.
func (v *visit) firstSign() probe {
	entrance := v.probe(v.store, v.entranceRequest())
	return func(ctx context.Context) bool {
		if entrance(ctx) {
			return true
		}
		_, err := lookup(ctx, v.ledger, v.call.Request, finishLimit)
		return err == nil
	}
}

func (v *visit) askLedger(ctx context.Context) (Answer, probe, error) {
	bounded, cancel := whole(ctx, finishLimit)
	defer cancel()
	v.asked = time.Now()
	var answer Answer
	var err error
	if v.call.SameTx {
		answer, err = v.claimTx(bounded)
	} else {
		answer, err = v.claim(bounded)
	}
	if err != nil {
		return Answer{}, nil, unavailable(ctx, err)
	}
	if answer.Outcome == Done && v.guardsEntrance() && !v.known {
		v.repair(ctx, answer.Record.Attempt, answer.Record.Result)
	}
	return answer, v.probe(v.ledger, v.call.Request), nil
}

// whole lets a claim that was asked for be answered although the caller leaves: interrupted, it might stand and nobody would know.
func whole(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// claim asks once more where the answer did not arrive: the store recognises the owner of a claim that stands already.
func (v *visit) claim(ctx context.Context) (Answer, error) {
	answer, err := v.ledger.Claim(ctx, v.call.Request)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrInvalid) || errors.Is(err, ErrFormat) {
		return answer, err
	}
	return v.ledger.Claim(ctx, v.call.Request)
}

// claimTx bounds the claim itself by the waiting time - a back end with one writer waits inside -
// but not the transaction, which is the work's.
func (v *visit) claimTx(ctx context.Context) (Answer, error) {
	bounded, cancel := context.WithTimeout(ctx, max(v.call.Wait, minClaimWait))
	defer cancel()
	answer, txctx, tx, err := v.ledger.ClaimTx(bounded, v.call.Request, v.call.Limit)
	if err == nil && answer.Outcome == Won {
		v.txctx, v.tx = txctx, tx
	}
	return answer, err
}

// minClaimWait lets a same-transaction call that must not wait still reach its database.
const minClaimWait = 2 * time.Second

// look answers from what stands, claiming nothing. Won then means: there is nothing to replay.
func (v *visit) look(ctx context.Context) (Answer, probe, error) {
	if v.guardsEntrance() {
		q := v.entranceRequest()
		record, err := lookup(ctx, v.store, q, v.entrancePatience())
		answer := v.judgeAs(q, record, err)
		switch {
		case v.ledger == nil && err != nil && !errors.Is(err, ErrNotFound):
			return Answer{}, nil, unavailable(ctx, err)
		case v.ledger == nil && answer.Outcome == Won:
			return Answer{}, nil, v.nothingStands()
		case v.ledger == nil, answer.Outcome == Done && answer.Record.Result.Kept:
			return answer, v.probe(v.store, q), nil
		}
	}
	record, err := lookup(ctx, v.ledger, v.call.Request, finishLimit)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Answer{}, nil, unavailable(ctx, err)
	}
	answer := v.judgeAs(v.call.Request, record, err)
	if answer.Outcome == Won {
		return Answer{}, nil, v.nothingStands()
	}
	return answer, v.probe(v.ledger, v.call.Request), nil
}

// lookup bounds the question: a store that hangs, such as a frozen database, is away.
func lookup(ctx context.Context, store Store, q Request, limit time.Duration) (Record, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return store.Lookup(bounded, q)
}

// nothingStands: an expired token has nothing to show; a lost claim had no winner with a result.
func (v *visit) nothingStands() error {
	if v.call.LookOnly {
		return ErrTokenExpired
	}
	return ErrClaimLost
}

func (v *visit) judge(r Record) Answer { return v.judgeAs(v.call.Request, r, nil) }

// judgeAs applies Judge to a record that was looked up under q.
func (v *visit) judgeAs(q Request, r Record, err error) Answer {
	var byKey, byRequestID *Record
	switch {
	case err != nil:
	case r.Key == q.Key:
		byKey = &r
	default:
		byRequestID = &r
	}
	answer := Answer{Outcome: Judge(q, byKey, byRequestID), Record: r}
	if answer.Outcome == Foreign {
		answer.Record = Record{}
	}
	return answer
}
