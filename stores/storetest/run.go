package storetest

import (
	"testing"

	"github.com/idemkit/idem"
)

// Run checks that the store which open returns keeps the contract of idem.Store and, where it is one, of idem.TokenStore and of
// idem.Ledger. Every subtest runs in parallel and opens a store of its own, which must be empty; open registers its clean-up with t.Cleanup.
//
// Where idem.Store leaves a choice, the suite has made it: a repeated claim by the owner that holds it leaves the lease as it is, and a Mismatch by
// request id shows the record that bears the request id.
func Run(t *testing.T, open func(t testing.TB) Backend) {
	t.Helper()
	checks := baseChecks()
	probe := open(t)
	if _, ok := probe.Store.(idem.TokenStore); ok {
		checks = append(checks, tokenChecks()...)
	}
	if _, ok := probe.Store.(idem.Ledger); ok {
		checks = append(checks, ledgerChecks()...)
	}
	if probe.Forget != nil {
		checks = append(checks, forgetChecks()...)
	}
	if probe.Lossy != nil {
		checks = append(checks, lossyChecks(probe)...)
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newFixture(t, open(t)))
		})
	}
}

// check is one sentence of the contract, with a store of its own.
type check struct {
	name string
	run  func(f fixture)
}

func baseChecks() []check {
	return gather(claimChecks(), takeoverChecks(), replayChecks(), fenceChecks(), releaseChecks(), extendChecks(),
		raceChecks(), subjectChecks(), keyChecks(), refusalChecks(), repetitionChecks(), historyChecks())
}

func gather(groups ...[]check) []check {
	var all []check
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}
