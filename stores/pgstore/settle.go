package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// settleTimeout bounds finding out about a commit whose reply was lost; settleWait the wait for the transaction that it may still be.
const (
	settleTimeout = 8 * time.Second
	settleWait    = 4 * time.Second
)

// settle finds out, on a new connection, whether a commit happened whose reply was lost. First it makes sure that it cannot happen any more: a claim that
// stands loses its owner, so that the finish which may still be on its way raises; a claim that is part of the transaction is waited for by its lock.
func (w *work) settle(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	conn, err := w.store.source.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w: %w", idem.ErrOutcomeUnknown, cause, err)
	}
	defer disconnect(ctx, conn)

	var fenced int64
	var seen view
	err = transactOn(ctx, conn, func(b *pgx.Batch) {
		run(b, impatient, setting(settleWait))
		if w.whole {
			run(b, hold, w.store.keyLock(w.claim.Key))
		} else {
			b.Queue(w.store.sql.fence, claimFence(w.claim)...).Exec(count(&fenced))
		}
		w.store.queueLook(b, w.claim.Request, &seen)
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w: %w", idem.ErrOutcomeUnknown, cause, err)
	case seen.byKey != nil && succeededBy(*seen.byKey, w.claim):
		return nil
	case w.whole || fenced > 0:
		return fmt.Errorf("pgstore: complete: the commit did not happen and its writes are rolled back: %w", cause)
	}
	return fmt.Errorf("%w: %w", idem.ErrClaimLost, cause)
}
