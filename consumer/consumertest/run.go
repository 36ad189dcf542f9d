package consumertest

import "testing"

// Run checks that the adapter which open gives keeps what package consumer promises. Every subtest runs in parallel and opens a backend of its own.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open)
		})
	}
}

// check is one sentence of the promise.
type check struct {
	name string
	run  func(t *testing.T, open Open)
}

func checks() []check { return nil }
