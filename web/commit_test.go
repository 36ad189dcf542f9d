package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// watched tells, when the first byte of an answer leaves, what the deciding store says of the operation by then.
type watched struct {
	*httptest.ResponseRecorder
	look  func() idem.State
	stood []idem.State
}

func (w *watched) see() {
	if len(w.stood) == 0 {
		w.stood = append(w.stood, w.look())
	}
}

func (w *watched) WriteHeader(status int)      { w.see(); w.ResponseRecorder.WriteHeader(status) }
func (w *watched) Write(p []byte) (int, error) { w.see(); return w.ResponseRecorder.Write(p) }

// No byte of a buffered answer leaves before the commit, nor before a failed claim is free again; those of a streamed one do.
func TestWhatStandsWhenTheAnswerLeaves(t *testing.T) {
	t.Parallel()
	made := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, strings.Repeat("x", 200<<10))
	}
	for name, c := range map[string]struct {
		then    http.HandlerFunc
		options []web.Option
		want    idem.State
		none    bool // no record: the transaction that it was in is rolled back, or not committed
	}{
		"success":                  {then: made, want: idem.Succeeded},
		"an empty success":         {then: status(204), want: idem.Succeeded},
		"same transaction":         {then: made, options: []web.Option{web.SameTx()}, want: idem.Succeeded},
		"refused":                  {then: status(422), want: idem.Failed},
		"failed":                   {then: status(500), want: idem.Failed},
		"rejected":                 {then: func(w http.ResponseWriter, r *http.Request) { web.Reject(r.Context()); w.WriteHeader(http.StatusOK) }, want: idem.Failed},
		"unknown":                  {then: unknown, want: idem.Processing},
		"failed, same transaction": {then: status(500), options: []web.Option{web.SameTx()}, none: true},
		"streamed":                 {then: func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, want: idem.Processing},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			if stores == "store" && len(c.options) > 0 {
				continue
			}
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create")
				w := &watched{ResponseRecorder: httptest.NewRecorder(), look: func() idem.State { return f.stands(t, token, stores, c.none) }}
				f.handler.then = c.then
				f.guard.Token("order.create", c.options...)(f.handler).ServeHTTP(w, f.order(token.Token))
				if len(w.stood) != 1 || w.stood[0] != c.want {
					t.Errorf("the record is %q when the answer leaves, want %q", w.stood, c.want)
				}
			})
		}
	}
}

// stands is the state in the store that decides.
func (f *fixture) stands(t *testing.T, token issued, stores string, none bool) idem.State {
	t.Helper()
	deciding := f.ledger.real
	if stores == "store" {
		deciding = f.store.real
	}
	subject := f.subject(token.Token)
	record, err := deciding.Lookup(t.Context(), idem.Request{
		Key: idem.Key{Type: "order.create", Scope: subject, ID: token.RequestID}, Subject: subject, RequestID: token.RequestID,
	})
	if err != nil && (!none || !errors.Is(err, idem.ErrNotFound)) {
		t.Errorf("the record: %v", err)
	}
	return record.State
}

// After the retention a key is free: the record is gone from every store, and the same submission is a new operation.
func TestRetentionEndsTheKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []web.Option
		change  func(*web.Config)
		within  time.Duration
		after   time.Duration
	}{
		"default":     {within: 719 * time.Hour, after: 721 * time.Hour},
		"the guard's": {change: func(c *web.Config) { c.Retention = time.Hour }, within: 59 * time.Minute, after: 61 * time.Minute},
		"the route's": {options: []web.Option{web.Retention(2 * time.Hour)}, within: 119 * time.Minute, after: 121 * time.Minute},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), func(config *web.Config) {
					if c.change != nil {
						c.change(config)
					}
				})
				guarded := f.guard.Key("transfer", web.HeaderKey("Idempotency-Key"), append(c.options, web.Anonymous())...)(f.handler)
				send := func() *httptest.ResponseRecorder {
					return f.do(guarded, keyed("application/json", "{}", header("Idempotency-Key", "k")))
				}
				executed(t, send(), 201)
				f.settle()
				f.clock.advance(c.within)
				if rec := send(); rec.Code == 201 && rec.Header().Get(replayed) == "" {
					t.Error("executed again within the retention")
				}
				f.clock.advance(c.after - c.within)
				if stores != "store" { // the janitor's work; time to live does it in the entrance
					if _, err := (idem.Janitor{Ledger: f.ledger.real}).Purge(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				executed(t, send(), 201)
				f.handler.ran(t, 2)
			})
		}
	}
}

// Of a changed payload whose first submission still runs the page says that, and does not say that it went through.
func TestMismatchPageWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores))
			f.handler = held()
			guarded := f.guard.Token("order.create")(f.handler)
			token := f.token("order.create").Token
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- f.do(guarded, f.typed("/orders", token, "item=tea")) }()
			<-f.handler.started
			rec := f.do(guarded, f.typed("/orders", token, "item=coffee"))
			form := f.offered(rec, 422, web.PayloadMismatch)
			if form == nil || form.value("item") != "coffee" || strings.Contains(rec.Body.String(), "went through") || !strings.Contains(rec.Body.String(), "being worked on") {
				t.Errorf("page %s", rec.Body)
			}
			close(f.handler.release)
			executed(t, <-first, 201)
		})
	}
}
