package idem

import (
	"context"
	"errors"
)

// Reconcile compares the entrance's records of this ledger with it. The ledger wins: a success that it does not know is removed, one that the entrance does
// not know is written there. What runs, or waits to be recovered, is left alone, and so is what a newer version wrote.
func (j Janitor) Reconcile(ctx context.Context) (repaired, removed int, err error) {
	if j.Store == nil {
		return 0, 0, nil
	}
	name := j.Ledger.Name()
	err = j.Store.Scan(ctx, func(entrance Record, ledger string) error {
		if ledger != name || entrance.State == Cancelled {
			return nil
		}
		fixed, dropped, err := j.compare(ctx, entrance)
		switch {
		case errors.Is(err, ErrFormat):
			return nil
		case fixed:
			repaired++
		case dropped:
			removed++
		}
		return err
	})
	return repaired, removed, err
}

func (j Janitor) compare(ctx context.Context, entrance Record) (repaired, removed bool, err error) {
	q := Request{Key: entrance.Key, Subject: entrance.Subject, RequestID: entrance.RequestID, Fingerprint: entrance.Fingerprint, Ledger: j.Ledger.Name()}
	record, err := j.Ledger.Lookup(ctx, q)
	known := err == nil && record.State == Succeeded
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, false, err
	}
	switch {
	case known && entrance.State != Succeeded:
		q.Owner, q.Lease, q.Retention, q.Fingerprint = NewOwner(), DefaultLease, DefaultResultRetention, record.Fingerprint
		result := record.Result
		if len(result.Body) > largestEntranceBody {
			result.Header, result.Body, result.Kept = nil, nil, false
		}
		err := j.Store.Restore(ctx, Claim{Request: q, Attempt: record.Attempt}, result)
		return err == nil, false, err
	case !known && entrance.State == Succeeded:
		dropped, err := j.Store.Drop(ctx, entrance)
		return false, dropped, err
	}
	return false, false, nil
}
