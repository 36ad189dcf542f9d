package memstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func TestLeaseBoundary(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	b.outcome(idem.Won, q)
	b.clock.Advance(time.Minute - 1)
	b.outcome(idem.Busy, again(q))
	b.clock.Advance(1)
	if answer := b.outcome(idem.Won, again(q)); answer.Claim.Attempt != 2 {
		t.Errorf("attempt %d, want 2", answer.Claim.Attempt)
	}
}

func TestExtendCountsFromNow(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	claim := b.outcome(idem.Won, q).Claim
	for range 200 {
		b.clock.Advance(50 * time.Second)
		if lost, err := b.Extend(t.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
			t.Fatalf("Extend: lost %v, %v", lost, err)
		}
	}
	b.clock.Advance(time.Minute - 1)
	b.outcome(idem.Busy, again(q))
	b.clock.Advance(1)
	b.outcome(idem.Won, again(q))
}

func TestRetention(t *testing.T) {
	t.Parallel()
	finish := func(as idem.State) func(bench, idem.Claim) error {
		return func(b bench, c idem.Claim) error { return b.Release(b.Context(), c, as, "") }
	}
	for name, end := range map[string]func(bench, idem.Claim) error{
		"running":   func(bench, idem.Claim) error { return nil },
		"failed":    finish(idem.Failed),
		"cancelled": finish(idem.Cancelled),
		"unknown":   finish(idem.Processing),
		"done":      func(b bench, c idem.Claim) error { return b.Complete(b.Context(), c, idem.Result{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			q := request("1")
			claim := b.outcome(idem.Won, q).Claim
			b.clock.Advance(30 * time.Second)
			if err := end(b, claim); err != nil {
				t.Fatal(err)
			}
			last := time.Hour
			if name == "running" {
				last -= 30 * time.Second
			}
			b.clock.Advance(last - 1)
			if !b.kept(q) {
				t.Fatalf("gone before its retention")
			}
			b.clock.Advance(1)
			if b.kept(q) {
				t.Fatalf("kept after its retention")
			}
			if answer := b.outcome(idem.Won, again(q)); answer.Claim.Attempt != 1 {
				t.Errorf("attempt %d, want 1", answer.Claim.Attempt)
			}
		})
	}
}

func TestKeepOfResults(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		keep  time.Duration
		until time.Duration // when the bytes are gone; 0: with the record
	}{
		"shorter than the record": {10 * time.Minute, 10 * time.Minute},
		"as long as the record":   {0, 0},
		"longer than the record":  {100 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			q := request("1")
			b.complete(q, idem.Result{Status: 201, Header: [][2]string{{"A", "b"}}, Body: []byte("body"), Kept: true, Keep: row.keep})
			until := row.until
			if until == 0 {
				until = time.Hour
			}
			b.clock.Advance(until - 1)
			if r := b.outcome(idem.Done, again(q)).Record.Result; !r.Kept || string(r.Body) != "body" || len(r.Header) != 1 {
				t.Fatalf("result %+v before its end", r)
			}
			b.clock.Advance(1)
			if row.until == 0 {
				b.outcome(idem.Won, again(q))
				return
			}
			if r := b.outcome(idem.Done, again(q)).Record.Result; r.Kept || r.Body != nil || r.Header != nil || r.Status != 201 {
				t.Fatalf("result %+v after its end", r)
			}
		})
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	early, late := request("early"), request("late")
	for _, q := range []idem.Request{early, late} {
		if err := b.Issue(t.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: time.Minute}}); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Advance(time.Minute - 1)
	if answer, err := b.Spend(t.Context(), "a", early); err != nil || answer.Outcome != idem.Won {
		t.Errorf("before its end: %v, %v", answer.Outcome, err)
	}
	b.clock.Advance(1)
	if answer, err := b.Spend(t.Context(), "a", late); err != nil || answer.Outcome != idem.Unknown {
		t.Errorf("after its end: %v, %v", answer.Outcome, err)
	}
}

func TestIssueAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	for _, life := range []time.Duration{time.Minute, time.Hour} {
		if err := b.Issue(t.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: life}}); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Advance(time.Hour - 1)
	if answer, err := b.Spend(t.Context(), "a", q); err != nil || answer.Outcome != idem.Won {
		t.Errorf("Spend: %v, %v; want the second life to count", answer.Outcome, err)
	}
}

// TestRestoreWithoutFingerprint: a ledger that knows no payload matches any, and so does the record that repeats it.
func TestRestoreWithoutFingerprint(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	b.outcome(idem.Won, q)
	vouched := idem.Claim{Request: again(q), Attempt: 1}
	vouched.Fingerprint = nil
	if err := b.Restore(t.Context(), vouched, idem.Result{Status: 200}); err != nil {
		t.Fatal(err)
	}
	q.Fingerprint = []byte("another payload")
	b.outcome(idem.Done, again(q))
}

func TestIssueProlongs(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	b.complete(q, idem.Result{Status: 200})
	b.clock.Advance(59 * time.Minute)
	if err := b.Issue(t.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: time.Minute, Retention: 2 * time.Hour}}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(2*time.Hour - 1)
	b.outcome(idem.Done, again(q))
	b.clock.Advance(1)
	b.outcome(idem.Won, again(q))
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	good := idem.Token{ID: "a", Key: request("1").Key, TTL: time.Minute}
	for name, spoil := range map[string]func(*idem.Token){
		"no id":   func(t *idem.Token) { t.ID = "" },
		"no type": func(t *idem.Token) { t.Key.Type = "" },
		"no key":  func(t *idem.Token) { t.Key.ID = "" },
		"no life": func(t *idem.Token) { t.TTL = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			bad := good
			spoil(&bad)
			if err := b.Issue(t.Context(), []idem.Token{good, bad}); !errors.Is(err, idem.ErrInvalid) {
				t.Fatalf("Issue: %v, want ErrInvalid", err)
			}
			if answer, err := b.Spend(t.Context(), "a", request("1")); err != nil || answer.Outcome != idem.Unknown {
				t.Errorf("the good one was stored: %v, %v", answer.Outcome, err)
			}
		})
	}
}

func TestWallClockGoesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	q := request("1")
	b.outcome(idem.Won, q)
	b.clock.Advance(-time.Hour)
	b.outcome(idem.Busy, again(q))
	b.complete(request("2"), idem.Result{Status: 200})
	b.clock.Advance(time.Hour + time.Minute)
	b.outcome(idem.Won, again(q))
}

func TestPurgeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, memstore.Options{})
	for i := range 1000 {
		b.complete(request(fmt.Sprint(i)), idem.Result{Status: 200})
	}
	if n, err := b.Purge(t.Context(), nil, 1000); n != 0 || err != nil {
		t.Fatalf("Purge before the end: %d, %v", n, err)
	}
	b.clock.Advance(time.Hour)
	for _, row := range []struct{ limit, want int }{{0, 0}, {1, 1}, {600, 600}, {600, 399}, {600, 0}} {
		if n, err := b.Purge(t.Context(), nil, row.limit); n != row.want || err != nil {
			t.Errorf("Purge(%d): %d, %v; want %d", row.limit, n, err, row.want)
		}
	}
}

// TestBehindTheSweep ends more at once than one call cleans up: what the sweep has not come to yet must not be seen.
func TestBehindTheSweep(t *testing.T) {
	t.Parallel()
	const many = 1000
	last := fmt.Sprint(many - 1)
	for name, row := range map[string]struct {
		after time.Duration
		want  func(b bench)
	}{
		"tokens": {time.Minute, func(b bench) {
			if answer, err := b.Spend(b.Context(), "a", request("token "+last)); err != nil || answer.Outcome != idem.Unknown {
				b.Errorf("Spend: %v, %v; want unknown", answer.Outcome, err)
			}
		}},
		"results": {time.Minute, func(b bench) {
			if r := b.outcome(idem.Done, again(request(last))).Record.Result; r.Kept || r.Body != nil {
				b.Errorf("result %+v", r)
			}
		}},
		"records": {time.Hour, func(b bench) { b.outcome(idem.Won, again(request(last))) }},
		"request ids": {time.Hour, func(b bench) {
			q := request(last)
			q.Key.ID = "another"
			b.outcome(idem.Won, q)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, memstore.Options{})
			for i := range many {
				b.complete(request(fmt.Sprint(i)), idem.Result{Status: 200, Body: []byte("body"), Kept: true, Keep: time.Minute})
				token := idem.Token{ID: "a", Key: request(fmt.Sprint("token ", i)).Key, TTL: time.Minute}
				if err := b.Issue(t.Context(), []idem.Token{token}); err != nil {
					t.Fatal(err)
				}
				b.clock.Advance(1)
			}
			b.clock.Advance(row.after)
			row.want(b)
		})
	}
}
