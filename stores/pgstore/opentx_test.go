package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

func (l *lab) shown(ctx context.Context, setting string) string {
	l.Helper()
	tx, err := pgstore.Tx(ctx)
	if err != nil {
		l.Fatal(err)
	}
	var value string
	if err := tx.QueryRow(ctx, `SHOW `+setting).Scan(&value); err != nil {
		l.Fatal(err)
	}
	return value
}

// While a transaction works on a key nobody waits in the database, whatever he wants of it.
func TestNobodyWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]struct {
		attempt int
		reach   func(*lab, idem.Request)
	}{
		"a new key": {1, func(*lab, idem.Request) {}},
		"a failed one": {2, func(l *lab, q idem.Request) {
			if err := l.store.Release(l.Context(), l.won(q, 1), idem.Failed, ""); err != nil {
				l.Fatal(err)
			}
		}},
		"a lapsed one": {2, func(l *lab, q idem.Request) { l.won(q, 1); l.lapse(q.Key) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := newShop(t), request("1")
			before.reach(l, q)
			ctx, tx := l.begun(again(q))
			bounded, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			second := l.second()
			record, err := second.Lookup(bounded, q)
			if err != nil || record.State != idem.Processing || record.Attempt != before.attempt || !record.Live() {
				t.Errorf("Lookup: %+v, %v; want processing at %d", record, err, before.attempt)
			}
			answer, err := second.Claim(bounded, again(q))
			l.busy("Claim", answer, err, before.attempt)
			answer, _, _, err = second.ClaimTx(bounded, again(q), time.Minute)
			l.busy("ClaimTx", answer, err, before.attempt)
			l.commit(ctx, tx)
			l.stands(q, idem.Succeeded, before.attempt)
			l.asked(idem.Done, again(q))
		})
	}
}

func (l *lab) busy(call string, answer idem.Answer, err error, attempt int) {
	l.Helper()
	if err != nil || answer.Outcome != idem.Busy || answer.Record.Attempt != attempt || !answer.Record.Live() {
		l.Errorf("%s: %v, %+v, %v; want busy at attempt %d", call, answer.Outcome, answer.Record, err, attempt)
	}
}

func TestRequestIDOfAnOpenTransaction(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	ctx, tx := l.begun(q)
	elsewhere := again(q)
	elsewhere.Key.ID = "2"
	bounded, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	answer, err := l.store.Claim(bounded, elsewhere)
	l.busy("Claim", answer, err, 1)
	answer, _, _, err = l.store.ClaimTx(bounded, again(elsewhere), time.Minute)
	l.busy("ClaimTx", answer, err, 1)
	l.commit(ctx, tx)
	l.asked(idem.Mismatch, again(elsewhere))
}

// A foreign subject learns nothing of a record, and of an open transaction only that it is there.
func TestForeignSubjectBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	l.won(q, 1)
	l.lapse(q.Key)
	ctx, tx := l.begun(again(q))
	stranger := again(q)
	stranger.Subject = "bob"
	if answer := l.asked(idem.Foreign, stranger); answer.Record.State != "" {
		t.Errorf("record %+v", answer.Record)
	}
	l.commit(ctx, tx)
}

// Done stays done, even while another duplicate's transaction is looking at it.
func TestDuplicatesOfASuccessNeverDisturbOneAnother(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	l.commit(l.begun(q))
	done := make(chan idem.Outcome)
	const duplicates = 50
	for range duplicates {
		go func() {
			answer, _, _, err := l.store.ClaimTx(t.Context(), again(q), time.Minute)
			if err != nil {
				t.Error(err)
			}
			done <- answer.Outcome
		}()
	}
	for range duplicates {
		if outcome := <-done; outcome != idem.Done {
			t.Errorf("outcome %v, want done", outcome)
		}
	}
}

func TestClaimTxGivesUpARequestIDOnlyWithItsCommit(t *testing.T) {
	t.Parallel()
	l, q := newLab(t), request("1")
	if err := l.store.Release(t.Context(), l.won(q, 1), idem.Failed, ""); err != nil {
		t.Fatal(err)
	}
	elsewhere := again(q)
	elsewhere.Key.ID = "2"
	ctx, tx := l.begun(elsewhere)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if record := l.stands(q, idem.Failed, 1); record.RequestID != q.RequestID {
		t.Errorf("the failed record bears %q after a rollback", record.RequestID)
	}
	ctx, tx = l.begun(again(elsewhere))
	l.commit(ctx, tx)
	if record := l.stands(q, idem.Failed, 1); record.RequestID != "" {
		t.Errorf("the failed record bears %q after the commit", record.RequestID)
	}
	l.stands(elsewhere, idem.Succeeded, 1)
}

// The context's own error is in what every command returns after its end.
func TestContextErrorsStayVisible(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"claim":  func() error { _, err := l.store.Claim(ctx, request("1")); return err },
		"lookup": func() error { _, err := l.store.Lookup(ctx, request("1")); return err },
		"extend": func() error { _, err := l.store.Extend(ctx, []idem.Claim{{Request: request("1")}}); return err },
		"none":   func() error { _, err := l.store.Extend(ctx, nil); return err },
		"ping":   func() error { return l.store.Ping(ctx) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}
}
