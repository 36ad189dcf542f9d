package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func TestTicket(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r := newRig(t, have)
		call := noWait(r.order(t, "request-1"))
		ticket, _, err := r.Enter(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(ticket)
		var back idem.Ticket
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Enter(t.Context(), call); !errors.Is(err, idem.ErrInProgress) {
			t.Fatalf("while it is out: %v", err)
		}
		for range 2 {
			if err := r.Extend(t.Context(), back); err != nil {
				t.Fatalf("extend: %v", err)
			}
		}
		for range 2 {
			if err := r.Finish(t.Context(), back, succeed("receipt").ending); err != nil {
				t.Fatalf("finish: %v", err)
			}
		}
		_, reply, err := r.Enter(t.Context(), call)
		if err != nil || !reply.Replayed || string(reply.Result.Body) != "receipt" {
			t.Fatalf("duplicate: %+v, %v", reply, err)
		}
		if err := r.Extend(t.Context(), back); !errors.Is(err, idem.ErrClaimLost) {
			t.Fatalf("extend after the end: %v", err)
		}
	})
}

func TestTicketOfAFailure(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r := newRig(t, have)
		call := noWait(r.order(t, "request-1"))
		first, _, err := r.Enter(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.Finish(t.Context(), first, end(idem.Failed).ending); err != nil {
				t.Fatalf("fail: %v", err)
			}
		}
		second, _, err := r.Enter(t.Context(), payload(call, "corrected"))
		if err != nil || second.Claim.Attempt != 2 {
			t.Fatalf("again: %+v, %v", second, err)
		}
		if err := r.Finish(t.Context(), first, succeed("late").ending); !errors.Is(err, idem.ErrClaimLost) {
			t.Fatalf("the first one completed: %v", err)
		}
	})
}

// Nobody has the ticket of a caller who left while it was written: whoever comes next need not wait for its lease.
func TestTicketOfACallerWhoLeft(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		r := newRig(t, both)
		call := noWait(r.order(t, "request-1"))
		r.ledger.slow = 2 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ticket, _, err := r.Enter(ctx, call); !errors.Is(err, context.DeadlineExceeded) || ticket.Claim.Owner != "" {
			t.Fatalf("%+v, %v", ticket, err)
		}
		if ticket, _, err := r.Enter(t.Context(), call); err != nil || ticket.Claim.Attempt != 2 {
			t.Fatalf("the next one: %+v, %v", ticket, err)
		}
	})
}

// The ledger decides, and an entrance that hangs holds nobody up.
func TestTicketWithAFrozenEntrance(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		r := newRig(t, ledgerOnly)
		engine, err := idem.NewEngine(idem.EngineConfig{Store: frozen{memstore.New(memstore.Options{})}, Ledger: r.ledger})
		if err != nil {
			t.Fatal(err)
		}
		ticket, _, err := engine.Enter(t.Context(), noWait(r.order(t, "request-1")))
		if err != nil {
			t.Fatal(err)
		}
		ticket.Entrance = &ticket.Claim // as if it had not hung then
		begun := time.Now()
		if err := engine.Finish(t.Context(), ticket, succeed("receipt").ending); err != nil || time.Since(begun) > 0 {
			t.Errorf("finish: %v after %v", err, time.Since(begun))
		}
		pass(time.Minute)
		drain(t, engine)
	})
}
