// Package storetest is the contract of idem's stores as a suite of tests. A store outside this module runs it the same way:
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Backend {
//			store := open(t)
//			return storetest.Backend{Store: store, Lapse: ...}
//		})
//	}
package storetest

import (
	"testing"

	"github.com/idemkit/idem"
)

// Backend is one empty store, as a test gets it, with what the test needs to do to it from outside.
type Backend struct {
	// Store is the store under test. It is also tested as a TokenStore or a Ledger where it is one.
	Store idem.Store

	// Another is a second handle on the same records, as another process would have it. Nil: Store serves for both.
	Another idem.Store

	// Lapse ends the lease of the record under the key now, as time would.
	Lapse func(t testing.TB, key idem.Key)

	// Forget drops all records and tokens, as Redis may at any moment. Nil: this store does not forget.
	Forget func(t testing.TB)

	// Lossy is a handle on the same records that applies the next command of each call and loses its reply, as a cut link does, so that
	// the call either repeats the command by itself or returns an error. Nil: nothing can be lost on the way.
	Lossy func(t testing.TB) idem.Store
}
