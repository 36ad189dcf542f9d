package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idemkit/idem"
)

func txChecks() []check {
	return []check{
		{"open/complete commits the record", openComplete},
		{"open/rollback leaves the claim as it is", openRollback},
		{"open/complete is fenced", openFenced},
		{"open/a cancelled complete records nothing", openCancelled},
		{"claimtx/won and completed", claimTxComplete},
		{"claimtx/won and rolled back leaves nothing", claimTxRollback},
		{"claimtx/rolled back leaves what was there", claimTxRollbackOver},
		{"claimtx/a duplicate is busy while it is open", claimTxBusy},
		{"claimtx/nobody sees it while it is open", claimTxUnseen},
		{"claimtx/every other outcome has no transaction", claimTxRefused},
		{"claimtx/a cancelled complete records nothing", claimTxCancelled},
		{"claimtx/an invalid request writes nothing", func(f fixture) { f.refusesInvalid(f.claimTxAnswer) }},
		{"claimtx/race: one completes", claimTxRace},
	}
}

func (f fixture) claimTxAnswer(ctx context.Context, q idem.Request) (idem.Answer, error) {
	answer, workCtx, tx, err := f.ledger().ClaimTx(ctx, q, time.Minute)
	if tx != nil || workCtx != nil {
		f.Errorf("outcome %v, %v came with a transaction", answer.Outcome, err)
	}
	return answer, err
}

// begun is a claim in a transaction of its own.
func (f fixture) begun(q idem.Request, attempt int) (context.Context, idem.Tx) {
	f.Helper()
	answer, ctx, tx, err := f.ledger().ClaimTx(f.Context(), q, time.Minute)
	if err != nil || answer.Outcome != idem.Won || ctx == nil || tx == nil {
		f.Fatalf("ClaimTx: %v, %v, context %v, transaction %v", answer.Outcome, err, ctx, tx)
	}
	if answer.Claim.Attempt != attempt || answer.Claim.Owner != q.Owner || answer.Claim.Key != q.Key {
		f.Fatalf("claim %+v, want attempt %d of request %+v", answer.Claim, attempt, q)
	}
	return ctx, tx
}

func (f fixture) commit(ctx context.Context, tx idem.Tx) {
	f.Helper()
	if err := tx.Complete(ctx, result()); err != nil {
		f.Fatalf("Tx.Complete: %v", err)
	}
}

func (f fixture) rollback(ctx context.Context, tx idem.Tx) {
	f.Helper()
	if err := tx.Rollback(ctx); err != nil {
		f.Fatalf("Tx.Rollback: %v", err)
	}
}

func openComplete(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	ctx, tx := f.ledger().Open(f.Context(), claim, time.Minute)
	f.stands(q, idem.Processing, 1)
	f.commit(ctx, tx)
	f.stands(q, idem.Succeeded, 1)
	f.replays(again(q), result())
	f.complete(claim, result())
}

func openRollback(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.rollback(f.ledger().Open(f.Context(), claim, time.Minute))
	if record := f.stands(q, idem.Processing, 1); record.Owner != q.Owner || !record.Live() {
		f.Errorf("record %+v", record)
	}
	f.release(claim, idem.Failed)
}

func openFenced(f fixture) {
	q := request("1")
	ctx, tx := f.ledger().Open(f.Context(), f.lapsed(q), time.Minute)
	second := f.won(again(q), 2)
	if err := tx.Complete(ctx, idem.Result{Status: 500}); !errors.Is(err, idem.ErrClaimLost) {
		f.Fatalf("Tx.Complete: %v, want ErrClaimLost", err)
	}
	f.stands(q, idem.Processing, 2)
	f.complete(second, result())
	f.replays(again(q), result())
	for _, as := range []idem.State{idem.Failed, idem.Processing, idem.Cancelled} {
		q := request("released as " + string(as))
		claim := f.won(q, 1)
		ctx, tx := f.ledger().Open(f.Context(), claim, time.Minute)
		f.release(claim, as)
		if err := tx.Complete(ctx, result()); !errors.Is(err, idem.ErrClaimLost) {
			f.Fatalf("released as %s, Tx.Complete: %v, want ErrClaimLost", as, err)
		}
		f.stands(q, as, 1)
	}
}

func openCancelled(f fixture) {
	q := request("1")
	ctx, tx := f.ledger().Open(f.Context(), f.won(q, 1), time.Minute)
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	err := tx.Complete(ctx, result())
	if err == nil || errors.Is(err, idem.ErrClaimLost) {
		f.Fatalf("Tx.Complete with a cancelled context: %v", err)
	}
	f.stands(q, idem.Processing, 1)
}

func claimTxComplete(f fixture) {
	q := request("1")
	f.commit(f.begun(q, 1))
	record := f.stands(q, idem.Succeeded, 1)
	if record.Key != q.Key || record.Subject != q.Subject || record.RequestID != q.RequestID {
		f.Errorf("record %+v of request %+v", record, q)
	}
	f.replays(again(q), result())
	f.outcome(idem.Mismatch, corrected(q))
	f.outcome(idem.Mismatch, moved(q, "2"))
	failed := request("failed")
	f.release(f.won(failed, 1), idem.Failed)
	f.commit(f.begun(corrected(failed), 2))
	f.stands(failed, idem.Succeeded, 2)
}

func claimTxRollback(f fixture) {
	q := request("1")
	for range 2 {
		f.rollback(f.begun(again(q), 1))
		f.absent(q)
	}
	f.won(moved(q, "2"), 1)
}

func claimTxRollbackOver(f fixture) {
	failed, lapsed := request("failed"), request("lapsed")
	f.release(f.won(failed, 1), idem.Failed)
	f.rollback(f.begun(corrected(failed), 2))
	if record := f.stands(failed, idem.Failed, 1); len(record.Fingerprint) != 0 || record.Owner != "" {
		f.Errorf("record %+v", record)
	}
	claim := f.lapsed(lapsed)
	f.rollback(f.begun(again(lapsed), 2))
	f.stands(lapsed, idem.Processing, 1)
	f.complete(claim, result())
}

func claimTxBusy(f fixture) {
	q := request("1")
	ctx, tx := f.begun(q, 1)
	answer, workCtx, second, err := f.ledger().ClaimTx(f.bounded(1500*time.Millisecond), again(q), time.Minute)
	if err != nil || answer.Outcome != idem.Busy || workCtx != nil || second != nil {
		f.Errorf("ClaimTx: %v, %v, transaction %v; want busy", answer.Outcome, err, second)
	}
	f.commit(ctx, tx)
	answer, err = f.claimTxAnswer(f.Context(), again(q))
	if err != nil || answer.Outcome != idem.Done || !sameResult(answer.Record.Result, result()) {
		f.Errorf("ClaimTx: %v, %v; want done with the result", answer, err)
	}
}

// claimTxUnseen: a store with one writer may let the reader wait, and one that sees the transaction may say that somebody works; what none may do is
// show the claim itself.
func claimTxUnseen(f fixture) {
	q := request("1")
	ctx, tx := f.begun(q, 1)
	record, err := f.other.Lookup(f.bounded(300*time.Millisecond), q)
	somebodyWorks := err == nil && record.Live() && record.Owner == "" && len(record.Fingerprint) == 0
	if !somebodyWorks && !errors.Is(err, idem.ErrNotFound) && !errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("Lookup: %+v, %v; want ErrNotFound", record, err)
	}
	f.rollback(ctx, tx)
	f.absent(q)
}

func claimTxRefused(f fixture) {
	running, done, cancelled := request("running"), request("done"), request("cancelled")
	f.won(running, 1)
	f.complete(f.won(done, 1), result())
	f.release(f.won(cancelled, 1), idem.Cancelled)
	for name, row := range map[string]struct {
		q    idem.Request
		want idem.Outcome
	}{
		"running":                {again(running), idem.Busy},
		"running, other payload": {corrected(running), idem.Mismatch},
		"done":                   {again(done), idem.Done},
		"done, other payload":    {corrected(done), idem.Mismatch},
		"another's":              {stranger(done), idem.Foreign},
		"cancelled":              {again(cancelled), idem.Withdrawn},
		"request id elsewhere":   {moved(done, "elsewhere"), idem.Mismatch},
	} {
		answer, err := f.claimTxAnswer(f.Context(), row.q)
		if err != nil || answer.Outcome != row.want {
			f.Errorf("%s: %v, %v; want %v", name, answer.Outcome, err, row.want)
		}
		if row.want == idem.Foreign && !blank(answer.Record) {
			f.Errorf("a foreign answer tells %+v", answer.Record)
		}
	}
	f.commit(f.begun(request("free"), 1))
}

func claimTxCancelled(f fixture) {
	q := request("1")
	ctx, tx := f.begun(q, 1)
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := tx.Complete(ctx, result()); err == nil {
		f.Fatalf("Tx.Complete ignored its context")
	}
	f.absent(q)
	f.commit(f.begun(again(q), 1))
	if _, err := f.claimTxAnswer(ctx, request("2")); !errors.Is(err, context.Canceled) {
		f.Errorf("ClaimTx with a cancelled context: %v", err)
	}
}

func claimTxRace(f fixture) {
	q := request("1")
	ctx := f.bounded(30 * time.Second)
	var mu sync.Mutex
	var running sync.WaitGroup
	outcomes := map[idem.Outcome]int{}
	for range 40 {
		running.Go(func() {
			answer, work, tx, err := f.ledger().ClaimTx(ctx, again(q), time.Minute)
			if err == nil && tx != nil {
				err = tx.Complete(work, result())
			}
			mu.Lock()
			defer mu.Unlock()
			if outcomes[answer.Outcome]++; err != nil {
				f.Errorf("outcome %v: %v", answer.Outcome, err)
			}
		})
	}
	running.Wait()
	if outcomes[idem.Won] != 1 || outcomes[idem.Won]+outcomes[idem.Busy]+outcomes[idem.Done] != 40 {
		f.Errorf("outcomes %v, want one won, the others busy or done", outcomes)
	}
	f.replays(again(q), result())
}
