package pgstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// view is what the store found for a request.
type view struct {
	free        bool // no transaction works on the key or the request id
	byKey       *idem.Record
	byRequestID *idem.Record // under another key
}

// row is a record as its columns hold it.
type row struct {
	column, state, owner, subject, requestID string
	attempt, status, format                  int
	fingerprint, body                        []byte
	reason                                   string
	headers                                  *string
	keepLeft, leaseLeft                      int64 // microseconds
}

// fields are where recordColumns are scanned to.
func (r *row) fields() []any {
	return []any{&r.column, &r.state, &r.attempt, &r.owner, &r.subject, &r.requestID, &r.fingerprint, &r.reason,
		&r.status, &r.headers, &r.body, &r.keepLeft, &r.leaseLeft, &r.format}
}

// reading collects the rows of find and look.
func (v *view) reading(q idem.Request) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var r row
			if err := rows.Scan(append([]any{&v.free}, r.fields()...)...); err != nil {
				return err
			}
			if err := v.add(q, r); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

func (v *view) add(q idem.Request, r row) error {
	if r.column == "" {
		return nil
	}
	record, err := r.record(q)
	if err != nil {
		return err
	}
	if r.column == q.Key.Column() {
		v.byKey = record
	} else {
		v.byRequestID = record
	}
	return nil
}

func (r row) record(q idem.Request) (*idem.Record, error) {
	if r.format > idem.Format {
		return nil, fmt.Errorf("%w: %d, of %s %q", idem.ErrFormat, r.format, q.Key.Type, r.column)
	}
	record := &idem.Record{
		Key: keyOf(q.Key, r.column), State: idem.State(r.state), Attempt: r.attempt, Owner: given(q.Owner, r.owner),
		Subject: given(q.Subject, r.subject), RequestID: given(q.RequestID, r.requestID), Fingerprint: r.fingerprint, Reason: r.reason,
	}
	switch record.State {
	case idem.Processing:
		record.LeaseLeft = time.Duration(r.leaseLeft) * time.Microsecond
	case idem.Succeeded:
		result, err := r.result()
		if err != nil {
			return nil, err
		}
		record.Result = result
	case idem.Failed, idem.Cancelled: // neither lease nor result
	}
	return record, nil
}

func (r row) result() (idem.Result, error) {
	if r.headers == nil {
		return idem.Result{Status: r.status}, nil
	}
	header, err := decodeHeader(*r.headers)
	if err != nil {
		return idem.Result{}, err
	}
	keep := time.Duration(r.keepLeft) * time.Microsecond
	return idem.Result{Status: r.status, Header: header, Body: r.body, Kept: true, Keep: keep}, nil
}

// given is the caller's own string where the column stands for it; equal columns mean equal strings.
func given(own, column string) string {
	if idem.Column(own) == column {
		return own
	}
	return column
}

// keyOf is the caller's key where the column stands for it, otherwise the column taken apart again.
func keyOf(own idem.Key, column string) idem.Key {
	if own.Column() == column {
		return own
	}
	return idem.KeyOf(own.Tenant, own.Type, column)
}

// columns are the first three parameters of every statement about a key.
func columns(k idem.Key) (tenant, businessType, key string) {
	return idem.Column(k.Tenant), idem.Column(k.Type), k.Column()
}

// requestColumn is null where there is no request id, which the unique index leaves out.
func requestColumn(requestID string) *string {
	if requestID == "" {
		return nil
	}
	column := idem.Column(requestID)
	return &column
}

// keyLock is the advisory lock of the key in this table, by its columns: a key that was read back from them has the same. Two keys with equal locks would only
// make one another wait.
func (s *Store) keyLock(k idem.Key) int64 {
	tenant, businessType, key := columns(k)
	return lockNumber("key", s.names.quoted(), tenant, businessType, key)
}

// requestLock is the advisory lock of the request id, nil where there is none.
func (s *Store) requestLock(q idem.Request) *int64 {
	if q.RequestID == "" {
		return nil
	}
	number := lockNumber("request", s.names.quoted(), idem.Column(q.Key.Tenant), idem.Column(q.Key.Type), idem.Column(q.Subject), idem.Column(q.RequestID))
	return &number
}

func lockNumber(parts ...string) int64 {
	sum := sha256.Sum256([]byte(idem.Digest(parts...)))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
