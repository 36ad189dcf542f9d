package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// seen is what a scan visited, by key, and how many visits that took.
type seen struct {
	records map[idem.Key]idem.Record
	ledgers map[idem.Key]string
	visits  int
}

func scan(t *testing.T, store *redisstore.Store) seen {
	t.Helper()
	found := seen{map[idem.Key]idem.Record{}, map[idem.Key]string{}, 0}
	must(t, store.Scan(context.Background(), func(r idem.Record, ledger string) error {
		found.records[r.Key], found.ledgers[r.Key] = r, ledger
		found.visits++
		return nil
	}))
	return found
}

// A scan gives every state as Lookup does, save header and body, under a key of any bytes.
func TestScanGivesWhatLookupGives(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kept := result
	kept.Keep = time.Minute
	end := map[string]func(*testing.T, *redisstore.Store, idem.Claim){
		"processing": func(*testing.T, *redisstore.Store, idem.Claim) {},
		"succeeded": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			must(t, store.Complete(ctx, c, result))
		},
		"kept beside": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			must(t, store.Complete(ctx, c, kept))
		},
		"failed": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			must(t, store.Release(ctx, c, idem.Failed, ""))
		},
		"cancelled": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			must(t, store.Release(ctx, c, idem.Cancelled, ""))
		},
		"unknown": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			must(t, store.Release(ctx, c, idem.Processing, ""))
		},
		"restored": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			c.Attempt = 1 << 40
			must(t, store.Restore(ctx, c, result))
		},
		"renewed after it was forgotten": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			c.Key.ID += " forgotten"
			lost, err := store.Extend(ctx, []idem.Claim{c})
			if len(lost) != 0 || err != nil {
				t.Fatalf("lost %v, %v", lost, err)
			}
		},
		"completed after it was forgotten": func(t *testing.T, store *redisstore.Store, c idem.Claim) {
			t.Helper()
			c.Key.ID += " forgotten"
			must(t, store.Complete(ctx, c, result))
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := open(t)
			for _, q := range odd() {
				end(t, store, claim(t, store, q))
			}
			found := scan(t, store)
			if found.visits < len(odd()) || found.visits != len(found.records) {
				t.Errorf("%d visits of %d records", found.visits, len(found.records))
			}
			for key, got := range found.records {
				want := lookup(t, store, key)
				if (want.LeaseLeft > 0) != (got.LeaseLeft > 0) || want.LeaseLeft > got.LeaseLeft {
					t.Errorf("lease left %v, looked up afterwards %v", got.LeaseLeft, want.LeaseLeft)
				}
				got.LeaseLeft, want.LeaseLeft = 0, 0
				want.Result = idem.Result{Status: want.Result.Status}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("visited  %+v\nlooked up %+v", got, want)
				}
				if found.ledgers[key] != "pg\x00{ledger}" {
					t.Errorf("ledger %q", found.ledgers[key])
				}
			}
		})
	}
}

// odd are requests whose keys hold any bytes, and parts that are, or look like, the subject and the request id.
func odd() []idem.Request {
	keys := []idem.Key{
		{Type: "t", ID: "i"},
		{Tenant: "acme", Type: "order.create", Scope: "alice", ID: "r-1"},
		{Tenant: "alice", Type: "r-2", Scope: "", ID: "alice"},
		{Tenant: "\x00", Type: "{}\x00\xff", Scope: "}:r", ID: "\r\n"},
		{Type: "long", Scope: strings.Repeat("s", 127), ID: strings.Repeat("\xfe", 70_000)},
	}
	var requests []idem.Request
	for _, key := range keys {
		q := request(key.ID)
		q.Key, q.Ledger = key, "pg\x00{ledger}"
		requests = append(requests, q)
	}
	requests[0].Subject, requests[0].RequestID, requests[0].Fingerprint = "", "", nil
	requests[1].RequestID = "r-1"
	return requests
}

// What another subject may have takes its name along, and its key stays.
func TestScanAfterAnotherSubjectTookOver(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	q := request("r-00000001")
	claim(t, store, q)
	lapse(t, rdb, recordKey(q.Key))
	bob := by(q)
	bob.Subject, bob.RequestID, bob.Shared = "bob", "r-00000002", true
	claim(t, store, bob)
	got := scan(t, store).records[q.Key]
	if got.Subject != "bob" || got.RequestID != "r-00000002" || got.Attempt != 2 || got.Owner != bob.Owner {
		t.Errorf("visited %+v", got)
	}
}

// What is not a record of this store and this version is left out, and is no reason to give up.
func TestScanLeavesOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	q, foreign := request("r-00000001"), request("other")
	set := func(key string, fields ...any) func(*testing.T, redis.UniversalClient) {
		return func(t *testing.T, rdb redis.UniversalClient) {
			t.Helper()
			must(t, rdb.HSet(ctx, key, fields...).Err())
		}
	}
	tests := map[string]func(*testing.T, redis.UniversalClient){
		"a record without its key's parts": func(t *testing.T, rdb redis.UniversalClient) {
			t.Helper()
			must(t, rdb.HDel(ctx, recordKey(q.Key), "key").Err())
		},
		"parts beside another's request id": set(recordKey(q.Key), "request_id", "r-00000002"),
		"parts beside another's subject":    set(recordKey(q.Key), "subject", "bob"),
		"damaged parts":                     set(recordKey(q.Key), "key", "\xff\xff"),
		"a newer format":                    set(recordKey(q.Key), "format", strconv.Itoa(idem.Format+1)),
		"no format":                         set(recordKey(q.Key), "format", ""),
		"a number that is none":             set(recordKey(q.Key), "attempt", "first"),
		"a value that is no hash": func(t *testing.T, rdb redis.UniversalClient) {
			t.Helper()
			must(t, rdb.Set(ctx, recordKey(q.Key), "text", 0).Err())
		},
		"a record that is gone": func(t *testing.T, rdb redis.UniversalClient) {
			t.Helper()
			must(t, rdb.Del(ctx, recordKey(q.Key)).Err())
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			claim(t, store, q)
			claim(t, store, foreign)
			must(t, store.Issue(ctx, []idem.Token{token(q, "jti"), token(q, "{"+q.Key.Digest()+"}:r")}))
			change(t, rdb)
			found := scan(t, store)
			if _, there := found.records[foreign.Key]; !there || found.visits != 1 {
				t.Errorf("visited %v", found.records)
			}
		})
	}
}

// A record that a version before wrote shows up again with the next claim.
func TestRecordOfBeforeIsFoundAfterItsNextClaim(t *testing.T) {
	t.Parallel()
	ctx, q := context.Background(), request("r-00000001")
	store, rdb := open(t)
	must(t, store.Release(ctx, claim(t, store, q), idem.Failed, ""))
	must(t, rdb.HDel(ctx, recordKey(q.Key), "key").Err())
	if n := scan(t, store).visits; n != 0 {
		t.Fatalf("%d visits of a record that does not tell its key", n)
	}
	claim(t, store, by(q))
	if got := scan(t, store).records[q.Key]; got.Attempt != 2 {
		t.Errorf("visited %+v", got)
	}
}

func TestScanKeepsToItsPrefix(t *testing.T) {
	t.Parallel()
	_, rdb := open(t)
	prefixes := []string{"", "a", "a:1:", "ab", "b:a", "*", "?", "[ab]", `\a`, `a\`, "{a}", "%7Ba%7D", "[^a]", "i?em", "id*"}
	for _, prefix := range prefixes {
		store := redisstore.New(rdb, redisstore.Options{Prefix: prefix})
		q := request("of " + prefix)
		claim(t, store, q)
		must(t, store.Issue(context.Background(), []idem.Token{token(q, "jti")}))
	}
	for _, prefix := range prefixes {
		found := scan(t, redisstore.New(rdb, redisstore.Options{Prefix: prefix}))
		for key := range found.records {
			if key.ID != "of "+prefix {
				t.Errorf("%q visited %q", prefix, key.ID)
			}
		}
		if found.visits != 1 {
			t.Errorf("%q had %d visits", prefix, found.visits)
		}
	}
}

func TestScanEndsEarly(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	for i := range 20 {
		claim(t, store, request(fmt.Sprint("r-", i)))
	}
	stop, ended := errors.New("stop"), context.Canceled
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tests := map[string]struct {
		ctx    context.Context
		visit  error
		want   error
		visits int
	}{
		"visit's error":        {context.Background(), stop, stop, 1},
		"a context that ended": {ctx, nil, ended, 0},
		"none":                 {context.Background(), nil, nil, 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			visits := 0
			err := store.Scan(test.ctx, func(idem.Record, string) error { visits++; return test.visit })
			if !errors.Is(err, test.want) || visits != test.visits {
				t.Errorf("%d visits, %v", visits, err)
			}
		})
	}
	must(t, rdb.ReplicaOf(context.Background(), "127.0.0.1", strconv.Itoa(testkit.FreePort(t))).Err())
	if err := store.Scan(context.Background(), func(idem.Record, string) error { return nil }); !redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("a former primary: %v", err)
	}
}

// visit may ask the store itself, on a client with a single connection.
func TestVisitMayUseTheStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	options := testkit.RedisOptions(testkit.Redis(t).Addr)
	options.PoolSize = 1
	store := redisstore.New(testkit.RedisClient(t, options), redisstore.Options{})
	for i := range 10 {
		claim(t, store, request(fmt.Sprint("r-", i)))
	}
	dropped := 0
	must(t, store.Scan(ctx, func(r idem.Record, _ string) error {
		gone, err := store.Drop(ctx, r)
		if gone {
			dropped++
		}
		return err
	}))
	if left := scan(t, store).visits; dropped != 10 || left != 0 {
		t.Errorf("%d dropped, %d left", dropped, left)
	}
}
