package sqlitestore_test

import (
	"testing"
	"time"

	"github.com/idemkit/idem"
)

func TestPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	finish := func(id string, as idem.State) {
		claim := f.won(request(id), 1)
		var err error
		if as == idem.Succeeded {
			err = f.store.Complete(t.Context(), claim, created())
		} else {
			err = f.store.Release(t.Context(), claim, as, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		f.clock.advance(time.Second)
	}
	for _, as := range []idem.State{idem.Succeeded, idem.Failed, idem.Cancelled, idem.Succeeded} {
		finish(string(as)+f.clock.Now().String(), as)
	}
	finish("unknown outcome", idem.Processing)
	f.won(request("running"), 1)
	purge := func(limit, want int) {
		t.Helper()
		if n, err := f.store.Purge(t.Context(), nil, limit); err != nil || n != want {
			t.Fatalf("Purge(%d): %d, %v; want %d", limit, n, err, want)
		}
	}
	f.clock.advance(24*time.Hour - 6*time.Second)
	purge(10, 0)
	f.clock.advance(1500 * time.Millisecond)
	purge(10, 1) // the first alone
	f.clock.advance(time.Hour)
	purge(0, 0)
	purge(-1, 0)
	purge(2, 2)
	f.exec(`UPDATE idempotent_record SET format = 2 WHERE status = 'succeeded'`)
	purge(10, 0)
	f.exec(`UPDATE idempotent_record SET format = 1`)
	purge(10, 1)
	f.records(2)
}

func TestResultsAreKeptFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		result     idem.Result
		kept, left time.Duration // replayed with its body until then; 0: never
		binary     bool
	}{
		"as long as the record": {idem.Result{Status: 201, Body: []byte("x"), Kept: true}, 23 * time.Hour, 0, false},
		"an hour":               {idem.Result{Status: 201, Body: []byte("x"), Kept: true, Keep: time.Hour}, time.Hour - time.Microsecond, time.Hour, false},
		"not longer than the record": {
			idem.Result{Status: 201, Body: []byte("x"), Kept: true, Keep: 48 * time.Hour}, 23 * time.Hour, 24 * time.Hour, false},
		"not at all": {idem.Result{Status: 204, Header: [][2]string{{"A", "b"}}, Body: []byte("x")}, 0, time.Nanosecond, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			if err := f.store.Complete(t.Context(), f.won(q, 1), tt.result); err != nil {
				t.Fatal(err)
			}
			see := func(kept bool) {
				t.Helper()
				result := f.claim(again(q), idem.Done).Record.Result
				if result.Kept != kept || result.Status != tt.result.Status || (len(result.Body) > 0) != kept {
					t.Fatalf("result %+v, kept %v wanted", result, kept)
				}
			}
			f.clock.advance(tt.kept)
			see(tt.kept > 0)
			if tt.left == 0 {
				return
			}
			f.clock.advance(tt.left - tt.kept)
			see(false)
			f.exec(`UPDATE idempotent_record SET expires_at = expires_at + 1000000`)
			if n, err := f.store.Purge(t.Context(), nil, 10); n != 0 || err != nil {
				t.Fatalf("Purge: %d, %v", n, err)
			}
			if n := f.count(`SELECT count(*) FROM idempotent_record WHERE result_body IS NOT NULL`); n != 0 {
				t.Error("the body outlives its time in the table")
			}
			see(false)
		})
	}
}
