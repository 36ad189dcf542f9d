package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/idemkit/idem"
)

// row is one line of the table.
type row struct {
	bizKey        string
	format        int
	state         idem.State
	attempt       int
	owner         sql.NullString
	subject       string
	requestID     sql.NullString
	fingerprint   []byte
	reason        sql.NullString
	resultStatus  sql.NullInt64
	resultHeaders sql.NullString
	resultBody    []byte
	resultUntil   sql.NullInt64
	leaseUntil    sql.NullInt64
}

// found are the rows that decide about a request; nil where there is none.
type found struct{ byKey, byRequestID *row }

// find reads in the transaction or, where that is nil, beside the writer.
func (s *Store) find(ctx context.Context, tx *transaction, q idem.Request) (found, error) {
	key := q.Key.Column()
	rows, err := s.query(ctx, tx, s.sql.find, intention(q)...)
	if err != nil {
		return found{}, unread(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has what went wrong
	var f found
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return found{}, unread(ctx, err)
		}
		if r.bizKey == key {
			f.byKey = r
		} else {
			f.byRequestID = r
		}
	}
	if err := rows.Err(); err != nil {
		return found{}, unread(ctx, err)
	}
	return f, nil
}

// unmigrated says what to do where the table is missing, for which SQLite has no code of its own.
func unmigrated(err error) error {
	if primaryCode(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table: ") {
		return fmt.Errorf("%w; run sqlitestore.Migrate", err)
	}
	return err
}

func unread(ctx context.Context, err error) error {
	return fmt.Errorf("sqlitestore: reading the record: %w", unmigrated(ended(ctx, err)))
}

func scan(rows *sql.Rows) (*row, error) {
	r := new(row)
	return r, rows.Scan(r.fields()...)
}

// fields are where recordColumns are scanned to.
func (r *row) fields() []any {
	return []any{&r.bizKey, &r.format, &r.state, &r.attempt, &r.owner, &r.subject, &r.requestID, &r.fingerprint, &r.reason,
		&r.resultStatus, &r.resultHeaders, &r.resultBody, &r.resultUntil, &r.leaseUntil}
}

// heldBy reports whether the row, whatever its state, bears the claim's fence.
func (r *row) heldBy(c idem.Claim) bool {
	return r.owner.Valid && r.owner.String == idem.Column(c.Owner) && r.attempt == c.Attempt
}

// fence names the row's claim; tenant and type are those that it was asked for by.
func (r *row) fence(asked idem.Key) fence {
	return fence{
		tenant: idem.Column(asked.Tenant), bizType: idem.Column(asked.Type), bizKey: r.bizKey,
		owner: r.owner.String, attempt: r.attempt,
	}
}

// record is the row as the request's caller knows it. ErrFormat when a newer version wrote it.
func (s *Store) record(r *row, q idem.Request) (idem.Record, error) {
	if r.format > idem.Format {
		return idem.Record{}, fmt.Errorf("%w: %d in the ledger, %d known", idem.ErrFormat, r.format, idem.Format)
	}
	seen := idem.Record{
		Key: keyOf(r.bizKey, q.Key), State: r.state, Attempt: r.attempt,
		Owner:       given(r.owner.String, q.Owner),
		Subject:     given(r.subject, q.Subject),
		RequestID:   given(r.requestID.String, q.RequestID),
		Fingerprint: r.fingerprint,
		Reason:      r.reason.String,
	}
	now := s.now()
	switch r.state {
	case idem.Processing:
		seen.LeaseLeft = time.Duration(r.leaseUntil.Int64-now.UnixMicro()) * time.Microsecond
		if seen.LeaseLeft <= 0 && r.owner.Valid && s.gate.keeps(r.fence(q.Key)) {
			seen.LeaseLeft = idem.MinLease
		}
	case idem.Succeeded:
		result, err := r.result(now)
		if err != nil {
			return idem.Record{}, err
		}
		seen.Result = result
	case idem.Failed, idem.Cancelled: // neither lease nor result
	}
	return seen, nil
}

func (r *row) result(now time.Time) (idem.Result, error) {
	result := idem.Result{Status: int(r.resultStatus.Int64)}
	if !r.resultHeaders.Valid || (r.resultUntil.Valid && r.resultUntil.Int64 <= now.UnixMicro()) {
		return result, nil
	}
	header, err := decodeHeader(r.resultHeaders.String)
	if err != nil {
		return result, fmt.Errorf("sqlitestore: the kept header of %q: %w", r.bizKey, err)
	}
	result.Header, result.Body, result.Kept = header, r.resultBody, true
	if r.resultUntil.Valid {
		result.Keep = time.Duration(r.resultUntil.Int64-now.UnixMicro()) * time.Microsecond
	}
	return result, nil
}
