package redisstore_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/idemkit/idem"
)

// write puts a record into Redis without the store's doing.
func write(rdb *redis.Client, r idem.Record) error {
	ctx := context.Background()
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	return rdb.HSet(ctx, recordKey(r.Key), "format", idem.Format, "state", string(r.State), "attempt", r.Attempt, "owner", r.Owner,
		"subject", r.Subject, "request_id", r.RequestID, "fingerprint", r.Fingerprint,
		"lease", now.Add(r.LeaseLeft).UnixMicro()).Err()
}

// The script decides as idem.Judge does, whatever the record and the request.
func TestScriptJudgesAsJudge(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	texts := rapid.SampledFrom([]string{"", "a", "A", "a\x00b", "\xff", "-", "1", "1.0"})
	bytes := rapid.SampledFrom([][]byte{nil, []byte("a"), []byte("a\x00"), []byte("\xff\xfe"), []byte("0"), []byte("00")})
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		q := request(fmt.Sprint("judged-", round))
		q.Subject, q.Fingerprint, q.Shared = texts.Draw(t, "subject"), bytes.Draw(t, "fingerprint"), rapid.Bool().Draw(t, "shared")
		var stored *idem.Record
		if rapid.Bool().Draw(t, "stored") {
			stored = &idem.Record{
				Key:         q.Key,
				State:       rapid.SampledFrom([]idem.State{idem.Processing, idem.Succeeded, idem.Failed, idem.Cancelled}).Draw(t, "state"),
				Attempt:     rapid.IntRange(1, 1<<40).Draw(t, "attempt"),
				Owner:       rapid.SampledFrom([]string{"", "other", q.Owner}).Draw(t, "owner"),
				Subject:     texts.Draw(t, "its subject"),
				Fingerprint: bytes.Draw(t, "its fingerprint"),
				LeaseLeft:   rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour}).Draw(t, "lease"),
			}
			if err := write(rdb, *stored); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := store.Claim(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		want := idem.Judge(q, stored, nil)
		if answer.Outcome != want {
			t.Fatalf("outcome %v, Judge says %v", answer.Outcome, want)
		}
		if want == idem.Foreign && !reflect.DeepEqual(answer, idem.Answer{Outcome: idem.Foreign}) {
			t.Errorf("a foreign answer tells %+v", answer)
		}
		if want == idem.Won && answer.Claim.Attempt != attemptAfter(q, stored) {
			t.Errorf("attempt %d after %+v", answer.Claim.Attempt, stored)
		}
	})
}

func attemptAfter(q idem.Request, stored *idem.Record) int {
	switch {
	case stored == nil:
		return 1
	case stored.State == idem.Processing && stored.Owner == q.Owner:
		return stored.Attempt
	}
	return stored.Attempt + 1
}

// asynq#1051: active without lease, never recovered.
func TestProcessingWithoutLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	q := request("r-00000001")
	claim(t, store, q)
	must(t, rdb.HDel(context.Background(), recordKey(q.Key), "lease").Err())
	if left := lookup(t, store, q.Key).LeaseLeft; left > 0 {
		t.Errorf("lease left %v", left)
	}
	if next := claim(t, store, by(q)); next.Attempt != 2 {
		t.Errorf("attempt %d", next.Attempt)
	}
}

// The boundary is the server's clock against the record's field, to the microsecond; no time of the client's is sent.
func TestTakeoverByServerClock(t *testing.T) {
	t.Parallel()
	store, rdb := open(t)
	ctx := context.Background()
	for name, lease := range map[string]time.Duration{
		"shortest": idem.MinLease, "not whole milliseconds": 1500 * time.Microsecond, "longer": 60 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := request(name)
			q.Lease = lease
			before := rdb.Time(ctx).Val()
			claim(t, store, q)
			end, err := rdb.HGet(ctx, recordKey(q.Key), "lease").Int64()
			if err != nil || end < before.Add(lease).UnixMicro() {
				t.Fatalf("the lease ends at %d, %v; claimed after %d", end, err, before.UnixMicro())
			}
			next := by(q)
			next.Lease = time.Minute
			for {
				answer, err := store.Claim(ctx, next)
				if err != nil {
					t.Fatal(err)
				}
				if answer.Outcome == idem.Won {
					break
				}
				if left := answer.Record.LeaseLeft; answer.Outcome != idem.Busy || left <= 0 || left > lease {
					t.Fatalf("%v with %v left", answer.Outcome, left)
				}
			}
			if now := rdb.Time(ctx).Val(); now.UnixMicro() < end {
				t.Errorf("taken over at %d, before the end at %d", now.UnixMicro(), end)
			}
		})
	}
}
