package storetest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

// Leases and retentions are long, so that only Lapse ends them and a slow machine changes no answer.
const (
	longLease     = time.Hour
	longRetention = 24 * time.Hour
)

// fixture is a store in a test, with calls that fail the test where the store returns an error.
type fixture struct {
	*testing.T
	Backend
	other idem.Store
}

func newFixture(t *testing.T, b Backend) fixture {
	f := fixture{T: t, Backend: b, other: b.Another}
	if f.other == nil {
		f.other = b.Store
	}
	return f
}

// request is a fresh call for the operation of that id, by alice.
func request(id string) idem.Request {
	return idem.Request{
		Key:         idem.Key{Tenant: "shop", Type: "order.create", ID: id},
		Subject:     "alice",
		RequestID:   "request-" + id,
		Fingerprint: []byte("payload"),
		Owner:       idem.NewOwner(),
		Lease:       longLease,
		Retention:   longRetention,
	}
}

// again is the same call by another owner, as a duplicate is.
func again(q idem.Request) idem.Request {
	q.Owner = idem.NewOwner()
	return q
}

// corrected is a duplicate with another payload.
func corrected(q idem.Request) idem.Request {
	q = again(q)
	q.Fingerprint = []byte("another payload")
	return q
}

// result is a small success whose header lines and bytes are awkward enough to notice a store that rewrites them.
func result() idem.Result {
	return idem.Result{
		Status: 201,
		Header: [][2]string{{"X-B", "2"}, {"x-a", "1"}, {"X-B", "1"}, {"Empty", ""}},
		Body:   []byte("{\"b\": 1,\n \"a\": \x00\xff}"),
		Kept:   true,
	}
}

func (f fixture) ask(s idem.Store, q idem.Request) idem.Answer {
	f.Helper()
	answer, err := s.Claim(f.Context(), q)
	if err != nil {
		f.Fatalf("Claim: %v", err)
	}
	return answer
}

// outcome claims and fails the test where the outcome is another.
func (f fixture) outcome(want idem.Outcome, q idem.Request) idem.Answer {
	f.Helper()
	answer := f.ask(f.Store, q)
	if answer.Outcome != want {
		f.Fatalf("Claim: outcome %v, want %v; record %+v", answer.Outcome, want, answer.Record)
	}
	return answer
}

// won claims and fails the test unless the claim is won with that attempt.
func (f fixture) won(q idem.Request, attempt int) idem.Claim {
	f.Helper()
	claim := f.outcome(idem.Won, q).Claim
	if claim.Attempt != attempt || claim.Owner != q.Owner || claim.Key != q.Key {
		f.Fatalf("Claim: %+v, want attempt %d of owner %q, key %+v", claim, attempt, q.Owner, q.Key)
	}
	return claim
}

func (f fixture) complete(c idem.Claim, r idem.Result) {
	f.Helper()
	if err := f.Store.Complete(f.Context(), c, r); err != nil {
		f.Fatalf("Complete: %v", err)
	}
}

func (f fixture) release(c idem.Claim, as idem.State) {
	f.Helper()
	if err := f.Store.Release(f.Context(), c, as, "reason"); err != nil {
		f.Fatalf("Release as %s: %v", as, err)
	}
}

// lapsed claims, and ends the lease as the claimer's death would.
func (f fixture) lapsed(q idem.Request) idem.Claim {
	f.Helper()
	claim := f.won(q, 1)
	f.Lapse(f.T, q.Key)
	return claim
}

// lookup is the record under the key as the other handle sees it.
func (f fixture) lookup(q idem.Request) idem.Record {
	f.Helper()
	record, err := f.other.Lookup(f.Context(), q)
	if err != nil {
		f.Fatalf("Lookup: %v", err)
	}
	return record
}

// stands fails the test unless the record is in that state at that attempt.
func (f fixture) stands(q idem.Request, state idem.State, attempt int) idem.Record {
	f.Helper()
	record := f.lookup(q)
	if record.State != state || record.Attempt != attempt {
		f.Fatalf("record %s at attempt %d, want %s at %d", record.State, record.Attempt, state, attempt)
	}
	return record
}

// absent fails the test unless there is no record.
func (f fixture) absent(q idem.Request) {
	f.Helper()
	if record, err := f.other.Lookup(f.Context(), q); !errors.Is(err, idem.ErrNotFound) {
		f.Fatalf("Lookup: %+v, %v; want ErrNotFound", record, err)
	}
}

// lost fails the test unless extending, completing and releasing the claim are refused.
func (f fixture) lost(c idem.Claim) {
	f.Helper()
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{c}); err != nil || !slices.Equal(lost, []int{0}) {
		f.Errorf("Extend: lost %v, %v; want [0]", lost, err)
	}
	if err := f.Store.Complete(f.Context(), c, result()); !errors.Is(err, idem.ErrClaimLost) {
		f.Errorf("Complete: %v, want ErrClaimLost", err)
	}
	if err := f.Store.Release(f.Context(), c, idem.Failed, ""); !errors.Is(err, idem.ErrClaimLost) {
		f.Errorf("Release: %v, want ErrClaimLost", err)
	}
}

// replays fails the test unless a duplicate gets exactly this result.
func (f fixture) replays(q idem.Request, want idem.Result) {
	f.Helper()
	answer := f.outcome(idem.Done, q)
	if got := answer.Record.Result; !sameResult(got, want) {
		f.Fatalf("result %+v, want %+v", got, want)
	}
}

// sameResult compares what a duplicate may see: nil and empty are one, and Keep is a wish of Complete.
func sameResult(a, b idem.Result) bool {
	return a.Status == b.Status && a.Kept == b.Kept && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}

// eventually polls until done is true, for what a store does by its own clock.
func (f fixture) eventually(what string, done func() bool) {
	f.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-poll.C:
		case <-deadline:
			f.Fatalf("not within 10 s: %s", what)
		}
	}
}
