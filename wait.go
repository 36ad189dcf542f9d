package idem

import (
	"context"
	"errors"
	"sync"
	"time"
)

// probe reports whether asking the stores again is worth it.
type probe func(ctx context.Context) bool

// A waiter across processes learns of the finish within maxPoll; the first polls are closer, because most work is short.
const (
	minPoll = 5 * time.Millisecond
	maxPoll = 50 * time.Millisecond
)

// probe looks at the record that stands in the way. A store that does not answer is asked again: the waiter has its own deadline.
func (v *visit) probe(store Store, q Request) probe {
	return func(ctx context.Context) bool {
		record, err := store.Lookup(ctx, q)
		if err != nil {
			return errors.Is(err, ErrNotFound)
		}
		return !record.Live()
	}
}

// flights joins the duplicates of one key within this process, so that all of them together poll once.
type flights struct {
	mu     sync.Mutex
	flying map[Key]*flight
}

// flight is one round of waiting: it ends with the first change, and those that still wait join the next.
type flight struct {
	changed chan struct{}
	waiters int
	stop    context.CancelFunc // ends the poller; nil: nobody polls yet
}

type watch struct {
	*flights
	key    Key
	flight *flight
}

func newFlights() *flights { return &flights{flying: map[Key]*flight{}} }

func (f *flights) join(key Key) watch {
	f.mu.Lock()
	defer f.mu.Unlock()
	current := f.flying[key]
	if current == nil {
		current = &flight{changed: make(chan struct{})}
		f.flying[key] = current
	}
	current.waiters++
	return watch{f, key, current}
}

// leave ends the flight with its last waiter, or the map would grow with every key ever seen.
func (w watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flight.waiters--
	if w.flight.waiters == 0 {
		w.end(w.key, w.flight)
	}
}

// wake tells everybody who waits for the key, in this process, to ask again.
func (f *flights) wake(key Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if current := f.flying[key]; current != nil {
		f.changed(key, current)
	}
}

func (f *flights) changed(key Key, ended *flight) {
	select {
	case <-ended.changed:
	default:
		close(ended.changed)
	}
	f.end(key, ended)
}

func (f *flights) end(key Key, ended *flight) {
	if f.flying[key] == ended {
		delete(f.flying, key)
	}
	if ended.stop != nil {
		ended.stop()
		ended.stop = nil
	}
}

// wait returns nil at the first change and at the deadline, and the context's error when the caller left.
func (w watch) wait(ctx context.Context, deadline time.Time, probe probe) error {
	w.poll(probe)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-w.flight.changed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll starts the flight's one poller, unless it runs or the flight has ended.
func (w watch) poll(probe probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flight.stop != nil || w.flying[w.key] != w.flight {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.flight.stop = stop
	go w.pollUntilChanged(ctx, probe)
}

func (w watch) pollUntilChanged(ctx context.Context, probe probe) {
	timer := time.NewTimer(minPoll)
	defer timer.Stop()
	for pause := minPoll; ; pause = min(2*pause, maxPoll) {
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if probe(ctx) {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed(w.key, w.flight)
}
