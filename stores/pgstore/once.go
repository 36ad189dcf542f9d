package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// Once is idem.Once with claim, fn's writes through tx, and the record in one transaction of the ledger: they are committed together or not at all, and a crash leaves
// nothing. A duplicate waits outside of any transaction and gets the first value. An error of fn is returned and rolls everything back; there is no evidence of it
// afterwards, so that every attempt is the first, and a resolver is idem.ErrInvalid. fn's context is the one of guarded work; tx is its Tx.
func Once[T any](ctx context.Context, ledger *Store, key idem.Key, fn func(ctx context.Context, tx pgx.Tx) (T, error), options ...idem.OnceOption) (T, error) {
	if ledger == nil {
		var none T
		return none, fmt.Errorf("%w: pgstore.Once needs a ledger", idem.ErrInvalid)
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

// OnceTx is Once inside a transaction of the caller's own, which must be in the ledger's database: the record, and what fn writes, commit or roll back with it. A
// duplicate gets the first value; one that meets another transaction which has claimed the key and not ended is idem.ErrInProgress at once, for whoever waited there would keep
// its own rows locked: roll back and call again. As locks are only tried, transactions with several keys may take them in any order.
//
// Whatever OnceTx returns, the caller's transaction stays usable: claim and fn run behind a savepoint, fn's tx, to which an error or a panic of fn goes back. fn must
// not end it (ErrGuarded), keep it, or leave rows or a batch of it unread: those keep the connection busy. Options for waiting, lease and limit have no meaning here. In a transaction stricter than READ COMMITTED a duplicate that meets
// a record committed since the transaction's snapshot is a serialization failure (40001), as any other write there would be.
func OnceTx[T any](ctx context.Context, ledger *Store, tx pgx.Tx, key idem.Key, fn func(tx pgx.Tx) (T, error), options ...idem.OnceOption) (T, error) {
	if ledger == nil || tx == nil {
		var none T
		return none, fmt.Errorf("%w: pgstore.OnceTx needs a ledger and a transaction", idem.ErrInvalid)
	}
	inside := &callersTx{Store: ledger, ctx: ctx, tx: tx}
	return idem.Once(ctx, inside, key, func(context.Context) (T, error) { return fn(inside.lent) },
		append(options[:len(options):len(options)], idem.InOneTx(), idem.WithWait(0))...)
}

// callersTx is the ledger as seen from inside a caller's transaction, for one call.
type callersTx struct {
	*Store
	ctx  context.Context // the caller's: a bound of anybody else's would break the caller's connection
	tx   pgx.Tx
	lent pgx.Tx // the savepoint as fn gets it
}

// ClaimTx claims behind a savepoint of the caller's transaction.
func (c *callersTx) ClaimTx(_ context.Context, q idem.Request, _ time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	ctx := c.ctx
	if err := q.Validate(); err != nil {
		return idem.Answer{}, nil, nil, err
	}
	on := &savepoint{store: c.Store, ctx: ctx, outer: c.tx}
	answer, err := c.claimOn(ctx, on, q)
	if err != nil || answer.Outcome != idem.Won {
		on.undo(ctx)
		if err != nil {
			return idem.Answer{}, nil, nil, failed(ctx, "claim", err)
		}
		return answer, nil, nil, nil
	}
	on.claim = answer.Claim
	c.lent = &guardedTx{Tx: on.tx, span: &on.span}
	return answer, ctx, on, nil
}

// Lookup knows of nothing: a claim that fn itself took away has no winner, and must not be looked for on another connection.
func (c *callersTx) Lookup(context.Context, idem.Request) (idem.Record, error) {
	return idem.Record{}, idem.ErrNotFound
}

// savepoint is the part of the caller's transaction that claim, fn and completion are. To release it keeps them, the locks included; to roll back to it undoes
// them, a failed statement included.
type savepoint struct {
	store *Store
	ctx   context.Context // the caller's
	outer pgx.Tx
	tx    pgx.Tx // nil before begin and after undo
	claim idem.Claim
	span  span
}

func (p *savepoint) begin(ctx context.Context, queue func(*pgx.Batch)) (err error) {
	if p.tx, err = p.outer.Begin(ctx); err != nil {
		p.tx = nil
		return err
	}
	return p.send(ctx, queue)
}

func (p *savepoint) send(ctx context.Context, queue func(*pgx.Batch)) error {
	batch := &pgx.Batch{}
	queue(batch)
	return p.tx.SendBatch(ctx, batch).Close()
}

// undo also happens after the caller's context has ended: its transaction may go on.
func (p *savepoint) undo(ctx context.Context) {
	if p.tx == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = p.tx.Rollback(ctx) // where it fails the connection is broken, and the caller's transaction with it
	p.tx = nil
}

// Complete records the result; the caller's commit makes it stand.
func (p *savepoint) Complete(_ context.Context, r idem.Result) error {
	ctx := p.ctx
	if err := p.close(ctx, "complete"); err != nil {
		return err
	}
	arguments, err := completeArguments(p.claim, r)
	if err == nil {
		passed := false
		err = p.send(ctx, func(b *pgx.Batch) { p.store.queueComplete(b, arguments, &passed) })
	}
	if err == nil {
		err = p.tx.Commit(ctx)
	}
	if err == nil {
		return nil
	}
	p.undo(ctx)
	if state(err) == guardRaised {
		return idem.ErrClaimLost
	}
	return failed(ctx, "complete", err)
}

func (p *savepoint) Rollback(ctx context.Context) error {
	if err := p.close(ctx, "rollback"); err != nil {
		return err
	}
	p.undo(ctx)
	return nil
}

// close takes the savepoint back from fn, and from what fn left running, as long as ctx allows: the connection is the caller's and cannot be cut.
func (p *savepoint) close(ctx context.Context, command string) error {
	quiet, _ := p.span.end()
	if !await(ctx, quiet) {
		return failed(ctx, command, ctx.Err())
	}
	return nil
}
