package pgstore

import (
	"context"
	"sync"
)

// span is the time in which a transaction may be used. Every call on it, and on what it returned, runs between enter and leave. The end refuses all later ones and
// is quiet when those under way have left: until then the connection is theirs, and after it somebody else's. It is no RWMutex, so that what a call
// calls back may use the transaction too, and so that waiting can be given up. The zero value is open.
type span struct {
	mu     sync.Mutex
	calls  int
	over   bool
	quiet  chan struct{} // made by the end, closed when no call is under way
	cut    func()        // makes calls under way fail
	cutOff bool
}

// enter reports whether the call may go on; if so, leave must follow.
func (s *span) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.calls++
	return true
}

func (s *span) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if s.over && s.calls == 0 {
		close(s.quiet)
	}
}

// end ends the span. first is false when that has happened before.
func (s *span) end() (quiet <-chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return s.quiet, false
	}
	s.over, s.quiet = true, make(chan struct{})
	if s.calls == 0 {
		close(s.quiet)
	}
	return s.quiet, true
}

// cutBy says how calls under way are made to fail.
func (s *span) cutBy(cut func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
	if s.cutOff {
		cut()
	}
}

// interrupt makes the calls under way fail, and those that begin to be under way.
func (s *span) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutOff = true
	if s.cut != nil && s.calls > 0 {
		s.cut()
	}
}

// await reports whether it became quiet before ctx ended.
func await(ctx context.Context, quiet <-chan struct{}) bool {
	select {
	case <-quiet:
		return true
	default:
	}
	select {
	case <-quiet:
		return true
	case <-ctx.Done():
		return false
	}
}
