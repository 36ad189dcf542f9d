package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/idemkit/idem"
)

// middleware is the frame of every guarded route, whatever it does with a submission.
func (rt *route) middleware(act func(s *submission, next http.Handler)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if safe(r.Method) {
				next.ServeHTTP(w, r)
				return
			}
			rt.expose(w, r)
			s := rt.submission(w, r)
			defer s.close()
			act(s, next)
		})
	}
}

// once is a route guarded by token or key: judge, then act.
func (s *submission) once(next http.Handler) {
	call, failure := s.judge()
	if failure != nil {
		s.refuse(failure)
		return
	}
	s.execute(call, next)
}

// judge decides everything that can be decided without a store.
func (s *submission) judge() (idem.Call, *refusal) {
	steps := []func() *refusal{s.judgeOrigin, s.judgeCaller}
	if s.byToken {
		steps = append(steps, s.authenticate)
	}
	for _, step := range append(steps, s.read) {
		if failure := step(); failure != nil {
			return idem.Call{}, failure
		}
	}
	return s.call()
}

func (s *submission) judgeOrigin() *refusal {
	if s.r.ContentLength > s.bodyLimit {
		return refuse(BodyTooLarge)
	}
	if err := s.origins.Check(s.r); err != nil {
		return refuse(CrossOrigin).because(err)
	}
	return nil
}

func (s *submission) judgeCaller() *refusal {
	if s.byToken {
		if inURL(s.r) {
			return refuse(TokenInURL)
		}
		s.caller = s.Guard.caller(s.r)
		return nil
	}
	s.caller = s.keyCaller(s.r)
	if s.caller.subject == "" && !s.anonymous {
		return refuse(SubjectMissing)
	}
	return nil
}

// call is what the engine is asked: the identity of the request, and of the operation.
func (s *submission) call() (idem.Call, *refusal) {
	parts, failure := s.key.parts(s)
	if failure != nil {
		return idem.Call{}, failure
	}
	fingerprint, failure := s.fingerprint(parts)
	if failure != nil {
		return idem.Call{}, failure
	}
	call := idem.Call{
		Request: idem.Request{
			Subject: s.caller.subject, Fingerprint: fingerprint, Shared: s.shared, Lease: s.lease, Retention: s.retention,
		},
		Wait: s.wait, Limit: s.limit, SameTx: s.sameTx, Resolve: s.resolved(),
	}
	if s.byToken {
		call.Key, call.Entrance = s.identity(), s.identity()
		call.RequestID, call.TokenID, call.LookOnly = s.token.claims.RequestID, s.token.claims.ID, s.token.claims.Expired
		call.EntranceFor = s.entranceFor(s.retention, s.keep)
	}
	if len(parts) == 0 {
		return call, nil
	}
	if s.drop {
		call.Retention = s.lease // should the key not be dropped, it falls by itself
	}
	call.Key = idem.Key{Tenant: s.caller.tenant, Type: s.businessType, ID: id(parts)}
	if s.key.scoped {
		call.Key.Scope = s.caller.subject
	}
	return call, nil
}

// resolved keeps what a resolver tells for as long as the route keeps an answer, unless it says otherwise.
func (rt *route) resolved() idem.Resolver {
	if rt.resolver == nil {
		return nil
	}
	return func(ctx context.Context, c idem.Claim) (idem.Ending, error) {
		ending, err := rt.resolver(ctx, c)
		return keeping(ending, rt.keep), err
	}
}

func keeping(e idem.Ending, keep time.Duration) idem.Ending {
	if e.Result.Keep == 0 && !redirect(e.Result.Status) {
		e.Result.Keep = keep
	}
	return e
}

// execute lets the engine run the handler, or answer for it.
func (s *submission) execute(call idem.Call, next http.Handler) {
	rec := newRecorder(s.w, s.responseLimit)
	engine := s.engine
	if s.drop {
		engine = s.entrance
	}
	reply, err := engine.Do(s.r.Context(), call, func(ctx context.Context) idem.Ending {
		said := &verdict{}
		ctx = context.WithValue(ctx, verdictKey{}, said)
		if s.byToken {
			ctx = s.embedding(ctx, rec, said)
		}
		s.run(rec, next, s.r.WithContext(ctx))
		return s.ending(rec, said)
	})
	if s.drop && err == nil && !reply.Replayed && reply.State == idem.Succeeded {
		s.dropKey(*reply.Claim)
	}
	s.answer(rec, reply, err)
}

// embedding lets the answer embed tokens. A form of the same action that is shown again keeps its request id, unless the handler has said by then
// that it succeeded: what follows a success is another intention.
func (s *submission) embedding(ctx context.Context, rec *recorder, said *verdict) context.Context {
	p := s.newPage(s.w, s.r, s.caller)
	p.attach(rec)
	p.current = func(action string) string {
		if action != s.businessType || (said.state == "" && rec.status != 0 && rec.status < http.StatusBadRequest) {
			return ""
		}
		return s.token.claims.RequestID
	}
	return p.in(ctx)
}

func (s *submission) run(rec *recorder, next http.Handler, r *http.Request) {
	s.handed = s.hand(r)
	next.ServeHTTP(rec, s.handed)
	if err := rec.prepare(); err != nil {
		s.unstored = err
	}
}

// ending is the outcome by status, unless the handler overruled it.
func (s *submission) ending(rec *recorder, said *verdict) idem.Ending {
	status := rec.answered()
	ending := idem.Ending{State: said.of(status), Reason: http.StatusText(status)}
	switch {
	case ending.State != idem.Succeeded:
	case s.drop:
		ending.Result.Status = status
	default:
		ending.Result = rec.result(s.cookies)
		if !redirect(status) {
			ending.Result.Keep = s.keep
		}
	}
	return ending
}

// answer sends what came of it. Bytes that have left before a finish that failed cannot be taken back: the connection is.
func (s *submission) answer(rec *recorder, reply idem.Reply, err error) {
	switch {
	case rec.left && (err != nil || reply.Replayed || s.unstored != nil):
		panic(http.ErrAbortHandler)
	case err != nil:
		s.refuseFor(reply, err)
	case reply.Replayed:
		replay(s.w, reply.Result)
	case s.unstored != nil && reply.State != idem.Succeeded && !rec.left:
		s.refuse(refuse(StoreUnavailable).because(s.unstored))
	default:
		if err := rec.finish(); err != nil && !rec.left { // it was done, and its page cannot be shown
			s.refuse(refuse(OutcomeUnknown).because(err))
		}
	}
}

// refuseFor refuses because of what the engine returned.
func (s *submission) refuseFor(reply idem.Reply, err error) {
	if left := s.r.Context().Err(); left != nil && errors.Is(err, left) {
		// The client left while it waited, and reads nothing - or a deadline of a middleware has passed, and it does.
		s.refuse(refuse(StoreUnavailable))
		return
	}
	s.refuse(refused(reply, err))
}
