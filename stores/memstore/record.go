package memstore

import (
	"bytes"
	"slices"
	"strings"

	"github.com/idemkit/idem"
)

// record is one row. Its slices are never written in place, only replaced, so that they may be read after the mutex is let go.
type record struct {
	timer
	key         idem.Key
	state       idem.State
	attempt     int
	owner       string
	subject     string
	requestID   string
	ledger      string
	reason      string
	fingerprint []byte
	result      idem.Result
	changed     instant
	leaseEnd    instant
	keepEnd     instant // of header and body
	end         instant // of the record
}

// intention is what a ledger's unique index on request ids covers.
type intention struct{ tenant, businessType, subject, requestID string }

func intentionOf(q idem.Request) intention {
	return intention{q.Key.Tenant, q.Key.Type, q.Subject, q.RequestID}
}

func (r *record) intention() intention {
	return intention{r.key.Tenant, r.key.Type, r.subject, r.requestID}
}

// view is the record as others see it; its slices are the store's own.
func (r *record) view(now instant) idem.Record {
	seen := idem.Record{
		Key: r.key, State: r.state, Attempt: r.attempt, Owner: r.owner,
		Subject: r.subject, RequestID: r.requestID, Fingerprint: r.fingerprint, Result: r.result, Reason: r.reason,
	}
	if r.state == idem.Processing {
		seen.LeaseLeft = r.leaseEnd - now
	}
	switch {
	case r.keepEnd <= now:
		seen.Result = idem.Result{Status: r.result.Status}
	case r.result.Kept && r.keepEnd < forever:
		seen.Result.Keep = r.keepEnd - now
	}
	return seen
}

// heldBy is the fence. A claim without owner holds nothing: a released record has none either.
func (r *record) heldBy(c idem.Claim) bool {
	return r.state == idem.Processing && c.Owner != "" && r.owner == c.Owner && r.attempt == c.Attempt
}

// detach gives the caller slices of its own.
func detach(seen idem.Record) idem.Record {
	seen.Fingerprint = bytes.Clone(seen.Fingerprint)
	seen.Result.Header = slices.Clone(seen.Result.Header)
	seen.Result.Body = bytes.Clone(seen.Result.Body)
	return seen
}

// own makes strings of the request safe to keep: one that was cut out of a request body would hold all of it in memory.
func own(q idem.Request) idem.Request {
	q.Key = ownKey(q.Key)
	q.Subject = strings.Clone(q.Subject)
	q.RequestID = strings.Clone(q.RequestID)
	q.Owner = strings.Clone(q.Owner)
	q.Ledger = strings.Clone(q.Ledger)
	q.Fingerprint = bytes.Clone(q.Fingerprint)
	return q
}

func ownKey(k idem.Key) idem.Key {
	return idem.Key{
		Tenant: strings.Clone(k.Tenant), Type: strings.Clone(k.Type),
		Scope: strings.Clone(k.Scope), ID: strings.Clone(k.ID),
	}
}

func ownResult(r idem.Result) idem.Result {
	if !r.Kept {
		return idem.Result{Status: r.Status}
	}
	header := make([][2]string, len(r.Header))
	for i, line := range r.Header {
		header[i] = [2]string{strings.Clone(line[0]), strings.Clone(line[1])}
	}
	return idem.Result{Status: r.Status, Header: header, Body: bytes.Clone(r.Body), Kept: true, Keep: r.Keep}
}
