package idem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// hanging is a ledger of whose calls some take all the time that they are given.
type hanging struct {
	*memstore.Store
	rollback, complete, release bool
}

func (l hanging) Open(ctx context.Context, c idem.Claim, limit time.Duration) (context.Context, idem.Tx) {
	ctx, tx := l.Store.Open(ctx, c, limit)
	return ctx, hangingTx{tx, l}
}

func (l hanging) ClaimTx(ctx context.Context, q idem.Request, limit time.Duration) (idem.Answer, context.Context, idem.Tx, error) {
	answer, txctx, tx, err := l.Store.ClaimTx(ctx, q, limit)
	if tx != nil {
		tx = hangingTx{tx, l}
	}
	return answer, txctx, tx, err
}

func (l hanging) Release(ctx context.Context, c idem.Claim, as idem.State, reason string) error {
	if l.release {
		return hang(ctx)
	}
	return l.Store.Release(ctx, c, as, reason)
}

type hangingTx struct {
	idem.Tx
	hanging
}

func (t hangingTx) Rollback(ctx context.Context) error {
	if t.rollback {
		_ = t.Tx.Rollback(ctx) // a connection that is given up: the server undoes it
		return hang(ctx)
	}
	return t.Tx.Rollback(ctx)
}

func (t hangingTx) Complete(ctx context.Context, r idem.Result) error {
	if t.complete {
		_ = t.Tx.Rollback(ctx)
		return hang(ctx)
	}
	return t.Tx.Complete(ctx, r)
}

// pgx#2557: a rollback on a closed connection hung. What comes behind it has a time of its own, so that the corrected payload may follow at once.
func TestHangingEndLeavesTimeForTheRest(t *testing.T) {
	t.Parallel()
	failing := func(context.Context) idem.Ending { return idem.Ending{State: idem.Failed} }
	for name, c := range map[string]struct {
		hangs  hanging
		sameTx bool
		work   idem.Work
		ledger idem.State // of its record; empty: none
		took   time.Duration
	}{
		"rollback":                   {hangs: hanging{rollback: true}, work: failing, ledger: idem.Failed, took: 5 * time.Second},
		"rollback, same transaction": {hangs: hanging{rollback: true}, sameTx: true, work: failing, took: 5 * time.Second},
		"rollback after a panic": {
			hangs: hanging{rollback: true}, work: func(context.Context) idem.Ending { panic("told to") }, ledger: idem.Failed, took: 5 * time.Second,
		},
		"release":              {hangs: hanging{release: true}, work: failing, ledger: idem.Processing, took: 10 * time.Second},
		"rollback and release": {hangs: hanging{rollback: true, release: true}, work: failing, ledger: idem.Processing, took: 15 * time.Second},
		"commit":               {hangs: hanging{complete: true}, work: succeed("receipt").work, ledger: idem.Processing, took: 10 * time.Second},
		"commit and release":   {hangs: hanging{complete: true, release: true}, work: succeed("receipt").work, ledger: idem.Processing, took: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.hangs.Store = memstore.New(memstore.Options{})
				r := &rig{entrance: &entrance{Store: memstore.New(memstore.Options{Forgetful: true})}}
				engine, err := idem.NewEngine(idem.EngineConfig{Store: r.entrance, Ledger: c.hangs})
				if err != nil {
					t.Fatal(err)
				}
				call := r.order(t, "request-1")
				call.SameTx = c.sameTx
				begun := time.Now()
				func() {
					defer func() { _ = recover() }()
					_, _ = engine.Do(t.Context(), call, c.work)
				}()
				if took := time.Since(begun); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if entrance, err := r.entrance.Lookup(t.Context(), call.Request); err != nil || entrance.State != idem.Failed {
					t.Errorf("the entrance is %s, %v; want it free", entrance.State, err)
				}
				if record, _ := c.hangs.Lookup(t.Context(), call.Request); record.State != c.ledger {
					t.Errorf("the ledger's record is %q, want %q", record.State, c.ledger)
				}
			})
		})
	}
}
