package idem_test

import (
	"testing"

	"github.com/idemkit/idem"
)

// The state machine as a table: every pair of states, and what is not one.
func TestLegalTransitionsOnly(t *testing.T) {
	t.Parallel()
	const absent, unheardOf = idem.State(""), idem.State("paused")
	legal := map[idem.State][]idem.State{
		absent:          {idem.Processing},
		idem.Processing: {idem.Processing, idem.Succeeded, idem.Failed, idem.Cancelled}, // to itself: a takeover, or an unknown outcome
		idem.Failed:     {idem.Processing, idem.Cancelled},
		idem.Succeeded:  nil, // for good
		idem.Cancelled:  nil,
		unheardOf:       nil,
	}
	for from, may := range legal {
		for to := range legal {
			want := false
			for _, state := range may {
				want = want || state == to
			}
			if got := from.Next(to); got != want {
				t.Errorf("from %q to %q: %v, want %v", from, to, got, want)
			}
		}
	}
}
