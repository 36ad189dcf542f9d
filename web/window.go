package web

import (
	"context"
	"net/http"
	"time"

	"github.com/idemkit/idem"
)

// Window guards a route with a deduplication window: of requests with equal keys one runs in each length of time, and the others get
// duplicate_in_window with the time that is left. It is for callers that have neither token nor key to send. A window that is too short lets slow
// duplicates in, one that is too long locks real repetitions out; idem.DefaultWindow is one to begin with.
//
// The name and the key are the tenant's: no subject is needed, and none counts. The first client's leaving does not cancel the work, which has the route's Limit.
// Nothing is replayed. A failure leaves the window closed, unless the route says ReopenOnFailure. It needs Config.Store, and answers store_unavailable
// while that is away. It panics where the options contradict each other or the Config.
func (g *Guard) Window(name string, length time.Duration, key KeyFunc, options ...Option) func(http.Handler) http.Handler {
	rt := g.keyed(name, key, options)
	switch {
	case g.config.Store == nil:
		panic("web: route " + name + ": windows need Config.Store")
	case length < idem.MinLease:
		panic("web: route " + name + ": a window must be at least 1 ms long")
	}
	rt.length, rt.resultless = length, true
	return rt.check().middleware((*submission).throughWindow)
}

// ReopenOnFailure opens a window again at once when its work failed: by a status of 400 or more, by Reject, or by a panic. After Unknown it stays closed.
func ReopenOnFailure() Option { return func(rt *route) { rt.reopen = true } }

// tenantKey is the key of a window or a lock, after everything that is judged before it.
func (s *submission) tenantKey() (idem.Key, *refusal) {
	for _, step := range []func() *refusal{s.judgeOrigin, s.read} {
		if failure := step(); failure != nil {
			return idem.Key{}, failure
		}
	}
	parts, failure := s.key.read(s)
	if failure != nil {
		return idem.Key{}, failure
	}
	return idem.Key{Tenant: s.tenant(s.r), Type: s.businessType, ID: id(parts)}, nil
}

func (s *submission) throughWindow(next http.Handler) {
	key, failure := s.tenantKey()
	if failure != nil {
		s.refuse(failure)
		return
	}
	begun := time.Now()
	pass, err := idem.Window(s.r.Context(), s.config.Store, key, s.length)
	if err != nil {
		s.answered(begun, "", err)
		f := refused(idem.Reply{}, err)
		if f.code == DuplicateInWindow {
			f.retryAfter = pass.Left
		}
		s.refuse(f)
		return
	}
	rec := newRecorder(s.w, s.responseLimit)
	s.answered(begun, s.inWindow(pass, rec, next), nil)
	_ = rec.finish() // a client that left is nobody's error
}

// inWindow opens the window, where it is to, before the answer leaves: the corrected request may follow at once.
func (s *submission) inWindow(pass idem.Pass, rec *recorder, next http.Handler) (state idem.State) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.r.Context()), s.limit)
	defer cancel()
	state = idem.Failed // a panic leaves it so
	defer func() {
		if s.reopen && state == idem.Failed {
			s.unreleased(pass.Reopen(ctx))
		}
	}()
	return s.attend(ctx, rec, next)
}

// attend runs the handler and returns what came of it.
func (s *submission) attend(ctx context.Context, rec *recorder, next http.Handler) idem.State {
	said := &verdict{}
	s.run(rec, next, s.r.WithContext(context.WithValue(ctx, verdictKey{}, said)))
	return said.of(rec.answered())
}

// answered tells the observer of a call that the engine did not see.
func (s *submission) answered(begun time.Time, state idem.State, err error) {
	s.observe(s.r.Context(), idem.Event{Kind: idem.Answered, Type: s.businessType, State: state, Err: err, Took: time.Since(begun)})
}
