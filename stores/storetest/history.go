package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// historyChecks drive the store and a memstore through the same random histories: every answer and every record must be equal.
// Leases are long and the model's clock stands still, so that nothing but Lapse ends one.
func historyChecks() []check {
	return []check{{"history/every answer is the model's", func(f fixture) {
		rapid.Check(f.T, func(t *rapid.T) { newHistory(t, f).run() })
	}}}
}

// history is one run of random calls. It has a tenant of its own, so that histories can share a store.
type history struct {
	*rapid.T
	f      fixture
	store  idem.Store
	model  *memstore.Store
	tenant string
	claims []idem.Claim
	seen   map[idem.Key]idem.Record
}

func newHistory(t *rapid.T, f fixture) *history {
	standing := time.Unix(0, 0)
	model := memstore.New(memstore.Options{Forgetful: f.Forget != nil, Now: func() time.Time { return standing }})
	return &history{T: t, f: f, store: f.Store, model: model, tenant: idem.NewOwner(), seen: map[idem.Key]idem.Record{}}
}

func (h *history) run() {
	actions := map[string]func(*rapid.T){
		"claim": h.claim, "claim again": h.claimAgain, "extend": h.extend, "complete": h.complete,
		"release": h.release, "lapse": h.lapse, "lookup": h.lookup,
	}
	if _, ok := h.store.(idem.TokenStore); ok {
		actions["issue"], actions["spend"], actions["restore"] = h.issue, h.spend, h.restore
	}
	if _, ok := h.store.(idem.Ledger); ok {
		actions["claimtx"], actions["open"] = h.claimTx, h.open
	}
	if h.f.Forget != nil {
		actions["forget"] = h.forget
	}
	h.Repeat(actions)
}

// through draws the handle by which the next call is made.
func (h *history) through(t *rapid.T) idem.Store {
	if rapid.Bool().Draw(t, "by the other handle") {
		return h.f.other
	}
	return h.store
}

func (h *history) key(t *rapid.T) idem.Key {
	return idem.Key{Tenant: h.tenant, Type: "order.create", ID: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "key")}
}

func (h *history) request(t *rapid.T) idem.Request {
	q := idem.Request{
		Key:         h.key(t),
		Subject:     rapid.SampledFrom([]string{"alice", "alice", "alice", "bob", ""}).Draw(t, "subject"),
		Fingerprint: rapid.SampledFrom([][]byte{nil, []byte("x"), []byte("x"), []byte("y")}).Draw(t, "fingerprint"),
		Shared:      rapid.Bool().Draw(t, "shared"),
		Owner:       rapid.SampledFrom([]string{"o1", "o2", "o3", "o4"}).Draw(t, "owner"),
		Ledger:      rapid.SampledFrom([]string{"", "the ledger"}).Draw(t, "ledger"),
		Lease:       longLease,
		Retention:   longRetention,
	}
	q.RequestID = "request-" + q.Key.ID
	if _, ok := h.store.(idem.Ledger); ok {
		q.RequestID = rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(t, "request id")
	}
	return q
}

// held draws a claim that was won once, now and then with a wrong owner or attempt.
func (h *history) held(t *rapid.T) idem.Claim {
	if len(h.claims) == 0 {
		t.Skip("no claim was won yet")
	}
	recent := h.claims[max(0, len(h.claims)-6):]
	c := recent[rapid.IntRange(0, len(recent)-1).Draw(t, "claim")]
	switch rapid.IntRange(0, 9).Draw(t, "forgery") {
	case 0:
		c.Attempt++
	case 1:
		c.Owner += "'"
	}
	return c
}

// answer compares what both say to a request for a claim, and remembers a claim that was won.
func (h *history) answer(got, want idem.Answer, err, modelErr error) {
	h.Helper()
	h.sameError(err, modelErr)
	switch {
	case got.Outcome != want.Outcome:
		h.Fatalf("outcome %v, want %v; record %+v, want %+v", got.Outcome, want.Outcome, got.Record, want.Record)
	case want.Outcome != idem.Won:
		h.sameRecord(got.Record, want.Record)
	case got.Claim.Attempt != want.Claim.Attempt || got.Claim.Owner != want.Claim.Owner || got.Claim.Key != want.Claim.Key:
		h.Fatalf("claim %+v, want %+v", got.Claim, want.Claim)
	default:
		h.claims = append(h.claims, got.Claim)
	}
}

func (h *history) sameError(got, want error) {
	h.Helper()
	for _, class := range []error{idem.ErrInvalid, idem.ErrNotFound, idem.ErrFormat, idem.ErrClaimLost} {
		if errors.Is(got, class) != errors.Is(want, class) {
			h.Fatalf("error %v, want %v", got, want)
		}
	}
	if (got == nil) != (want == nil) {
		h.Fatalf("error %v, want %v", got, want)
	}
}

func (h *history) sameRecord(got, want idem.Record) {
	h.Helper()
	if want.State == idem.Cancelled {
		got.Fingerprint, want.Fingerprint = nil, nil
	}
	if _, ok := h.store.(idem.Ledger); !ok {
		got.Reason, want.Reason = "", ""
	}
	same := got.Reason == want.Reason && got.Key == want.Key && got.State == want.State && got.Attempt == want.Attempt && got.Owner == want.Owner &&
		got.Subject == want.Subject && got.RequestID == want.RequestID && got.Live() == want.Live() &&
		bytes.Equal(got.Fingerprint, want.Fingerprint) && sameResult(got.Result, want.Result)
	if !same {
		h.Fatalf("record\n%s, want\n%s", describe(got), describe(want))
	}
}

func describe(r idem.Record) string {
	return fmt.Sprintf("%q %s attempt %d owner %q subject %q request id %q reason %q fingerprint %q result %d %q %q kept %t live %t",
		r.Key, r.State, r.Attempt, r.Owner, r.Subject, r.RequestID, r.Reason, r.Fingerprint, r.Result.Status, r.Result.Header, r.Result.Body, r.Result.Kept, r.Live())
}

// observe compares the record under the key after a call, and that the way to it was legal.
func (h *history) observe(key idem.Key) {
	h.Helper()
	before := h.seen[key]
	got := h.compare(key)
	switch {
	case got.State == before.State && got.Attempt == before.Attempt:
	case !before.State.Next(got.State):
		h.Fatalf("%q at attempt %d became %q at %d", before.State, before.Attempt, got.State, got.Attempt)
	case got.Attempt != before.Attempt && got.Attempt != before.Attempt+1:
		h.Fatalf("attempt %d became %d", before.Attempt, got.Attempt)
	}
}

// rewritten is observe after a call that a store may answer by writing a vanished record again, at any attempt.
func (h *history) rewritten(key idem.Key) {
	h.Helper()
	if h.f.Forget != nil && h.seen[key].State == "" {
		h.compare(key)
		return
	}
	h.observe(key)
}

// compare looks at the record under the key by both, and remembers it.
func (h *history) compare(key idem.Key) idem.Record {
	h.Helper()
	q := idem.Request{Key: key}
	got, err := h.f.other.Lookup(h.f.Context(), q)
	want, modelErr := h.model.Lookup(h.f.Context(), q)
	h.sameError(err, modelErr)
	h.sameRecord(got, want)
	h.seen[key] = got
	return got
}
