package memstore_test

import (
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]memstore.Options{
		"as a ledger":                {},
		"as a store that may forget": {Forgetful: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(testing.TB) storetest.Backend { return backend(options) })
		})
	}
}

// TestContractOfParts runs the suite on stores that offer less: it must not ask for more than a store has.
func TestContractOfParts(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(*memstore.Store) idem.Store{
		"records alone":      func(s *memstore.Store) idem.Store { return struct{ idem.Store }{s} },
		"records and tokens": func(s *memstore.Store) idem.Store { return struct{ idem.TokenStore }{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(testing.TB) storetest.Backend {
				b := backend(memstore.Options{})
				b.Store, b.Lossy = part(b.Store.(*memstore.Store)), nil
				return b
			})
		})
	}
}

func backend(options memstore.Options) storetest.Backend {
	s := memstore.New(options)
	b := storetest.Backend{
		Store: s,
		Lapse: func(_ testing.TB, key idem.Key) { s.Lapse(key) },
		Lossy: func(testing.TB) idem.Store { return lossy{s} },
	}
	if options.Forgetful {
		b.Forget = func(testing.TB) { s.Forget() }
	}
	return b
}
