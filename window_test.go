package idem_test

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	store := memstore.New(memstore.Options{Forgetful: true, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	open := func() (idem.Pass, error) { return idem.Window(t.Context(), store, sku("tea"), 5*time.Second) }
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if pass, err := open(); !errors.Is(err, idem.ErrDuplicate) || pass.Left <= 4*time.Second || pass.Left > 5*time.Second {
		t.Fatalf("inside: %+v, %v", pass, err)
	}
	if err := first.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err != nil {
		t.Fatalf("opened again: %v", err)
	}
	ahead.Store(int64(6 * time.Second))
	if _, err := open(); err != nil {
		t.Fatalf("after its end: %v", err)
	}
	if err := first.Reopen(t.Context()); !errors.Is(err, idem.ErrClaimLost) {
		t.Fatalf("the first one opened another's window: %v", err)
	}
	if _, _, err := idem.Lock(t.Context(), store, sku("tea"), idem.LockOptions{}); err != nil {
		t.Fatalf("a window stands in the way of a lock: %v", err)
	}
	if _, err := idem.Window(t.Context(), store, sku("tea"), 0); !errors.Is(err, idem.ErrInvalid) {
		t.Fatalf("no length: %v", err)
	}
	if _, err := idem.Window(t.Context(), silent{store}, sku("tea"), time.Second); !errors.Is(err, idem.ErrUnavailable) {
		t.Fatalf("store away: %v", err)
	}
}

func TestWindowOfAnyLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length time.Duration
		want   error // of the first
	}{
		"none": {0, idem.ErrInvalid}, "below none": {-time.Second, idem.ErrInvalid}, "below the shortest": {idem.MinLease - 1, idem.ErrInvalid},
		"a day": {24 * time.Hour, nil}, "for ever": {math.MaxInt64, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := forgetful()
			if _, err := idem.Window(t.Context(), store, sku("tea"), c.length); !errors.Is(err, c.want) {
				t.Fatalf("first: %v, want %v", err, c.want)
			}
			if pass, err := idem.Window(t.Context(), store, sku("tea"), c.length); c.want == nil && (!errors.Is(err, idem.ErrDuplicate) || pass.Left <= 0) {
				t.Fatalf("second: %+v, %v", pass, err)
			}
		})
	}
}

// Parts are digested with their lengths: "a" and "bc" are not "ab" and "c".
func TestWindowTellsPartsApart(t *testing.T) {
	t.Parallel()
	store := forgetful()
	for _, parts := range [][]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"abc"}, {"a:bc"}, {"ab:c"}} {
		key := idem.K("payment", idem.Digest(parts...))
		if _, err := idem.Window(t.Context(), store, key, time.Minute); err != nil {
			t.Errorf("%q: %v", parts, err)
		}
		if _, err := idem.Window(t.Context(), store, key, time.Minute); !errors.Is(err, idem.ErrDuplicate) {
			t.Errorf("%q again: %v", parts, err)
		}
	}
}

func TestWindowLetsOneThrough(t *testing.T) {
	t.Parallel()
	store := forgetful()
	var through atomic.Int64
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if _, err := idem.Window(t.Context(), store, sku("tea"), time.Minute); err == nil {
				through.Add(1)
			}
		})
	}
	callers.Wait()
	if through.Load() != 1 {
		t.Errorf("%d went through", through.Load())
	}
}
