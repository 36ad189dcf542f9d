package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idemkit/idem"
)

func TestExpiredTokenOnlyLooks(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r, work := newRig(t, have), hold(succeed("receipt").ending)
		call := r.order(t, "request-1")
		expired := call
		expired.LookOnly = true
		if _, err := r.Do(t.Context(), expired, work.work); !errors.Is(err, idem.ErrTokenExpired) {
			t.Fatalf("nothing stands: %v", err)
		}
		first := r.goDo(t.Context(), call, work.work)
		await(t, work.started, "the first")
		waiting := r.goDo(t.Context(), expired, work.work)
		close(work.release)
		await(t, first, "the first answer")
		if a := await(t, waiting, "the expired one"); a.err != nil || !a.reply.Replayed {
			t.Fatalf("waits for the first: %+v", a)
		}
		if _, err := r.Do(t.Context(), payload(expired, "other"), work.work); !errors.Is(err, idem.ErrPayloadMismatch) {
			t.Fatalf("other payload: %v", err)
		}
	})
}

func TestExpiredTokenAfterFailure(t *testing.T) {
	t.Parallel()
	everyLayer(t, func(t *testing.T, have layers) {
		r := newRig(t, have)
		call := r.order(t, "request-1")
		r.must(t, call, end(idem.Failed).work)
		call.LookOnly = true
		if _, err := r.Do(context.WithoutCancel(t.Context()), call, succeed("receipt").work); !errors.Is(err, idem.ErrTokenExpired) {
			t.Fatalf("%v", err)
		}
	})
}
