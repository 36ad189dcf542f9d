package storetest

import (
	"errors"
	"time"

	"github.com/idemkit/idem"
)

// A link cut at the commit is the one place where a store must ask again before it may say anything.

func lossyOpen(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	_, tx := f.Lossy(f.T).(idem.Ledger).Open(f.Context(), claim, time.Minute)
	err := tx.Complete(f.Context(), result())
	f.answered("Tx.Complete", err)
	record := f.lookup(q)
	f.committedAs(err, record.State == idem.Succeeded)
	if record.Attempt != 1 || (record.State != idem.Succeeded && record.State != idem.Processing) {
		f.Errorf("record %s at attempt %d", record.State, record.Attempt)
	}
}

// committedAs fails the test where the answer of a Complete and the truth differ.
func (f fixture) committedAs(err error, done bool) {
	f.Helper()
	switch {
	case err == nil && !done:
		f.Fatalf("Tx.Complete returned nil, and nothing is recorded")
	case err != nil && done && !errors.Is(err, idem.ErrOutcomeUnknown):
		f.Fatalf("Tx.Complete: %v, yet the result is recorded", err)
	}
}

// lossyClaimTx: a transaction whose beginning was lost ends with its link, and leaves nothing.
func lossyClaimTx(f fixture) {
	q := request("1")
	answer, ctx, tx, err := f.Lossy(f.T).(idem.Ledger).ClaimTx(f.Context(), q, time.Minute)
	f.answeredAs(idem.Won, answer, err)
	if err == nil {
		if err := tx.Rollback(ctx); err != nil {
			f.Logf("Rollback: %v", err)
		}
	}
	next := again(q)
	f.eventually("the key is free again", func() bool {
		answer, ctx, tx, err := f.ledger().ClaimTx(f.Context(), next, time.Minute)
		if err != nil || answer.Outcome != idem.Won {
			return false
		}
		if answer.Claim.Attempt != 1 {
			f.Errorf("attempt %d, want 1", answer.Claim.Attempt)
		}
		if err := tx.Complete(ctx, result()); err != nil {
			f.Fatalf("Complete: %v", err)
		}
		return true
	})
	f.replays(again(q), result())
}

func lossyPurge(f fixture) {
	q := request("1")
	f.complete(f.won(q, 1), result())
	n, err := f.Lossy(f.T).(idem.Ledger).Purge(f.Context(), nil, 10)
	f.answered("Purge", err)
	if n != 0 {
		f.Errorf("purged %d of none", n)
	}
	f.replays(again(q), result())
}

func lossyFind(f fixture) {
	f.lapsed(ofKind("1", kind))
	q := idem.Query{State: idem.Processing, Types: []string{kind}, Limit: 10}
	records, err := f.Lossy(f.T).(idem.Ledger).Find(f.Context(), q)
	f.answered("Find", err)
	if err == nil && len(records) != 1 {
		f.Errorf("over a lossy link: %d records", len(records))
	}
	f.finds(q, "1")
	before := f.draw(f.Store)
	number, err := f.Lossy(f.T).(idem.Ledger).Fence(f.Context())
	f.answered("Fence", err)
	if err == nil && number <= before {
		f.Errorf("over a lossy link: %d after %d", number, before)
	}
	if after := f.draw(f.Store); after <= max(before, number) {
		f.Errorf("%d after %d and %d", after, before, number)
	}
}
