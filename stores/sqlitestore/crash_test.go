package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

// What a process leaves that is killed without a chance to say anything.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		orders  int
		state   idem.State // of what is left; empty: nothing
		attempt int        // of the next claim; 0: there is none to be had
	}{
		"claimed":          {0, idem.Processing, 2},
		"in transaction":   {0, idem.Processing, 2},
		"same transaction": {0, "", 1},
		"completed":        {1, idem.Succeeded, 0},
	}
	for role, tt := range tests {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			f, q := newFixture(t), request("1")
			killed(t, role, f.path)
			f.orders(tt.orders)
			f.clock.advance(time.Since(f.clock.Now()))
			if tt.state == "" {
				f.records(0)
			} else {
				f.stands(q, tt.state, 1)
			}
			if tt.state == idem.Processing {
				f.claim(again(q), idem.Busy) // its lease still stands
				f.clock.advance(2 * lease)
			}
			if tt.attempt == 0 {
				f.claim(again(q), idem.Done)
				return
			}
			_, tx, work := f.work(f.won(again(q), tt.attempt))
			f.order(tx, "1")
			f.complete(work)
			f.orders(1)
		})
	}
}

func TestProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if output, err := process(t, "migrate", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
	calls.Wait()
	var noted int
	if err := openFile(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM idempotent_record_migration`).Scan(&noted); err != nil || noted != 2 {
		t.Fatalf("%d migrations noted, %v; want 2", noted, err)
	}
}

func TestProcessesContend(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var calls sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 3 {
		calls.Go(func() {
			output, err := process(t, "contend", f.path).CombinedOutput()
			var won int
			if _, scanErr := fmt.Sscanf(strings.TrimSpace(string(output)), "won %d", &won); err != nil || scanErr != nil {
				t.Errorf("%v, %v: %s", err, scanErr, output)
			}
			mu.Lock()
			defer mu.Unlock()
			total += won
		})
	}
	calls.Wait()
	if total != contended {
		t.Fatalf("%d claims won of %d keys", total, contended)
	}
	f.records(contended)
}
