package idem_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// crashed leaves a claim whose lease is over, as a process that died does.
func crashed(t testing.TB, ledger *memstore.Store, key idem.Key) {
	t.Helper()
	q := idem.Request{Key: key, Subject: "anna", RequestID: "request-" + key.ID, Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour}
	if answer, err := ledger.Claim(t.Context(), q); err != nil || answer.Outcome != idem.Won {
		t.Fatalf("claim: %v, %v", answer.Outcome, err)
	}
	ledger.Lapse(key)
}

func standing(t testing.TB, ledger idem.Ledger, key idem.Key) idem.Record {
	t.Helper()
	record, err := ledger.Lookup(t.Context(), idem.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestRecover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says    idem.Ending
		err     error
		want    idem.State
		counted int
		fails   bool
	}{
		"it was done":      {says: succeed("done").ending, want: idem.Succeeded, counted: 1},
		"done, not kept":   {says: idem.Ending{State: idem.Succeeded}, want: idem.Succeeded, counted: 1},
		"no such state":    {says: end("done").ending, want: idem.Processing, fails: true},
		"nothing at all":   {want: idem.Processing, fails: true},
		"nothing happened": {says: end(idem.Failed).ending, want: idem.Failed, counted: 1},
		"it was cancelled": {says: end(idem.Cancelled).ending, want: idem.Cancelled, counted: 1},
		"nobody can say":   {err: errors.New("gateway is down"), want: idem.Processing, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := memstore.New(memstore.Options{})
			mine, foreign := idem.K("refund", "1"), idem.K("somebody.elses", "1")
			crashed(t, ledger, mine)
			crashed(t, ledger, foreign)
			var attempts []int
			j := idem.Janitor{Ledger: ledger, Resolvers: map[string]idem.Resolver{"refund": func(_ context.Context, claim idem.Claim) (idem.Ending, error) {
				attempts = append(attempts, claim.Attempt)
				return c.says, c.err
			}}}
			n, err := j.Recover(t.Context())
			if n != c.counted || (err != nil) != c.fails {
				t.Fatalf("recovered %d, %v", n, err)
			}
			if got := standing(t, ledger, mine); got.State != c.want || !slices.Equal(attempts, []int{2}) {
				t.Fatalf("%+v after attempts %v", got, attempts)
			}
			if got := standing(t, ledger, foreign); got.State != idem.Processing || got.Attempt != 1 {
				t.Fatalf("an unknown business type was touched: %+v", got)
			}
		})
	}
}

// What is finished between finding and asking is left alone (river#1302), and so is what still runs.
func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()
	ledger := memstore.New(memstore.Options{})
	finished := idem.K("refund", "finished")
	crashed(t, ledger, finished)
	running := idem.Request{Key: idem.K("refund", "running"), Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour}
	if _, err := ledger.Claim(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	j := idem.Janitor{Ledger: finding{ledger, func() {
		if _, err := idem.Once(t.Context(), ledger, finished, func(context.Context) (int, error) { return 1, nil }); err == nil {
			t.Error("another subject's claim was taken over")
		}
		q := idem.Request{Key: finished, Subject: "anna", Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour}
		answer, err := ledger.Claim(t.Context(), q)
		if err == nil {
			err = ledger.Complete(t.Context(), answer.Claim, succeed("first").ending.Result)
		}
		if err != nil {
			t.Error(err)
		}
	}}, Resolvers: map[string]idem.Resolver{"refund": func(context.Context, idem.Claim) (idem.Ending, error) {
		t.Error("a finished or running claim was asked about")
		return idem.Ending{}, nil
	}}}
	if n, err := j.Recover(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d, %v; nothing was left to recover", n, err)
	}
	if got := standing(t, ledger, finished); string(got.Result.Body) != "first" {
		t.Fatalf("%+v", got)
	}
}

// finding does something between reading and acting.
type finding struct {
	*memstore.Store
	between func()
}

func (f finding) Find(ctx context.Context, q idem.Query) ([]idem.Record, error) {
	found, err := f.Store.Find(ctx, q)
	f.between()
	return found, err
}

func TestCompensate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ending  idem.State
		want    idem.State
		counted int
	}{
		"it succeeds":    {idem.Succeeded, idem.Succeeded, 1},
		"it gives up":    {idem.Cancelled, idem.Cancelled, 1},
		"it fails again": {idem.Failed, idem.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, key := memstore.New(memstore.Options{}), idem.K("booking", "1")
			failing := errors.New("no seats")
			_, _ = idem.Once(t.Context(), ledger, key, func(context.Context) (int, error) { return 0, failing })
			attempt := 0
			j := idem.Janitor{Ledger: ledger, CompensateAfter: time.Nanosecond, Compensations: map[string]idem.Work{"booking": func(ctx context.Context) idem.Ending {
				attempt = idem.FromContext(ctx).Attempt
				return idem.Ending{State: c.ending, Result: idem.Result{Status: 200, Kept: true}}
			}}}
			n, err := j.Compensate(t.Context())
			if n != c.counted || err != nil || attempt != 2 {
				t.Fatalf("compensated %d, %v, under attempt %d", n, err, attempt)
			}
			if got := standing(t, ledger, key); got.State != c.want || got.Attempt != 2 {
				t.Fatalf("%+v", got)
			}
		})
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, both), succeed("receipt")
	call := r.order(t, "request-1")
	r.must(t, call, work.work)
	drain(t, r.Engine)
	j := idem.Janitor{Ledger: r.ledger, Store: r.entrance}
	if repaired, removed, err := j.Reconcile(t.Context()); repaired+removed != 0 || err != nil {
		t.Fatalf("both agree: repaired %d, removed %d, %v", repaired, removed, err)
	}

	missing := r.order(t, "request-2") // done in the ledger, and nobody told the entrance
	q := missing.Request
	q.Owner, q.Ledger = idem.NewOwner(), r.ledger.Name()
	if _, err := r.entrance.Spend(t.Context(), missing.TokenID, q); err != nil {
		t.Fatal(err)
	}
	answer, err := r.ledger.Claim(t.Context(), q)
	if err == nil {
		err = r.ledger.Complete(t.Context(), answer.Claim, succeed("second").ending.Result)
	}
	if err != nil {
		t.Fatal(err)
	}
	invented := r.order(t, "request-3") // done in the entrance, for a transaction that then rolled back
	q = invented.Request
	q.Owner, q.Ledger = idem.NewOwner(), r.ledger.Name()
	if err := r.entrance.Restore(t.Context(), idem.Claim{Request: q, Attempt: 1}, succeed("invented").ending.Result); err != nil {
		t.Fatal(err)
	}
	elsewhere := r.order(t, "request-4")
	q = elsewhere.Request
	q.Owner, q.Ledger = idem.NewOwner(), "another ledger"
	if err := r.entrance.Restore(t.Context(), idem.Claim{Request: q, Attempt: 1}, succeed("elsewhere").ending.Result); err != nil {
		t.Fatal(err)
	}

	repaired, removed, err := j.Reconcile(t.Context())
	if repaired != 1 || removed != 1 || err != nil {
		t.Fatalf("repaired %d, removed %d, %v", repaired, removed, err)
	}
	if got, err := r.entrance.Lookup(t.Context(), missing.Request); err != nil || got.State != idem.Succeeded || string(got.Result.Body) != "second" {
		t.Errorf("not repaired: %+v, %v", got, err)
	}
	if got, err := r.entrance.Lookup(t.Context(), invented.Request); !errors.Is(err, idem.ErrNotFound) {
		t.Errorf("not removed: %+v, %v", got, err)
	}
	if got, err := r.entrance.Lookup(t.Context(), elsewhere.Request); err != nil || got.State != idem.Succeeded {
		t.Errorf("another ledger's: %+v, %v", got, err)
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	ledger := memstore.New(memstore.Options{})
	crashed(t, ledger, idem.K("refund", "1"))
	j := idem.Janitor{Ledger: ledger, Resolvers: map[string]idem.Resolver{"refund": func(context.Context, idem.Claim) (idem.Ending, error) {
		if _, err := (idem.Janitor{Ledger: ledger}).Round(t.Context()); !errors.Is(err, idem.ErrInProgress) {
			t.Errorf("two rounds at a time: %v", err)
		}
		return succeed("done").ending, nil
	}}}
	for _, want := range []idem.Tidied{{Recovered: 1}, {}} {
		if done, err := j.Round(t.Context()); done != want || err != nil {
			t.Fatalf("%+v, %v; want %+v", done, err, want)
		}
	}
}

func TestRunGoesOnUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	rounds, ended := make(chan idem.Tidied, 100), make(chan error, 1)
	j := idem.Janitor{Ledger: memstore.New(memstore.Options{}), Every: time.Millisecond, Observe: func(_ context.Context, done idem.Tidied, err error) {
		if err == nil {
			rounds <- done
		}
	}}
	go func() { ended <- j.Run(ctx) }()
	for range 2 {
		await(t, rounds, "a round")
	}
	stop()
	if err := await(t, ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
