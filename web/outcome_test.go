package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// panics runs the handler and returns what it panicked with.
func panics(h http.Handler, r *http.Request) (rec *httptest.ResponseRecorder, with any) {
	rec = httptest.NewRecorder()
	defer func() { with = recover() }()
	h.ServeHTTP(rec, r)
	return rec, nil
}

func TestOutcomeByStatus(t *testing.T) {
	t.Parallel()
	const succeeded, failed = true, false
	for name, c := range map[string]struct {
		then   func(w http.ResponseWriter, r *http.Request)
		status int
		kept   bool
	}{
		"200":        {then: status(200), status: 200, kept: succeeded},
		"201":        {then: status(201), status: 201, kept: succeeded},
		"204":        {then: status(204), status: 204, kept: succeeded},
		"299":        {then: status(299), status: 299, kept: succeeded},
		"303":        {then: status(303), status: 303, kept: succeeded},
		"304":        {then: status(304), status: 304, kept: succeeded},
		"399":        {then: status(399), status: 399, kept: succeeded},
		"400":        {then: status(400), status: 400, kept: failed},
		"422":        {then: status(422), status: 422, kept: failed},
		"499":        {then: status(499), status: 499, kept: failed},
		"500":        {then: status(500), status: 500, kept: failed},
		"503":        {then: status(503), status: 503, kept: failed},
		"599":        {then: status(599), status: 599, kept: failed},
		"no status":  {then: func(http.ResponseWriter, *http.Request) {}, status: 200, kept: succeeded},
		"body alone": {then: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }, status: 200, kept: succeeded},
		"two statuses": {then: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusInternalServerError)
		}, status: 201, kept: succeeded},
		"early hints": {then: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		}, status: 201, kept: succeeded},
		"hints alone": {then: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, status: 200, kept: succeeded},
		"hints, failure": {then: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusUnprocessableEntity)
		}, status: 422, kept: failed},
		"rejected 200": {then: func(w http.ResponseWriter, r *http.Request) { web.Reject(r.Context()); w.WriteHeader(http.StatusOK) }, status: 200, kept: failed},
		"rejected 303": {then: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusSeeOther)
			web.Reject(r.Context())
		}, status: 303, kept: failed},
		"unknown 200": {then: func(w http.ResponseWriter, r *http.Request) { web.Unknown(r.Context()) }, status: 200, kept: failed},
		"unknown 504": {then: func(w http.ResponseWriter, r *http.Request) {
			web.Unknown(r.Context())
			w.WriteHeader(http.StatusGatewayTimeout)
		}, status: 504, kept: failed},
		"unknown, reject": {then: func(w http.ResponseWriter, r *http.Request) { web.Unknown(r.Context()); web.Reject(r.Context()) }, status: 200, kept: failed},
	} {
		for _, stores := range []string{"both", "store", "ledger", "same transaction"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				var options []web.Option
				if stores == "same transaction" {
					options = append(options, web.SameTx())
				}
				token := f.token("order.create").Token
				h := &work{then: c.then}
				guarded := f.guard.Token("order.create", options...)(h)
				first := f.do(guarded, f.order(token))
				if first.Header().Get(replayed) != "" || first.Code != c.status {
					t.Fatalf("answered %d", first.Code)
				}
				second := f.do(guarded, f.order(token))
				if replay := second.Header().Get(replayed) == "true"; replay != c.kept || second.Code != c.status {
					t.Errorf("then %d, replayed %v", second.Code, replay)
				}
				runs, attempt := 1, 1
				if !c.kept {
					runs, attempt = 2, 2
				}
				if stores == "same transaction" {
					attempt = 1
				}
				h.ran(t, runs)
				if int(h.attempt.Load()) != attempt {
					t.Errorf("attempt %d, want %d", h.attempt.Load(), attempt)
				}
			})
		}
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestPanicFailsAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(w http.ResponseWriter){
		"a value":               func(http.ResponseWriter) { panic("boom") },
		"abort":                 func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"behind a status":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); panic("boom") },
		"a status that is none": func(w http.ResponseWriter) { w.WriteHeader(99) },
		"status zero":           func(w http.ResponseWriter) { w.WriteHeader(0) },
		"status 1000":           func(w http.ResponseWriter) { w.WriteHeader(1000) },
	} {
		for _, stores := range []string{"both", "store", "ledger", "same transaction"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				var options []web.Option
				if stores == "same transaction" {
					options = append(options, web.SameTx())
				}
				token := f.token("order.create").Token
				h := &work{then: func(w http.ResponseWriter, _ *http.Request) { c(w) }}
				guarded := f.guard.Token("order.create", options...)(h)
				if _, with := panics(guarded, f.order(token)); with == nil {
					t.Fatal("the panic was swallowed")
				} else if name == "abort" && with != any(http.ErrAbortHandler) {
					t.Errorf("panicked with %v", with)
				}
				h.then = nil
				executed(t, f.do(guarded, f.order(token, body(`{"item":"corrected"}`))), 201)
				h.ran(t, 2)
			})
		}
	}
}

// After failure another payload may follow; after an unknown outcome it may not.
func TestPayloadAfterFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(w http.ResponseWriter, r *http.Request)
		free bool
	}{
		"422":      {then: status(422), free: true},
		"500":      {then: status(500), free: true},
		"rejected": {then: func(_ http.ResponseWriter, r *http.Request) { web.Reject(r.Context()) }, free: true},
		"unknown":  {then: func(_ http.ResponseWriter, r *http.Request) { web.Unknown(r.Context()) }},
		"success":  {then: status(201)},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := &work{then: c.then}
				guarded := f.guard.Token("order.create")(h)
				f.do(guarded, f.order(token))
				h.then = nil
				rec := f.do(guarded, f.order(token, body(`{"item":"coffee"}`)))
				if c.free {
					executed(t, rec, 201)
					return
				}
				refused(t, rec, 422, web.PayloadMismatch)
				h.ran(t, 1)
				if rec := f.do(guarded, f.order(token)); rec.Code != 201 {
					t.Errorf("the first payload: %d %s", rec.Code, rec.Body)
				}
			})
		}
	}
}

func TestResolver(t *testing.T) {
	t.Parallel()
	kept := idem.Result{Status: 201, Header: [][2]string{{"Location", "/refunds/7"}}, Body: []byte("done"), Kept: true}
	for name, c := range map[string]struct {
		first  func(w http.ResponseWriter, r *http.Request)
		says   idem.Ending
		err    error
		status int
		code   string // of a refusal
		runs   int32
		later  int // status of the call after that
	}{
		"done":             {first: unknown, says: idem.Ending{State: idem.Succeeded, Result: kept}, status: 201, runs: 1, later: 201},
		"done, 5xx before": {first: status(500), says: idem.Ending{State: idem.Succeeded, Result: kept}, status: 201, runs: 1, later: 201},
		"done, not kept":   {first: unknown, says: idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201}}, status: 409, code: web.AlreadyDone, runs: 1, later: 409},
		"done, no result":  {first: unknown, says: idem.Ending{State: idem.Succeeded}, status: 409, code: web.AlreadyDone, runs: 1, later: 409},
		"done, no status":  {first: unknown, says: idem.Ending{State: idem.Succeeded, Result: idem.Result{Kept: true, Body: []byte("{}")}}, status: 200, runs: 1, later: 200},
		"not done":         {first: unknown, says: idem.Ending{State: idem.Failed}, status: 201, runs: 2, later: 201},
		"cancelled":        {first: unknown, says: idem.Ending{State: idem.Cancelled}, status: 409, code: web.Cancelled, runs: 1, later: 409},
		"cannot say":       {first: unknown, err: errors.New("gateway: secret detail"), status: 503, code: web.StoreUnavailable, runs: 1, later: 503},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				asked := 0
				h := &work{then: c.first}
				guarded := f.guard.Token("order.create", web.Resolver(func(_ context.Context, claim idem.Claim) (idem.Ending, error) {
					asked++
					if claim.Attempt < 2 || claim.OutboundKey() == "" {
						t.Errorf("asked about %+v", claim)
					}
					return c.says, c.err
				}))(h)
				executed(t, f.do(guarded, f.order(token)), f.do(h.only(), f.order(token)).Code)
				if asked != 0 {
					t.Errorf("asked %d times before the second attempt", asked)
				}
				h.then = nil
				h.runs.Store(1)
				rec := f.do(guarded, f.order(token))
				if c.code != "" {
					refused(t, rec, c.status, c.code)
				} else if rec.Code != c.status {
					t.Fatalf("answered %d %s", rec.Code, rec.Body)
				}
				if h.runs.Load() != c.runs || asked != 1 {
					t.Errorf("ran %d times, asked %d times", h.runs.Load(), asked)
				}
				if rec := f.do(guarded, f.order(token)); rec.Code != c.later {
					t.Errorf("later %d %s", rec.Code, rec.Body)
				}
			})
		}
	}
}

// What a resolver tells is kept for as long as the route keeps an answer.
func TestResolvedResultIsKeptLikeAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	says := idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Body: []byte("done"), Kept: true}}
	h := &work{then: unknown}
	guarded := f.guard.Token("order.create", web.ResultRetention(time.Hour), web.Retention(48*time.Hour),
		web.Resolver(func(context.Context, idem.Claim) (idem.Ending, error) { return says, nil }))(h)
	token := f.token("order.create").Token
	f.do(guarded, f.order(token))
	if rec := f.do(guarded, f.order(token)); rec.Code != 201 || rec.Body.String() != "done" {
		t.Fatalf("resolved: %d %s", rec.Code, rec.Body)
	}
	f.settle()
	f.clock.advance(2 * time.Hour)
	refused(t, f.do(guarded, f.order(token)), 409, web.AlreadyDone)
}

func unknown(w http.ResponseWriter, r *http.Request) {
	web.Unknown(r.Context())
	w.WriteHeader(http.StatusGatewayTimeout)
}

// only is the handler's answer without a guard.
func (h *work) only() http.Handler { return h.then }

func TestVerdictsOutsideOfGuardedWork(t *testing.T) {
	t.Parallel()
	web.Reject(t.Context())
	web.Unknown(t.Context())
}
