package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/idemkit/idem"
)

// Complete commits record and work together. A commit that failed is read again on another connection.
func (w *work) Complete(ctx context.Context, r idem.Result) error {
	if err := w.take(ctx); err != nil {
		go w.abandon(err)
		return err
	}
	defer w.give()
	switch {
	case w.over != nil:
		return w.settle(ctx, w.over, w.store.write)
	case w.tx == nil:
		w.over = ErrWorkEnded
		return w.completeAlone(ctx, r)
	}
	defer w.store.leave(ctx)
	if err := w.record(ctx, r); err != nil {
		w.undo(fmt.Errorf("%w: %w", ErrWorkEnded, err))
		return w.settle(ctx, err, w.store.writeHolding)
	}
	renewed, err := w.store.renewPending(ctx, w.tx)
	if err != nil {
		w.undo(fmt.Errorf("%w: %w", ErrWorkEnded, err))
		return w.settle(ctx, ended(ctx, err), w.store.writeHolding)
	}
	err = w.tx.commit()
	w.closed(ErrWorkEnded)
	if err != nil {
		return w.resolve(ctx, fmt.Errorf("sqlitestore: commit: %w", err), w.store.writeHolding)
	}
	w.store.gate.drop(append(renewed, w.claim)...)
	return nil
}

// record writes the result in the work's transaction, if that is still the one that the work wrote in.
func (w *work) record(ctx context.Context, r idem.Result) error {
	if !w.tx.alive(ctx) {
		return fmt.Errorf("%w: SQLite rolled it back, or the work ended it by a statement", ErrWorkEnded)
	}
	done, err := w.store.complete(ctx, w.tx, w.claim, r)
	switch {
	case err != nil:
		return ended(ctx, err)
	case !done:
		return idem.ErrClaimLost
	}
	return nil
}

// completeAlone completes work that asked for no transaction.
func (w *work) completeAlone(ctx context.Context, r idem.Result) error {
	err := w.store.Complete(ctx, w.claim, r)
	if err == nil || errors.Is(err, idem.ErrClaimLost) || errors.Is(err, idem.ErrFormat) {
		return err
	}
	return w.resolve(ctx, err, w.store.write)
}

// writing is Store.write or, where the gate is the work's still, Store.writeHolding.
type writing func(context.Context, func(*transaction) error) error

// resolve reads what a failed commit left.
func (w *work) resolve(ctx context.Context, failure error, write writing) error {
	reading, cancel := bounded(ctx)
	defer cancel()
	f, err := w.store.find(reading, nil, w.claim.Request)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; reading it again: %w", idem.ErrOutcomeUnknown, failure, err)
	case f.byKey != nil && f.byKey.state == idem.Succeeded && f.byKey.heldBy(w.claim):
		w.store.gate.drop(w.claim)
		return nil
	}
	return w.settle(ctx, failure, write)
}

// settle leaves the committed claim of rolled-back work free to be taken, and returns why the work did not complete: ErrClaimLost
// where somebody else has it.
func (w *work) settle(ctx context.Context, failure error, write writing) error {
	if w.fresh || errors.Is(failure, idem.ErrClaimLost) {
		w.store.gate.drop(w.claim)
		return failure
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := write(ctx, func(tx *transaction) error {
		return w.store.release(ctx, tx, w.claim, idem.Processing, failure.Error())
	})
	switch {
	case errors.Is(err, idem.ErrClaimLost):
		w.store.gate.drop(w.claim)
		return fmt.Errorf("%w: %w", err, failure)
	case err == nil:
		w.store.gate.drop(w.claim)
	}
	return failure
}

// Rollback undoes the work's writes. It waits for a statement of the work that still runs, as long as ctx allows; the transaction ends with it in any
// case. After the end it does nothing.
func (w *work) Rollback(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.abandon(ErrWorkEnded)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandon rolls back when the turn comes.
func (w *work) abandon(why error) {
	<-w.turn
	defer w.give()
	if w.over != nil {
		return
	}
	if w.tx == nil {
		w.over = ErrWorkEnded
		return
	}
	w.undo(fmt.Errorf("%w: %w", ErrWorkEnded, why))
	w.store.leave(context.Background())
}
