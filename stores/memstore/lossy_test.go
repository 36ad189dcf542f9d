package memstore_test

import (
	"context"
	"errors"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

var errCut = errors.New("the link was cut")

// lossy applies every call and loses its reply, as a network may between a store and its back end.
type lossy struct{ *memstore.Store }

func (l lossy) Claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	_, err := l.Store.Claim(ctx, q)
	return idem.Answer{}, errors.Join(errCut, err)
}

func (l lossy) Extend(ctx context.Context, claims []idem.Claim) ([]int, error) {
	_, err := l.Store.Extend(ctx, claims)
	return nil, errors.Join(errCut, err)
}

func (l lossy) Complete(ctx context.Context, c idem.Claim, r idem.Result) error {
	return errors.Join(errCut, l.Store.Complete(ctx, c, r))
}

func (l lossy) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	return errors.Join(errCut, l.Store.Release(ctx, c, as, reason))
}

func (l lossy) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	_, err := l.Store.Lookup(ctx, q)
	return idem.Record{}, errors.Join(errCut, err)
}

func (l lossy) Ping(ctx context.Context) error { return errors.Join(errCut, l.Store.Ping(ctx)) }

func (l lossy) Issue(ctx context.Context, tokens []idem.Token) error {
	return errors.Join(errCut, l.Store.Issue(ctx, tokens))
}

func (l lossy) Spend(ctx context.Context, tokenID string, q idem.Request) (idem.Answer, error) {
	_, err := l.Store.Spend(ctx, tokenID, q)
	return idem.Answer{}, errors.Join(errCut, err)
}

func (l lossy) Restore(ctx context.Context, c idem.Claim, r idem.Result) error {
	return errors.Join(errCut, l.Store.Restore(ctx, c, r))
}

func (l lossy) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	ctx, tx := l.Store.Open(ctx, c, limit)
	return ctx, lossyTx{tx}
}

// ClaimTx loses its transaction with the link, as a database ends one whose client is gone.
func (l lossy) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	_, work, tx, err := l.Store.ClaimTx(ctx, q, limit)
	if tx != nil {
		err = tx.Rollback(work)
	}
	return idem.Answer{}, nil, nil, errors.Join(errCut, err)
}

func (l lossy) Purge(ctx context.Context, abandoned []string, limit int) (int, error) {
	n, err := l.Store.Purge(ctx, abandoned, limit)
	return n, errors.Join(errCut, err)
}

func (l lossy) Find(ctx context.Context, q idem.Query) ([]idem.Record, error) {
	_, err := l.Store.Find(ctx, q)
	return nil, errors.Join(errCut, err)
}

func (l lossy) Fence(ctx context.Context) (int64, error) {
	_, err := l.Store.Fence(ctx)
	return 0, errors.Join(errCut, err)
}

// lossyTx loses the reply to the commit and cannot ask again.
type lossyTx struct{ idem.Tx }

func (l lossyTx) Complete(ctx context.Context, r idem.Result) error {
	return errors.Join(idem.ErrOutcomeUnknown, errCut, l.Tx.Complete(ctx, r))
}
