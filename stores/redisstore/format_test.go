package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// A record of a newer format, or one that is none, is neither read nor written by any call.
func TestUnknownFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	formats := map[string]map[string]string{
		"newer":       {"format": fmt.Sprint(idem.Format + 1), "state": "succeeded", "attempt": "1", "owner": "o", "status": "200", "kept": "1"},
		"much newer":  {"format": "10", "state": "deferred", "attempt": "first"},
		"no format":   {"state": "failed", "attempt": "1"},
		"not a count": {"format": "one", "state": "failed", "attempt": "1"},
	}
	calls := map[string]func(*redisstore.Store, idem.Request) error{
		"claim": func(s *redisstore.Store, q idem.Request) error { _, err := s.Claim(ctx, q); return err },
		"spend": func(s *redisstore.Store, q idem.Request) error { _, err := s.Spend(ctx, "jti", q); return err },
		"complete": func(s *redisstore.Store, q idem.Request) error {
			return s.Complete(ctx, idem.Claim{Request: q, Attempt: 1}, result)
		},
		"release": func(s *redisstore.Store, q idem.Request) error {
			return s.Release(ctx, idem.Claim{Request: q, Attempt: 1}, idem.Failed, "")
		},
		"restore": func(s *redisstore.Store, q idem.Request) error {
			return s.Restore(ctx, idem.Claim{Request: q, Attempt: 1}, result)
		},
		"lookup": func(s *redisstore.Store, q idem.Request) error { _, err := s.Lookup(ctx, q); return err },
	}
	store, rdb := open(t)
	for format, fields := range formats {
		for name, call := range calls {
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				q := request(format + name)
				must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
				must(t, rdb.HSet(ctx, recordKey(q.Key), fields).Err())
				if err := call(store, q); !errors.Is(err, idem.ErrFormat) {
					t.Errorf("error %v", err)
				}
				if got := rdb.HGetAll(ctx, recordKey(q.Key)).Val(); !reflect.DeepEqual(got, fields) {
					t.Errorf("record %v", got)
				}
				tokenKey := strings.TrimSuffix(recordKey(q.Key), "r") + "t:jti"
				if rdb.Exists(ctx, tokenKey).Val() != 1 {
					t.Error("the token was spent")
				}
			})
		}
		t.Run(format+"/extend", func(t *testing.T) {
			t.Parallel()
			q, mine := request(format), request(format+" mine")
			must(t, rdb.HSet(ctx, recordKey(q.Key), fields).Err())
			lost, err := store.Extend(ctx, []idem.Claim{claim(t, store, mine), {Request: q, Attempt: 1}})
			if err != nil || !slices.Equal(lost, []int{1}) {
				t.Errorf("lost %v, %v", lost, err)
			}
			if got := rdb.HGetAll(ctx, recordKey(q.Key)).Val(); !reflect.DeepEqual(got, fields) {
				t.Errorf("record %v", got)
			}
		})
	}
}

// Somebody else's value under our key is an error of the back end, not a crash, and stays.
func TestWrongTypeOfKey(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			ctx, q := context.Background(), request("r-00000001")
			must(t, rdb.Set(ctx, recordKey(q.Key), "not a hash", 0).Err())
			_, err := op.call(ctx, store, q)
			if op.name != "issue" && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				t.Errorf("error %v", err)
			}
			if got := rdb.Get(ctx, recordKey(q.Key)).Val(); got != "not a hash" {
				t.Errorf("overwritten: %q", got)
			}
		})
	}
}

func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	for name, damage := range map[string]map[string]any{
		"attempt is no number": {"attempt": "first"},
		"status is no number":  {"status": "created"},
		"result is cut":        {"result": "\x02\x05ab"},
		"result is nothing":    {"result": "\x80"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := request(name)
			must(t, store.Complete(ctx, claim(t, store, q), result))
			must(t, rdb.HSet(ctx, recordKey(q.Key), damage).Err())
			if answer, err := store.Claim(ctx, by(q)); err == nil || documented(err) {
				t.Errorf("answer %+v, %v", answer, err)
			}
		})
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Redis(t).Client(t)
	prefixes := []string{"", "shop", "{shop}", "{}", "}{", "%7B", "%", "sh:op", "sh\x00op"}
	q := request("r-00000001")
	for _, prefix := range prefixes {
		store := redisstore.New(rdb, redisstore.Options{Prefix: prefix})
		if got := claim(t, store, by(q)); got.Attempt != 1 {
			t.Errorf("prefix %q: attempt %d, it shares another's record", prefix, got.Attempt)
		}
		must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	}
	for _, key := range allKeys(t, rdb) {
		if strings.IndexByte(key, '{') != strings.Index(key, "{"+q.Key.Digest()+"}") {
			t.Errorf("the first braces of %q are not ours", key)
		}
	}
	if got := redisstore.New(rdb, redisstore.Options{Prefix: "idem"}); lookup(t, got, q.Key).Attempt != 1 {
		t.Error("\"idem\" is not the default")
	}
}
