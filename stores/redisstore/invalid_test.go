package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/redisstore"
)

// What can never be answered is refused before Redis is asked, and writes nothing.
func TestInvalid(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, rdb := open(t)
	valid := request("r-00000001")
	broken := map[string]func(*idem.Request){
		"no type":                 func(q *idem.Request) { q.Key.Type = "" },
		"no id":                   func(q *idem.Request) { q.Key.ID = "" },
		"lease in no unit":        func(q *idem.Request) { q.Lease = 15 },
		"no lease":                func(q *idem.Request) { q.Lease = 0 },
		"retention below a lease": func(q *idem.Request) { q.Retention = q.Lease - 1 },
	}
	calls := map[string]func(idem.Claim) error{
		"claim": func(c idem.Claim) error { _, err := store.Claim(ctx, c.Request); return err },
		"spend": func(c idem.Claim) error { _, err := store.Spend(ctx, "jti", c.Request); return err },
		"extend": func(c idem.Claim) error {
			_, err := store.Extend(ctx, []idem.Claim{{Request: valid, Attempt: 1}, c})
			return err
		},
		"complete": func(c idem.Claim) error { return store.Complete(ctx, c, result) },
		"release":  func(c idem.Claim) error { return store.Release(ctx, c, idem.Failed, "") },
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, idem.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		if keys := allKeys(t, rdb); len(keys) != 0 {
			t.Errorf("written: %v", keys)
		}
	}
	for what, spoil := range broken {
		for name, call := range calls {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				q := valid
				spoil(&q)
				refused(t, call(idem.Claim{Request: q, Attempt: 1}))
			})
		}
	}
	for what, call := range map[string]func() error{
		"restore without a key": func() error {
			return store.Restore(ctx, idem.Claim{Request: idem.Request{Retention: time.Hour}}, result)
		},
		"restore without retention": func() error {
			return store.Restore(ctx, idem.Claim{Request: idem.Request{Key: valid.Key}}, result)
		},
		"spend without a token": func() error { _, err := store.Spend(ctx, "", valid); return err },
		"release as succeeded": func() error {
			return store.Release(ctx, idem.Claim{Request: valid, Attempt: 1}, idem.Succeeded, "")
		},
		"token without id":   func() error { return store.Issue(ctx, []idem.Token{token(valid, "jti"), token(valid, "")}) },
		"token without key":  func() error { return store.Issue(ctx, []idem.Token{{ID: "jti", TTL: time.Hour}}) },
		"token without life": func() error { return store.Issue(ctx, []idem.Token{{ID: "jti", Key: valid.Key}}) },
		"token with a life in no unit": func() error {
			return store.Issue(ctx, []idem.Token{{ID: "jti", Key: valid.Key, TTL: 1800}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			refused(t, call())
		})
	}
}

func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	store := redisstore.New(nil, redisstore.Options{})
	if err := store.Issue(context.Background(), nil); err != nil {
		t.Error(err)
	}
	if lost, err := store.Extend(context.Background(), nil); err != nil || lost != nil {
		t.Error(lost, err)
	}
}

// A success that a ledger vouches for comes with no owner and no lease.
func TestRestoreFromALedgersRecord(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	q := request("r-00000001")
	claimed := claim(t, store, q)
	known := idem.Claim{Request: idem.Request{Key: q.Key, Subject: q.Subject, Retention: time.Hour}, Attempt: 4}
	must(t, store.Restore(context.Background(), known, result))
	if found := lookup(t, store, q.Key); found.State != idem.Succeeded || found.Attempt != 4 || found.Owner != "" {
		t.Errorf("record %+v", found)
	}
	if err := store.Complete(context.Background(), claimed, result); !errors.Is(err, idem.ErrClaimLost) {
		t.Errorf("the claim that was overwritten completes: %v", err)
	}
}

// A token is kept under the request id that it permits, and is worth nothing for another.
func TestTokenHoldsItsRequestID(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx, q := context.Background(), request("r-00000001")
	must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	key := strings.TrimSuffix(recordKey(q.Key), "r") + "t:jti"
	if held := rdb.Get(ctx, key).Val(); held != q.Key.ID {
		t.Errorf("the token holds %q", held)
	}
	must(t, rdb.Set(ctx, key, "another", time.Hour).Err())
	if answer, err := store.Spend(ctx, "jti", q); err != nil || answer.Outcome != idem.Unknown {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if rdb.Exists(ctx, key).Val() != 1 {
		t.Error("another request id spent the token")
	}
}

func TestRecordNamesItsLedger(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx, q := context.Background(), request("r-00000001")
	q.Ledger = "postgres/app.idempotent_record"
	if answer, err := store.Spend(ctx, "never issued", q); err != nil || answer.Outcome != idem.Won {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	if got := rdb.HGet(ctx, recordKey(q.Key), "ledger").Val(); got != q.Ledger {
		t.Errorf("ledger %q", got)
	}
}
