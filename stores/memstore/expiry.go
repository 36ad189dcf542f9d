package memstore

import (
	"container/heap"

	"github.com/idemkit/idem"
)

// sweepPerCall bounds what one call cleans up after an idle time in which many records ended. A call adds one record, so
// that the cleaning always gains on the writing.
const sweepPerCall = 64

// timed is what ends by itself: a record, the kept part of its result, or a token.
type timed interface {
	clock() *timer
	expire(s *Store, now instant)
}

// timer is the place of something timed in the heap.
type timer struct {
	at    instant
	index int
}

func (t *timer) clock() *timer { return t }

// timers is a heap.Interface, the earliest first.
type timers []timed

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].clock().at < h[j].clock().at }

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].clock().index, h[j].clock().index = i, j
}

// Push appends x; container/heap calls it.
func (h *timers) Push(x any) {
	item := x.(timed)
	item.clock().index = len(*h)
	*h = append(*h, item)
}

// Pop removes the last; container/heap calls it.
func (h *timers) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	if cap(old) >= rebuildFrom && len(*h) < cap(old)/4 {
		*h = append(make(timers, 0, 2*len(*h)), *h...)
	}
	return last
}

// sweep ends up to limit of what is due and returns how many records went.
func (s *Store) sweep(now instant, limit int) int {
	before := len(s.records.rows)
	for range limit {
		if len(s.timers) == 0 || s.timers[0].clock().at > now {
			break
		}
		s.timers[0].expire(s, now)
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
	r.at = r.end
	heap.Fix(&s.timers, r.index)
}

func (s *Store) remove(r *record) {
	heap.Remove(&s.timers, r.index)
	s.unindex(r)
	s.records.drop(r.key)
}

// prolong lets the record live at least until end. It never shortens: a renewed token may have asked for longer.
func (s *Store) prolong(r *record, end instant) {
	r.end = max(r.end, end)
	s.schedule(r)
}

func (s *Store) schedule(r *record) {
	r.at = r.end
	if r.result.Kept {
		r.at = min(r.end, r.keepEnd)
	}
	heap.Fix(&s.timers, r.index)
}

func (s *Store) insert(key idem.Key, end instant) *record {
	r := &record{key: key, end: end, timer: timer{at: end}}
	s.records.put(key, r)
	heap.Push(&s.timers, r)
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
