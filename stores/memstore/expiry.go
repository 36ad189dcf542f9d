package memstore

import (
	"container/heap"
	"time"

	"github.com/idemkit/idem"
)

// sweepPerCall bounds what one call cleans up after an idle time in which many records ended. A call adds one record, so
// that the cleaning always gains on the writing.
const sweepPerCall = 64

// timed is what ends by itself: a record, the kept part of its result, or a token.
type timed interface {
	place() *int
	expire(s *Store, now instant)
}

// timer is the index of something timed in the heap.
type timer struct{ index int }

func (t *timer) place() *int { return &t.index }

// slot holds the time beside the item, so that comparing two touches no other memory.
type slot struct {
	at   instant
	item timed
}

// timers is a heap.Interface, the earliest first.
type timers []slot

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].item.place(), *h[j].item.place() = i, j
}

// Push appends x; container/heap calls it.
func (h *timers) Push(x any) {
	added := x.(slot)
	*added.item.place() = len(*h)
	*h = append(*h, added)
}

// Pop removes the last; container/heap calls it.
func (h *timers) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = slot{}
	*h = old[:len(old)-1]
	if cap(old) >= rebuildFrom && len(*h) < cap(old)/4 {
		*h = append(make(timers, 0, 2*len(*h)), *h...)
	}
	return last
}

func (h *timers) arm(item timed, at instant) { heap.Push(h, slot{at, item}) }

func (h *timers) disarm(item timed) { heap.Remove(h, *item.place()) }

func (h *timers) rearm(item timed, at instant) {
	i := *item.place()
	(*h)[i].at = at
	heap.Fix(h, i)
}

// sweep ends up to limit of what is due and returns how many records went.
func (s *Store) sweep(now instant, limit int) int {
	before := len(s.records.rows)
	for range limit {
		if len(s.timers) == 0 || s.timers[0].at > now {
			break
		}
		s.timers[0].item.expire(s, now)
	}
	return before - len(s.records.rows)
}

// find is the record under the key, unless its time is over and the sweep has not come to it yet.
func (s *Store) find(key idem.Key, now instant) *record {
	r := s.records.rows[key]
	if r == nil || r.end > now {
		return r
	}
	s.remove(r)
	return nil
}

// expire drops the record or, where its result's time is over before the record's, the kept bytes.
func (r *record) expire(s *Store, now instant) {
	if r.end <= now {
		s.remove(r)
		return
	}
	r.result = idem.Result{Status: r.result.Status}
	s.timers.rearm(r, r.end)
}

func (s *Store) remove(r *record) {
	s.timers.disarm(r)
	s.unindex(r)
	s.records.drop(r.key)
}

// prolong lets the record live at least until end. It never shortens: a renewed token may have asked for longer.
func (s *Store) prolong(r *record, end instant) {
	r.end = max(r.end, end)
	next := r.end
	if r.result.Kept {
		next = min(r.end, r.keepEnd)
	}
	s.timers.rearm(r, next)
}

// change notes that the record was written, which begins its retention anew.
func (s *Store) change(r *record, retention time.Duration, now instant) {
	r.changed = now
	s.prolong(r, after(now, retention))
}

func (s *Store) insert(key idem.Key, end instant) *record {
	r := &record{key: key, end: end}
	s.records.put(key, r)
	s.timers.arm(r, end)
	return r
}

func (s *Store) index(r *record) {
	if r.requestID != "" {
		s.byRequest.put(r.intention(), r)
	}
}

func (s *Store) unindex(r *record) {
	if r.requestID != "" && s.byRequest.rows[r.intention()] == r {
		s.byRequest.drop(r.intention())
	}
}
