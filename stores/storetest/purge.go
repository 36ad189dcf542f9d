package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

func purgeChecks() []check {
	return []check{
		{"purge/finished records past their retention, oldest first", purgeOldest},
		{"purge/never what is not finished or not over", purgeSpares},
		{"purge/frees the key", purgeFrees},
		{"purge/a later call does not shorten the retention", purgeKeeps},
		{"purge/a cancelled context", purgeCancelled},
	}
}

// aged is a record that ended in that state and whose retention ends soon.
func (f fixture) aged(id string, as idem.State) idem.Request {
	f.Helper()
	q := request(id)
	q.Lease, q.Retention = brief, brief
	claim := f.won(q, 1)
	if as == idem.Succeeded {
		f.complete(claim, result())
	} else {
		f.release(claim, as)
	}
	return q
}

func (f fixture) gone(q idem.Request) bool {
	_, err := f.Store.Lookup(f.Context(), q)
	return errors.Is(err, idem.ErrNotFound)
}

func (f fixture) purge(limit int, abandoned ...string) int {
	f.Helper()
	n, err := f.ledger().Purge(f.Context(), abandoned, limit)
	if err != nil || n < 0 || n > limit {
		f.Fatalf("Purge(%d): %d, %v", limit, n, err)
	}
	return n
}

func purgeOldest(f fixture) {
	states := []idem.State{idem.Succeeded, idem.Failed, idem.Cancelled, idem.Succeeded, idem.Failed}
	var aged []idem.Request
	for i, as := range states {
		aged = append(aged, f.aged(fmt.Sprint(i), as))
	}
	purged := 0
	f.eventually("all are purged", func() bool {
		purged += f.purge(2)
		return f.goneInOrder(aged) == len(aged)
	})
	if _, expires := f.Store.(idem.TokenStore); purged > len(aged) || (purged < len(aged) && !expires) {
		f.Errorf("purged %d records, want %d", purged, len(aged))
	}
	if n := f.purge(2); n != 0 {
		f.Errorf("purged %d of nothing", n)
	}
}

// goneInOrder counts the records that are gone. It asks for the youngest first, so that one that ends meanwhile is not out of order.
func (f fixture) goneInOrder(aged []idem.Request) int {
	f.Helper()
	count := 0
	for i := len(aged) - 1; i >= 0; i-- {
		switch gone := f.gone(aged[i]); {
		case gone:
			count++
		case count > 0:
			f.Errorf("record %d outlived a younger one", i)
		}
	}
	return count
}

func purgeSpares(f fixture) {
	finished, running, unknown := request("finished"), request("running"), request("unknown")
	f.complete(f.won(finished, 1), result())
	f.won(running, 1)
	f.release(f.won(unknown, 1), idem.Processing)
	failed := request("failed")
	f.release(f.won(failed, 1), idem.Failed)
	_, expires := f.Store.(idem.TokenStore)
	stuck := request("stuck")
	stuck.Lease, stuck.Retention = time.Millisecond, time.Millisecond
	if !expires {
		f.won(stuck, 1)
	}
	control := f.aged("control", idem.Succeeded)
	f.eventually("the control is purged", func() bool { f.purge(100); return f.gone(control) })
	f.stands(running, idem.Processing, 1)
	f.stands(unknown, idem.Processing, 1)
	f.stands(failed, idem.Failed, 1)
	f.replays(again(finished), result())
	if !expires {
		f.stands(stuck, idem.Processing, 1)
	}
}

func purgeFrees(f fixture) {
	q := f.aged("1", idem.Succeeded)
	f.eventually("it is purged", func() bool { f.purge(10); return f.gone(q) })
	f.won(corrected(q), 1)
	f.outcome(idem.Mismatch, moved(corrected(q), "2"))
}

// purgeKeeps: who looks after a record, a janitor say, may know of another retention than who made it.
func purgeKeeps(f fixture) {
	done, failed, lapsed := request("done"), request("failed"), ofKind("lapsed", kind)
	shorter := func(q idem.Request) idem.Request {
		q = again(q)
		q.Lease, q.Retention = brief, brief
		return q
	}
	for _, q := range []idem.Request{done, failed, lapsed} {
		f.lapsed(q)
	}
	f.complete(f.won(shorter(done), 2), result())
	f.release(f.won(shorter(failed), 2), idem.Failed)
	claim := f.won(shorter(lapsed), 2)
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
		f.Fatalf("Extend: lost %v, %v", lost, err)
	}
	f.Lapse(f.T, lapsed.Key)
	control := f.aged("control", idem.Succeeded)
	f.eventually("the control is purged", func() bool { f.purge(100, kind); return f.gone(control) })
	f.replays(again(done), result())
	f.stands(failed, idem.Failed, 2)
	f.stands(lapsed, idem.Processing, 2)
}

func purgeCancelled(f fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if n, err := f.ledger().Purge(ctx, nil, 10); n != 0 || !errors.Is(err, context.Canceled) {
		f.Errorf("Purge with a cancelled context: %d, %v", n, err)
	}
}
