package sqlitestore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/idemkit/idem"
)

// Rows are for people too, and no byte of a caller may mean something else in them.
func TestColumns(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key       idem.Key
		subject   string
		requestID string
		bizKey    string // empty: not looked at
	}{
		"plain":         {idem.Key{Tenant: "shop", Type: "order.create", ID: "4711"}, "alice", "request-1", "4711"},
		"scoped":        {idem.Key{Type: "transfer", Scope: "alice", ID: "4711"}, "alice", "", "~alice~4711"},
		"quotes":        {idem.Key{Type: "t", ID: `'; DROP TABLE orders; --`}, `"`, "'", `'; DROP TABLE orders; --`},
		"NUL":           {idem.Key{Tenant: "\x00", Type: "t\x00", ID: "\x00"}, "\x00", "\x00", ""},
		"broken UTF-8":  {idem.Key{Tenant: "\xff", Type: "\xfe", ID: "\xfd"}, "\xfc", "\xfb", ""},
		"very long":     {idem.Key{Type: "t", ID: strings.Repeat("x", 5000)}, strings.Repeat("y", 5000), strings.Repeat("z", 5000), ""},
		"looks scoped":  {idem.Key{Type: "t", ID: "~alice~4711"}, "", "", ""},
		"wild cards":    {idem.Key{Type: "%", ID: "_"}, "*", "?", "_"},
		"letters":       {idem.Key{Type: "订单", ID: "é"}, "名", "", "é"},
		"numbers alike": {idem.Key{Type: "t", ID: "1e2"}, "007", "1.0", "1e2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			q := request("")
			q.Key, q.Subject, q.RequestID = tt.key, tt.subject, tt.requestID
			claim := f.won(q, 1)
			f.held(t.Context(), claim)
			seen := f.claim(again(q), idem.Busy).Record
			if seen.Key != q.Key || seen.Subject != q.Subject || seen.RequestID != q.RequestID || seen.Owner != q.Owner {
				t.Errorf("seen as %+v", seen)
			}
			if err := f.store.Complete(t.Context(), claim, created()); err != nil {
				t.Fatal(err)
			}
			f.claim(again(q), idem.Done)
			stranger := again(q)
			stranger.Subject = "mallory"
			f.claim(stranger, idem.Foreign)
			if tt.bizKey != "" && f.count(`SELECT count(*) FROM idempotent_record WHERE biz_key = ?`, tt.bizKey) != 1 {
				t.Errorf("no row with the key %q", tt.bizKey)
			}
			f.orders(0) // still there
		})
	}
}

func TestOwnerOfAnyBytes(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	q.Owner = "~\x00\xff"
	claim := f.won(q, 1)
	f.won(q, 1) // recognised
	f.held(t.Context(), claim)
	if err := f.store.Complete(t.Context(), claim, created()); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Complete(t.Context(), claim, created()); err != nil {
		t.Fatalf("repeated: %v", err)
	}
}

func TestNewerFormat(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	q.RequestID = "request-1"
	claim := f.won(q, 1)
	f.exec(`UPDATE idempotent_record SET format = ?, lease_until = 0`, idem.Format+1)
	sibling := request("2")
	sibling.RequestID = q.RequestID
	calls := map[string]func() error{
		"Claim":                   func() error { _, err := f.store.Claim(t.Context(), again(q)); return err },
		"Claim of its request id": func() error { _, err := f.store.Claim(t.Context(), sibling); return err },
		"Lookup":                  func() error { _, err := f.store.Lookup(t.Context(), q); return err },
		"Lookup by request id":    func() error { _, err := f.store.Lookup(t.Context(), sibling); return err },
		"Complete":                func() error { return f.store.Complete(t.Context(), claim, created()) },
		"Release":                 func() error { return f.store.Release(t.Context(), claim, idem.Failed, "") },
		"ClaimTx":                 func() error { _, _, _, err := f.store.ClaimTx(t.Context(), again(q), 0); return err }, // the contract has four
		"Complete of opened work": func() error {
			_, work := f.store.Open(t.Context(), claim, 0)
			return work.Complete(t.Context(), created())
		},
		"and it is as it was, Lookup": func() error { _, err := f.store.Lookup(t.Context(), q); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, idem.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
	if n := f.count(`SELECT count(*) FROM idempotent_record WHERE status = 'processing' AND attempt = 1 AND format = 2 AND owner = ?`, q.Owner); n != 1 {
		t.Error("the record was overwritten")
	}
}

func TestLookupByRequestID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ key, want idem.Key }{
		"plain":  {idem.Key{Tenant: "shop", Type: "refund", ID: "R-1"}, idem.Key{Tenant: "shop", Type: "refund", ID: "R-1"}},
		"scoped": {idem.Key{Tenant: "shop", Type: "refund", Scope: "alice", ID: "R-1"}, idem.Key{Tenant: "shop", Type: "refund", Scope: "alice", ID: "R-1"}},
		"digest": {idem.Key{Tenant: "shop", Type: "refund", ID: "\x00"}, idem.Key{Tenant: "shop", Type: "refund", ID: idem.Column("\x00")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("")
			q.Key, q.RequestID = tt.key, "request-1"
			f.won(q, 1)
			q.Key.ID, q.Key.Scope = "elsewhere", ""
			if record := f.stands(q, idem.Processing, 1); record.Key != tt.want {
				t.Errorf("key %+v, want %+v", record.Key, tt.want)
			}
		})
	}
}

// What is decided needs no writer, and so is answered beside a transaction.
func TestAnswersBesideATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	busy, done, cancelled := request("busy"), request("done"), request("cancelled")
	f.won(busy, 1)
	if err := f.store.Complete(t.Context(), f.won(done, 1), created()); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Release(t.Context(), f.won(cancelled, 1), idem.Cancelled, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	_, _, work := f.work(f.won(request("slow"), 1))
	mismatch := again(done)
	mismatch.Fingerprint = []byte("another")
	f.claim(again(busy), idem.Busy)
	f.claim(again(done), idem.Done)
	f.claim(again(cancelled), idem.Withdrawn)
	f.claim(mismatch, idem.Mismatch)
	f.stands(done, idem.Succeeded, 1)
	f.complete(work)
}

func TestTakeoverBoundary(t *testing.T) {
	t.Parallel()
	f, q := newFixture(t), request("1")
	f.won(q, 1)
	f.clock.advance(lease - 1000) // a microsecond
	f.claim(again(q), idem.Busy)
	f.clock.advance(1000)
	f.won(again(q), 2)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ reason, want string }{
		"plain":        {"card refused", "card refused"},
		"too long":     {strings.Repeat("x", 2000), strings.Repeat("x", 1000)},
		"cut within":   {strings.Repeat("é", 800), strings.Repeat("é", 500)},
		"cut before":   {"x" + strings.Repeat("é", 800), "x" + strings.Repeat("é", 499)},
		"broken":       {"a\xffb", "a\uFFFDb"},
		"NUL":          {"a\x00b", "a\uFFFDb"},
		"a statement?": {"'; --", "'; --"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if err := f.store.Release(t.Context(), f.won(request("1"), 1), idem.Failed, tt.reason); err != nil {
				t.Fatal(err)
			}
			if n := f.count(`SELECT count(*) FROM idempotent_record WHERE error = ?`, tt.want); n != 1 {
				t.Error("the reason is kept otherwise")
			}
			claim := f.won(request("1"), 2)
			if n := f.count(`SELECT count(*) FROM idempotent_record WHERE error = ?`, tt.want); n != 1 {
				t.Error("the next claim forgot the reason")
			}
			if err := f.store.Complete(t.Context(), claim, created()); err != nil {
				t.Fatal(err)
			}
			if n := f.count(`SELECT count(*) FROM idempotent_record WHERE error IS NULL`); n != 1 {
				t.Error("the reason outlives the success")
			}
		})
	}
}
