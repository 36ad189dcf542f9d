package consumertest

import (
	"slices"
	"testing"
)

// Run checks that the adapter which open gives keeps what package consumer promises. Every subtest runs in parallel and opens a backend of its own.
func Run(t *testing.T, open Open) {
	t.Helper()
	probe := open(t, Need{Names: []string{"probe"}, Alone: true})
	for _, c := range slices.Concat(deliveryChecks(), failureChecks(), deathChecks(), stopChecks(), brokerChecks(), processChecks()) {
		if c.needs != nil && !c.needs(probe) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newFixture(t, open(t, Need{Names: []string{points, mail}, Alone: c.alone})))
		})
	}
}

// The consumers of the suite's messages. Most tests run the first one alone.
const points, mail = "points", "mail"

// check is one sentence of the promise, with a backend of its own.
type check struct {
	name  string
	alone bool               // the broker is the test's own
	needs func(Backend) bool // nil: nothing special
	run   func(f *fixture)
}

func kills(b Backend) bool   { return b.Kill != nil && b.Restart != nil }
func cuts(b Backend) bool    { return b.Cut != nil }
func deletes(b Backend) bool { return b.Delete != nil }
func crashes(b Backend) bool { return b.Crash != nil }
