package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

type refund struct {
	No     string
	Amount int
}

func TestOnce(t *testing.T) {
	t.Parallel()
	ledger, key := memstore.New(memstore.Options{}), idem.K("refund", "R-1")
	var runs atomic.Int64
	pay := func(context.Context) (refund, error) {
		runs.Add(1)
		return refund{"R-1", 500}, nil
	}
	for range 3 {
		got, err := idem.Once(t.Context(), ledger, key, pay)
		if err != nil || got != (refund{"R-1", 500}) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if runs.Load() != 1 {
		t.Fatalf("ran %d times", runs.Load())
	}
}

func TestOnceAfterErrors(t *testing.T) {
	t.Parallel()
	gone := errors.New("gateway says no")
	cases := map[string]struct {
		err        error
		other      error // of another payload afterwards
		keepsBound bool
	}{
		"a failure frees the key":                {err: gone},
		"an unknown outcome binds the payload":   {err: errors.Join(gone, idem.ErrOutcomeUnknown), other: idem.ErrPayloadMismatch},
		"what the context says is a failure too": {err: context.DeadlineExceeded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, key := memstore.New(memstore.Options{}), idem.K("refund", "R-1")
			_, err := idem.Once(t.Context(), ledger, key, func(context.Context) (refund, error) { return refund{}, c.err },
				idem.WithFingerprint([]byte("500")))
			if !errors.Is(err, c.err) {
				t.Fatalf("first: %v", err)
			}
			attempt := 0
			second := func(ctx context.Context) (refund, error) {
				attempt = idem.FromContext(ctx).Attempt
				return refund{"R-1", 1}, nil
			}
			if _, err = idem.Once(t.Context(), ledger, key, second, idem.WithFingerprint([]byte("1"))); !errors.Is(err, c.other) {
				t.Fatalf("other payload: %v", err)
			}
			if _, err = idem.Once(t.Context(), ledger, key, second, idem.WithFingerprint([]byte("500"))); c.other != nil && (err != nil || attempt != 2) {
				t.Fatalf("the same again: %v, attempt %d", err, attempt)
			}
		})
	}
}

func TestOnceRefusesWhatCannotBeKept(t *testing.T) {
	t.Parallel()
	ledger, key := memstore.New(memstore.Options{}), idem.K("refund", "R-1")
	_, err := idem.Once(t.Context(), ledger, key, func(context.Context) (chan int, error) { return make(chan int), nil })
	if !errors.Is(err, idem.ErrInvalid) {
		t.Fatalf("a channel: %v", err)
	}
	if _, err := idem.Once(t.Context(), nil, key, func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, idem.ErrInvalid) {
		t.Fatalf("no ledger: %v", err)
	}
}

// The type was changed since, or a resolver answers in another form.
func TestOnceSaysWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	ledger, key := memstore.New(memstore.Options{}), idem.K("refund", "R-1")
	if _, err := idem.Once(t.Context(), ledger, key, func(context.Context) (string, error) { return "paid", nil }); err != nil {
		t.Fatal(err)
	}
	got, err := idem.Once(t.Context(), ledger, key, func(context.Context) (refund, error) { return refund{No: "R-1"}, nil })
	const says = `idem: the kept result of "refund" does not fit idem_test.refund: `
	if err == nil || !strings.HasPrefix(err.Error(), says) || strings.Contains(err.Error(), "R-1") || got != (refund{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOnceOptions(t *testing.T) {
	t.Parallel()
	ledger, key := memstore.New(memstore.Options{}), idem.K("refund", "R-1")
	started, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := idem.Once(t.Context(), ledger, key, func(context.Context) (int, error) {
			close(started)
			<-release
			return 1, nil
		}, idem.WithLease(time.Minute), idem.WithRetention(time.Hour))
		done <- err
	}()
	await(t, started, "the first")
	_, err := idem.Once(t.Context(), ledger, key, func(context.Context) (int, error) { return 2, nil }, idem.WithWait(0))
	if !errors.Is(err, idem.ErrInProgress) {
		t.Fatalf("duplicate: %v", err)
	}
	close(release)
	if err := await(t, done, "the first"); err != nil {
		t.Fatal(err)
	}
	_, err = idem.Once(t.Context(), ledger, idem.K("refund", "R-2"), func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}, idem.WithLimit(time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("limit: %v", err)
	}
}

func TestResolverIsAskedBeforeAnotherAttempt(t *testing.T) {
	t.Parallel()
	unsure := errors.New("gateway is down")
	cases := map[string]struct {
		says    idem.Ending
		err     error
		want    error
		runs    int64
		body    string
		text    string // in the error
		replays bool
	}{
		"it was done":       {says: succeed("as resolved").ending, body: "as resolved", replays: true},
		"nothing happened":  {says: end(idem.Failed).ending, runs: 1, body: "second"},
		"it was cancelled":  {says: end(idem.Cancelled).ending, want: idem.ErrCancelled},
		"nobody can say":    {err: unsure, want: idem.ErrUnavailable},
		"it will not say":   {says: end(idem.Processing).ending, want: idem.ErrUnavailable},
		"it says nothing":   {says: idem.Ending{}, want: idem.ErrUnavailable, text: `it returned the state ""; return succeeded, failed or cancelled`},
		"it says something": {says: end("done").ending, want: idem.ErrUnavailable, text: `it returned the state "done"; return`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyLayer(t, func(t *testing.T, have layers) {
				r, work := newRig(t, have), succeed("second")
				call := noWait(r.order(t, "request-1"))
				asked := 0
				call.Resolve = func(_ context.Context, claim idem.Claim) (idem.Ending, error) {
					asked++
					if claim.Attempt != 2 {
						t.Errorf("asked under attempt %d", claim.Attempt)
					}
					return c.says, c.err
				}
				r.must(t, call, end(idem.Processing).work)
				reply, err := r.Do(t.Context(), call, work.work)
				if !errors.Is(err, c.want) || asked != 1 || work.runs.Load() != c.runs {
					t.Fatalf("%v, asked %d times, %d runs", err, asked, work.runs.Load())
				}
				if text := fmt.Sprint(err); !strings.Contains(text, c.text) || strings.Contains(text, "%!") {
					t.Errorf("it says %s", text)
				}
				if string(reply.Result.Body) != c.body || reply.Replayed != c.replays {
					t.Fatalf("%+v", reply)
				}
			})
		})
	}
}

func TestSameTransaction(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, ledgerOnly), hold(end(idem.Failed).ending)
	call := r.order(t, "request-1")
	call.TokenID, call.SameTx = "", true
	first := r.goDo(t.Context(), call, work.work)
	await(t, work.started, "the first")
	duplicate := r.goDo(t.Context(), call, succeed("receipt").work)
	if _, err := r.Do(t.Context(), noWait(call), work.work); !errors.Is(err, idem.ErrInProgress) {
		t.Fatalf("while it is open: %v", err)
	}
	close(work.release)
	await(t, first, "the first answer")
	a := await(t, duplicate, "the duplicate")
	if a.err != nil || a.reply.Attempt != 1 || a.reply.Replayed {
		t.Fatalf("a rollback leaves nothing, so this is the first attempt: %+v", a)
	}
	if reply := r.must(t, call, work.work); !reply.Replayed || string(reply.Result.Body) != "receipt" {
		t.Fatalf("replay: %+v", reply)
	}
}
