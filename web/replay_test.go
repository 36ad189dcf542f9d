package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

func TestReplayIsLineForLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then   func(w http.ResponseWriter)
		absent []string // of the lines that the handler set
		status int
	}{
		"201 with a location": {status: 201, then: func(w http.ResponseWriter) {
			w.Header().Set("Location", "/orders/1")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"b":1,  "a":2}`+"\n")
		}},
		"duplicate lines in order": {status: 200, then: func(w http.ResponseWriter) {
			w.Header()["X-Part"] = []string{"b", "a", "b", ""}
			w.Header().Add("Link", "</c>; rel=next")
			w.Header().Add("Link", "</a>; rel=prev")
		}},
		"bytes that are not text": {status: 200, then: func(w http.ResponseWriter) { _, _ = w.Write([]byte{0, 255, 10, 13, 0}) }},
		"empty":                   {status: 200, then: func(w http.ResponseWriter) {}},
		"written in pieces": {status: 200, then: func(w http.ResponseWriter) {
			for i := range 1000 {
				fmt.Fprintf(w, "%d,", i)
			}
		}},
		"no content":   {status: 204, then: func(w http.ResponseWriter) { w.Header().Set("X-A", "1"); w.WriteHeader(http.StatusNoContent) }},
		"not modified": {status: 304, then: func(w http.ResponseWriter) { w.Header().Set("Etag", `"a"`); w.WriteHeader(http.StatusNotModified) }},
		"content type of its own": {status: 200, then: func(w http.ResponseWriter) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<html>")
		}},
		"set cookie": {status: 200, absent: []string{"Set-Cookie"}, then: func(w http.ResponseWriter) {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s"})
		}},
		"hop by hop": {status: 200, absent: []string{"Connection", "Keep-Alive", "X-Hop", "Proxy-Authenticate", "Upgrade"}, then: func(w http.ResponseWriter) {
			for _, name := range []string{"Keep-Alive", "X-Hop", "Proxy-Authenticate", "Upgrade", "X-Stays"} {
				w.Header().Set(name, "1")
			}
			w.Header().Set("Connection", "x-hop, keep-alive")
		}},
		"date":                 {status: 200, absent: []string{"Date"}, then: func(w http.ResponseWriter) { w.Header().Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT") }},
		"largest that is kept": {status: 200, then: func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 256<<10)) }},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := &work{then: func(w http.ResponseWriter, _ *http.Request) { c.then(w) }}
				guarded := f.guard.Token("order.create")(h)
				first := f.do(guarded, f.order(token))
				executed(t, first, c.status)
				f.settle()
				second := f.do(guarded, f.order(token))
				repeats(t, second, first)
				want := first.Header().Clone()
				for _, name := range c.absent {
					want.Del(name)
				}
				want.Set(replayed, "true")
				got := second.Header().Clone()
				for _, h := range []http.Header{want, got} { // set to nothing is how a handler says that it wants none
					maps.DeleteFunc(h, func(_ string, lines []string) bool { return len(lines) == 0 })
				}
				if !maps.EqualFunc(want, got, slices.Equal) {
					t.Errorf("replayed\n%v, want\n%v", got, want)
				}
				h.ran(t, 1)
			})
		}
	}
}

func TestReplayOfRedirectHasNoBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		w.Header().Set("Location", "/orders/1")
		w.WriteHeader(http.StatusSeeOther)
		fmt.Fprint(w, "see there")
	}}
	guarded := f.guard.Token("order.create")(h)
	first := f.do(guarded, f.order(token))
	if first.Code != 303 || first.Body.String() != "see there" {
		t.Fatalf("answered %d %q", first.Code, first.Body)
	}
	rec := f.do(guarded, f.order(token))
	if rec.Code != 303 || rec.Body.Len() != 0 || rec.Header().Get("Location") != "/orders/1" || rec.Header().Get("Content-Length") == "9" {
		t.Errorf("replayed %d %q %v", rec.Code, rec.Body, rec.Header())
	}
}

func TestReplayedCookies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
	}}
	inner := f.guard.Token("order.create", web.ReplayCookies())(h)
	n := 0
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		http.SetCookie(w, &http.Cookie{Name: "outer", Value: fmt.Sprint(n)})
		inner.ServeHTTP(w, r)
	})
	for i := 1; i <= 3; i++ {
		rec := f.do(guarded, f.order(token))
		want := []string{fmt.Sprintf("outer=%d", i), "a=1", "b=2"}
		if got := rec.Header()["Set-Cookie"]; !slices.Equal(got, want) {
			t.Errorf("answer %d: %q, want %q", i, got, want)
		}
	}
	h.ran(t, 1)
}

// What a middleware in front sets belongs to each answer, and is neither recorded nor doubled.
func TestOuterHeadersAreNotRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		w.Header().Set("X-Own", "1")
		w.Header().Del("X-Powered-By")
	}}
	inner := f.guard.Token("order.create")(h)
	n := 0
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("X-Trace", fmt.Sprint(n))
		w.Header().Set("Vary", "Origin")
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("X-Powered-By", "go")
		inner.ServeHTTP(w, r)
	})
	for i := 1; i <= 3; i++ {
		rec := f.do(guarded, f.order(token))
		got := rec.Header()
		if !slices.Equal(got["X-Trace"], []string{fmt.Sprint(i)}) || !slices.Equal(got["Vary"], []string{"Origin", "Accept"}) ||
			!slices.Equal(got["X-Frame-Options"], []string{"SAMEORIGIN"}) || !slices.Equal(got["X-Own"], []string{"1"}) {
			t.Errorf("answer %d: %v", i, got)
		}
		if i == 1 && got.Get("X-Powered-By") != "" {
			t.Errorf("the handler removed %v", got)
		}
	}
	h.ran(t, 1)
}

func TestResultRetention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		options []web.Option
		after   time.Duration
		kept    bool
	}{
		"within a day":              {status: 201, after: 23 * time.Hour, kept: true},
		"after a day":               {status: 201, after: 25 * time.Hour},
		"a redirect, for the month": {status: 303, after: 29 * 24 * time.Hour, kept: true},
		"an hour, set":              {status: 201, options: []web.Option{web.ResultRetention(time.Hour)}, after: 61 * time.Minute},
		"a week, set":               {status: 201, options: []web.Option{web.ResultRetention(7 * 24 * time.Hour)}, after: 6 * 24 * time.Hour, kept: true},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores))
				token := f.token("order.create").Token
				h := &work{then: status(c.status)}
				guarded := f.guard.Token("order.create", c.options...)(h)
				first := f.do(guarded, f.order(token))
				f.settle()
				f.clock.advance(c.after)
				second := f.do(guarded, f.order(token))
				if c.kept {
					repeats(t, second, first)
				} else if p := refused(t, second, 409, web.AlreadyDone); p.OriginalStatus != c.status || p.RetryAfter != 0 {
					t.Errorf("problem %+v", p)
				}
				h.ran(t, 1)
			})
		}
	}
}

func TestHeadersOfHintsAreNotOfARefusal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	h := &work{then: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	}}
	f.ledger.setFault("Tx.Complete", errAway)
	rec := f.do(f.guard.Token("order.create")(h), f.order(token))
	refused(t, rec, 503, web.OutcomeUnknown)
	if rec.Header().Get("Link") != "" {
		t.Errorf("header %v", rec.Header())
	}
}
