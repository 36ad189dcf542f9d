package redisstream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// kill -9 in the one transaction leaves nothing in the ledger; the pending list counts.
func TestSameTxKilled(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	for name, tt := range map[string]struct {
		attempts   int
		runs, dead int
	}{
		"an attempt is left": {attempts: 3, runs: 1},
		"none is left":       {attempts: 2, dead: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, path := newLedger(t)
			s := newStream(t, server.Client(t), ledger)
			s.publish(consumer.Message{ID: "1", Body: []byte("x")})
			for range 2 {
				crash(t, "points", server.Addr, s.name, path, sameTxVariable+"=true")
			}
			var runs, attempt atomic.Int32
			a, _ := s.run(s.consumer(func(_ context.Context, m consumer.Message) error {
				runs.Add(1)
				attempt.Store(int32(m.Delivery))
				return nil
			}, consumer.SameTx(), consumer.Attempts(tt.attempts)), nil)
			s.drained()
			letters, err := a.Dead(context.Background(), "points", 10)
			if err != nil || len(letters) != tt.dead || int(runs.Load()) != tt.runs {
				t.Errorf("%d runs, dead letters %v, error %v; want %d and %d", runs.Load(), letters, err, tt.runs, tt.dead)
			}
			if tt.runs > 0 && attempt.Load() != 3 {
				t.Errorf("delivery %d, want the third", attempt.Load())
			}
		})
	}
}

// wolverine#1677: kill -9 between the business' write and the record. They are one commit, so neither is there, and the next attempt makes both.
func TestKilledBetweenWriteAndRecord(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	for name, tt := range map[string]struct {
		sameTx  string
		options []consumer.Option
		attempt int
	}{
		"claim first":      {sameTx: "false", attempt: 2},
		"same transaction": {sameTx: "true", options: []consumer.Option{consumer.SameTx()}, attempt: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, path := newLedger(t)
			db, err := sqlitestore.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			if _, err := db.ExecContext(t.Context(), grantsTable); err != nil {
				t.Fatal(err)
			}
			grants := func() (n int) {
				if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM grants`).Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			}
			s := newStream(t, server.Client(t), ledger)
			s.publish(consumer.Message{ID: "1", Body: []byte("x")})
			crash(t, "points", server.Addr, s.name, path, sameTxVariable+"="+tt.sameTx, grantsVariable+"=true")
			if n := grants(); n != 0 {
				t.Errorf("%d grants by a process that recorded none", n)
			}
			var attempt atomic.Int32
			s.run(s.consumer(func(ctx context.Context, m consumer.Message) error {
				attempt.Store(int32(idem.FromContext(ctx).Attempt))
				return grant(ctx, m)
			}, tt.options...), nil)
			s.drained()
			if n := grants(); n != 1 || int(attempt.Load()) != tt.attempt {
				t.Errorf("%d grants by attempt %d, want one by attempt %d", n, attempt.Load(), tt.attempt)
			}
		})
	}
}

// Redis forgets everything while the adapter runs: the group is made again, and what is published then is handled.
func TestFlushed(t *testing.T) {
	t.Parallel()
	server := testkit.Redis(t)
	ledger, _ := newLedger(t)
	s := newStream(t, server.Client(t), ledger)
	var runs atomic.Int32
	s.run(s.consumer(func(context.Context, consumer.Message) error { runs.Add(1); return nil }, consumer.SameTx()), nil)
	for i := range int32(3) {
		s.publish(consumer.Message{ID: string('a' + i), Body: []byte("x")})
		testkit.Eventually(t, 20*time.Second, "handled", func() bool { return runs.Load() == i+1 })
		server.FlushAll(t)
	}
}
