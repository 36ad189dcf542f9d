package consumer

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// Queue is a broker in the memory of this process, for programs that have no other: what is in it is lost with the process. One queue serves the consumers of one
// name; publish to several queues where several consumers want a message. Make one with NewQueue. It is safe for concurrent use and has no bound: take its dead
// letters from time to time.
type Queue struct {
	name    string
	mu      sync.Mutex
	waiting entries
	serial  uint64
	dead    []Message
	working int
	changed chan struct{} // closed and replaced when something was put in
}

// entry is one message and when it is due.
type entry struct {
	message Message
	due     time.Time
	serial  uint64
}

// NewQueue returns an empty queue; messages have its name as their Source.
func NewQueue(name string) *Queue { return &Queue{name: name, changed: make(chan struct{})} }

// Publish puts a message in, in order of publication. Body and headers must not be changed afterwards. It returns the context's error, if any.
func (q *Queue) Publish(ctx context.Context, m Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.Delivery, m.Source = 0, q.name
	q.put(m, time.Now())
	return nil
}

// Len is the number of messages that are waiting, resting or in work.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + q.working
}

// Dead returns the dead letters in the order in which they were given up. The queue keeps them until they are taken.
func (q *Queue) Dead() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.dead)
}

// TakeDead returns the dead letters and forgets them. Publish one to have it tried again.
func (q *Queue) TakeDead() []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	dead := q.dead
	q.dead = nil
	return dead
}

// Run hands messages to the consumer, one at a time, until ctx ends; it then lets the running one finish, puts it back where it is not done, and
// returns nil. Run it several times at once for concurrency.
func (q *Queue) Run(ctx context.Context, c *Consumer) error {
	for {
		m, ok := q.take(ctx)
		if !ok {
			return nil
		}
		m.Delivery++
		q.settle(m, c.Handle(context.WithoutCancel(ctx), m))
	}
}

// take waits for the first message that is due. false: ctx has ended.
func (q *Queue) take(ctx context.Context) (Message, bool) {
	for ctx.Err() == nil {
		m, rest, changed := q.next()
		if rest == 0 {
			return m, true
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return Message{}, false
}

// idle is how long an empty queue is not looked at unless something is put in.
const idle = time.Hour

// next takes a message that is due, or says how long the first one rests.
func (q *Queue) next() (m Message, rest time.Duration, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return m, idle, q.changed
	}
	if rest = time.Until(q.waiting[0].due); rest > 0 {
		return m, rest, q.changed
	}
	q.working++
	return heap.Pop(&q.waiting).(entry).message, 0, nil
}

func (q *Queue) put(m Message, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serial++
	heap.Push(&q.waiting, entry{message: m, due: due, serial: q.serial})
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue) settle(m Message, v Verdict) {
	if v.Action == Retry {
		if !v.Counted {
			m.Delivery--
		}
		q.put(m, time.Now().Add(v.Delay))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if v.Action == DeadLetter {
		q.dead = append(q.dead, m.Dead(v))
	}
	q.working--
}

// entries is a heap by due time and, among equals, by order of putting in.
type entries []entry

func (e entries) Len() int      { return len(e) }
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e entries) Less(i, j int) bool {
	if e[i].due.Equal(e[j].due) {
		return e[i].serial < e[j].serial
	}
	return e[i].due.Before(e[j].due)
}

// Push and Pop are for package heap.
func (e *entries) Push(x any) { *e = append(*e, x.(entry)) }

// Pop removes the last entry.
func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = entry{}
	*e = (*e)[:len(*e)-1]
	return last
}
