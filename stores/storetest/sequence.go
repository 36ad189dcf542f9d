package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/idemkit/idem"
)

// sequenceChecks are about the numbers of Fence, which a resource compares to refuse a lock's late holder.
func sequenceChecks() []check {
	return []check{
		{"sequence/grows, whoever draws", sequenceGrows},
		{"sequence/race: every number once, and later ones higher", sequenceRace},
		{"sequence/survives a purge and what the store forgets", sequenceSurvives},
		{"sequence/a cancelled context", sequenceCancelled},
	}
}

// draw is the next number by that handle.
func (f fixture) draw(s idem.Store) int64 {
	f.Helper()
	number, err := s.(idem.Ledger).Fence(f.Context())
	if err != nil || number < 1 {
		f.Fatalf("Fence: %d, %v", number, err)
	}
	return number
}

func sequenceGrows(f fixture) {
	var last int64
	for i := range 20 {
		s := f.Store
		if i%3 == 0 {
			s = f.other
		}
		number := f.draw(s)
		if number <= last {
			f.Fatalf("%d came after %d", number, last)
		}
		last = number
	}
}

func sequenceRace(f fixture) {
	const callers, draws = 16, 8
	before := f.draw(f.other)
	drawn := make([][]int64, callers)
	var running sync.WaitGroup
	for i := range callers {
		s := []idem.Store{f.Store, f.other}[i%2].(idem.Ledger)
		running.Go(func() {
			for range draws {
				number, err := s.Fence(f.Context())
				if err != nil {
					f.Errorf("Fence: %v", err)
				}
				drawn[i] = append(drawn[i], number)
			}
		})
	}
	running.Wait()
	var all []int64
	for i, own := range drawn {
		if !slices.IsSorted(own) {
			f.Errorf("caller %d drew %d", i, own)
		}
		all = append(all, own...)
	}
	slices.Sort(all)
	if distinct := slices.Compact(slices.Clone(all)); len(distinct) != callers*draws {
		f.Errorf("%d numbers for %d calls", len(distinct), callers*draws)
	}
	if after := f.draw(f.Store); all[0] <= before || after <= all[len(all)-1] {
		f.Errorf("%d, then %d to %d, then %d", before, all[0], all[len(all)-1], after)
	}
}

func sequenceSurvives(f fixture) {
	last := f.draw(f.Store)
	control := f.aged("control", idem.Succeeded)
	f.eventually("the control is purged", func() bool { f.purge(100, kind); return f.gone(control) })
	if number := f.draw(f.Store); number <= last {
		f.Errorf("%d came after %d and a purge", number, last)
	} else {
		last = number
	}
	if f.Forget == nil {
		return
	}
	f.Forget(f.T)
	if number := f.draw(f.Store); number <= last {
		f.Errorf("%d came after %d and a flush", number, last)
	}
}

func sequenceCancelled(f fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if number, err := f.ledger().Fence(ctx); !errors.Is(err, context.Canceled) || number != 0 {
		f.Errorf("Fence with a cancelled context: %d, %v", number, err)
	}
}
