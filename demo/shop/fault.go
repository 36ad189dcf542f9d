package shop

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/idemkit/idem"
)

// maxDelay bounds the parameter delay. A guarded handler has 30 s by default.
const maxDelay = 20 * time.Second

// exitStatus is what a shell shows for a process that was killed.
const exitStatus = 137

// faults are what the query asks to go wrong.
type faults struct {
	delay time.Duration // the work takes that long
	fail  string        // "500", "panic", "422" or "exit": the first attempt ends so; empty: none does
}

type faultsKey struct{}

func faultsFrom(ctx context.Context) faults {
	f, _ := ctx.Value(faultsKey{}).(faults)
	return f
}

// withFaults reads the parameters in front of the guard: a mistake in them is nobody's attempt.
func (s *shop) withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := readFaults(r)
		if err != nil {
			s.refuse(w, r, http.StatusBadRequest, err.Error())
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), faultsKey{}, f)))
	})
}

func readFaults(r *http.Request) (faults, error) {
	query := r.URL.Query()
	f := faults{fail: query.Get("fail")}
	switch f.fail {
	case "", "500", "panic", "422", "exit":
	default:
		return f, fmt.Errorf("the parameter fail must be 500, panic, 422 or exit")
	}
	if !query.Has("delay") {
		return f, nil
	}
	delay, err := time.ParseDuration(query.Get("delay"))
	if err != nil || delay < 0 || delay > maxDelay {
		return f, fmt.Errorf("the parameter delay must be a duration from 0s to %v, such as 1600ms", maxDelay)
	}
	f.delay = delay
	return f, nil
}

// wait takes as long as the query asks for, or until the work's context ends.
func (f faults) wait(ctx context.Context) error {
	if f.delay == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// strikes reports whether this attempt is the one to fail. A transfer's attempt does not grow: each one that asks for it fails.
// Without a guard nobody counts, and nothing fails.
func (f faults) strikes(ctx context.Context) bool {
	return f.fail != "" && idem.FromContext(ctx).Attempt == 1
}

// strike ends the attempt as the query asks for; 0: it goes on. A status is the handler's to answer with.
func (s *shop) strike(ctx context.Context) int {
	f := faultsFrom(ctx)
	if !f.strikes(ctx) {
		return 0
	}
	return s.end(f.fail)
}

// strikeEach is strike where nobody counts attempts: each call that asks for it fails.
func (s *shop) strikeEach(ctx context.Context) int { return s.end(faultsFrom(ctx).fail) }

func (s *shop) end(how string) int {
	switch how {
	case "exit":
		s.exit(exitStatus)
	case "panic":
		panic("shop: the query asked for a panic")
	case "422":
		return http.StatusUnprocessableEntity
	case "500":
		return http.StatusInternalServerError
	}
	return 0
}

// What is said of an attempt, and of a call, that the query asked to fail.
const (
	struck     = "The query asked for this attempt to fail. Nothing was written; send the same again."
	struckEach = "The query asked for this call to fail. Nothing was written; send it again without."
)
