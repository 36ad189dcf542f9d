package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

// Once is idem.Once with claim, fn's writes through tx, and the record in one transaction of the ledger: they are committed together or not at all, and a crash leaves
// nothing. A duplicate waits and gets the first value. An error of fn is returned and rolls everything back; there is no evidence of it afterwards, so that every attempt
// is the first, and a resolver is idem.ErrInvalid. SQLite has one writer: every other one waits until fn returns.
func Once[T any](ctx context.Context, ledger *Store, key idem.Key, fn func(ctx context.Context, tx DBTX) (T, error), options ...idem.OnceOption) (T, error) {
	if ledger == nil {
		var none T
		return none, fmt.Errorf("%w: sqlitestore.Once needs a ledger", idem.ErrInvalid)
	}
	return idem.Once(ctx, ledger, key, func(ctx context.Context) (T, error) {
		tx, err := Tx(ctx)
		if err != nil {
			var none T
			return none, err
		}
		return fn(ctx, tx)
	}, append(options[:len(options):len(options)], idem.InOneTx())...)
}

// OnceTx is Once inside a transaction of the caller's own, which must be in the ledger's file, through this handle or another: the record, and what fn writes, commit or
// roll back with it. A duplicate gets the first value. One whose transaction cannot write now, for another has the key or the file, is idem.ErrInProgress: roll back
// and call again. A transaction of a handle from Open has the file to itself from its begin; one that has only read waits for other writers as long as its handle's
// busy timeout says, as with any first write. To the store's own queue the transaction is another process's: keep it short.
//
// Whatever OnceTx returns, the caller's transaction stays usable: claim and fn run behind a savepoint, to which an error or a panic of fn goes back. fn must not keep
// its tx. Only where SQLite itself undid the whole transaction meanwhile, as it does at the end of a statement's context, is the error also ErrWorkEnded, and the
// transaction over: nothing can be written on in what would be another one. Options for waiting, lease and limit have no meaning here.
func OnceTx[T any](ctx context.Context, ledger *Store, tx *sql.Tx, key idem.Key, fn func(tx DBTX) (T, error), options ...idem.OnceOption) (T, error) {
	if ledger == nil || tx == nil {
		var none T
		return none, fmt.Errorf("%w: sqlitestore.OnceTx needs a ledger and a transaction", idem.ErrInvalid)
	}
	inside := callersTx{Store: ledger, tx: &transaction{Tx: tx, callers: true}}
	value, err := idem.Once(ctx, inside, key, func(context.Context) (T, error) { return fn(plain{inside.tx}) },
		append(options[:len(options):len(options)], idem.InOneTx(), idem.WithWait(0))...)
	if err != nil && !errors.Is(err, ErrWorkEnded) && !inside.tx.stands(ctx) {
		err = fmt.Errorf("%w: SQLite rolled it back: %w", ErrWorkEnded, err)
	}
	return value, err
}

// callersTx is the ledger as seen from inside a caller's transaction, for one call.
type callersTx struct {
	*Store
	tx *transaction
}

// Statements of a savepoint; a nested one of the same name is the one meant until it is released.
const (
	beginSavepoint = `SAVEPOINT idem_once`
	keepSavepoint  = `RELEASE idem_once`
	undoSavepoint  = `ROLLBACK TO idem_once; RELEASE idem_once`
)

// ClaimTx claims behind a savepoint of the caller's transaction. The end of a context would interrupt a statement, for which SQLite undoes the whole transaction; those here
// are short and run to their end.
func (c callersTx) ClaimTx(ctx context.Context, q idem.Request, _ time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	if err := q.Validate(); err != nil {
		return idem.Answer{}, nil, nil, err
	}
	if c.gate.claimed(q) {
		return busy(q), nil, nil, nil
	}
	s := savepoint{store: c.Store, tx: c.tx}
	answer, err := s.claim(context.WithoutCancel(ctx), q)
	switch {
	case isBusy(err):
		return busy(q), nil, nil, nil // another writer is in the way
	case err != nil:
		return idem.Answer{}, nil, nil, fmt.Errorf("sqlitestore: claim: %w", err)
	case answer.Outcome != idem.Won:
		return answer, nil, nil, nil
	}
	s.won = answer.Claim
	return answer, ctx, s, nil
}

// Lookup knows of nothing: a claim that fn itself took away has no winner.
func (c callersTx) Lookup(context.Context, idem.Request) (idem.Record, error) {
	return idem.Record{}, idem.ErrNotFound
}

// savepoint is the part of the caller's transaction that claim, fn and completion are.
type savepoint struct {
	store *Store
	tx    *transaction
	won   idem.Claim
}

func (s savepoint) begin(ctx context.Context) error {
	if !s.tx.stands(ctx) {
		return ErrWorkEnded
	}
	_, err := s.tx.ExecContext(ctx, beginSavepoint)
	return err
}

func (s savepoint) undo(ctx context.Context) error {
	_, err := s.tx.ExecContext(context.WithoutCancel(ctx), undoSavepoint)
	return err
}

// claim leaves the savepoint open only where the claim is won.
func (s savepoint) claim(ctx context.Context, q idem.Request) (idem.Answer, error) {
	if err := s.begin(ctx); err != nil {
		return idem.Answer{}, err
	}
	answer, err := s.store.claim(ctx, s.tx, q)
	if err == nil && answer.Outcome == idem.Won {
		return answer, nil
	}
	if undone := s.undo(ctx); err == nil {
		err = undone
	}
	return answer, err
}

// Complete records the result; the caller's commit makes it stand.
func (s savepoint) Complete(ctx context.Context, r idem.Result) error {
	ctx = context.WithoutCancel(ctx)
	if !s.tx.stands(ctx) {
		return fmt.Errorf("%w: SQLite rolled it back, or fn ended it", ErrWorkEnded)
	}
	done, err := s.store.complete(ctx, s.tx, s.won, r)
	if err == nil && !done {
		err = idem.ErrClaimLost
	}
	if err == nil {
		_, err = s.tx.ExecContext(ctx, keepSavepoint)
	}
	if err != nil {
		_ = s.undo(ctx) // the cause says more
	}
	return err
}

func (s savepoint) Rollback(ctx context.Context) error {
	if !s.tx.stands(ctx) {
		return ErrWorkEnded
	}
	return s.undo(ctx)
}
