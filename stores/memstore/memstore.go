// Package memstore keeps records and tokens in the memory of one process. It is the embedded default where there is no Redis, the store of users'
// unit tests, and the model that property tests compare the other stores with: what it answers is what the contract means.
//
// One type serves as entrance store and as ledger. As a ledger it has no database for the work to write to: a transaction of
// ClaimTx holds the record alone.
//
// Nothing runs in the background and nothing has to be closed. Every call first drops a bounded number of records and tokens whose time is over, and
// the tables are rebuilt as they empty, since Go's maps never give memory back. One mutex guards everything: a call holds it for
// about a microsecond, and bytes are copied outside of it.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/idemkit/idem"
)

// Options are the settings of a Store. The zero value is ready for use.
type Options struct {
	// Now is the clock. Nil: time.Now, whose monotonic reading makes leases immune to changes of the wall clock.
	Now func() time.Time

	// Forgetful makes Extend and Complete write a vanished record again, as the contract asks of a store that may forget.
	// False: a vanished record is a lost claim, as in a ledger. For Config.Store of package web beside a ledger choose true, for Config.Ledger false;
	// as a Store alone, which then decides, false.
	Forgetful bool

	// Name is what the store calls itself as a ledger. Empty: "memory".
	Name string
}

// Store is an idem.TokenStore and an idem.Ledger in memory. Make one with New. It is safe for concurrent use; the zero value is not usable.
type Store struct {
	now       func() time.Time
	epoch     time.Time
	forgetful bool
	name      string

	mu        sync.Mutex
	records   table[idem.Key, *record]
	byRequest table[intention, *record]
	tokens    table[tokenKey, *token]
	timers    timers

	open            map[idem.Key]*transaction
	openByIntention map[intention]*transaction

	lastFence int64 // the ledger's: what the entrance forgets leaves it as it is
}

var (
	_ idem.TokenStore = (*Store)(nil)
	_ idem.Ledger     = (*Store)(nil)
)

// New returns an empty store.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Name == "" {
		options.Name = "memory"
	}
	s := &Store{now: options.Now, epoch: options.Now(), forgetful: options.Forgetful, name: options.Name}
	s.reset()
	return s
}

func (s *Store) reset() {
	s.records = newTable[idem.Key, *record]()
	s.byRequest = newTable[intention, *record]()
	s.tokens = newTable[tokenKey, *token]()
	s.timers = nil
	s.open = map[idem.Key]*transaction{}
	s.openByIntention = map[intention]*transaction{}
}

// Name is the name given in Options.
func (s *Store) Name() string { return s.name }

// Ping returns the context's error, if any: memory is always there.
func (s *Store) Ping(ctx context.Context) error { return ctx.Err() }

// Forget drops all records and tokens, as a restarted Redis does; open transactions count as rolled back. The sequence of Fence goes on. It is for
// tests of what happens then.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

// Lapse ends the lease of the record under the key now, as the death of its claimer and time would. It is for tests; a key without a
// record, or with a finished one, is left as it is.
func (s *Store) Lapse(key idem.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	if r := s.find(key, now); r != nil && r.state == idem.Processing {
		r.leaseEnd = min(r.leaseEnd, now)
	}
}

// instant is a point in time as the distance from the store's making. It keeps the monotonic reading in a third of the size.
type instant = time.Duration

// after is the instant that is d later, the last one there is where that is none.
func after(now instant, d time.Duration) instant {
	if sum := now + d; d < 0 || sum >= now {
		return sum
	}
	return forever
}

// tick is the time of a call, which does its share of the cleaning.
func (s *Store) tick() instant {
	now := s.now().Sub(s.epoch)
	s.sweep(now, sweepPerCall)
	return now
}
