package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// What a ResponseController reaches through Unwrap is the server's own.
func TestResponseController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		deadline := time.Now().Add(time.Minute)
		if err := errors.Join(control.SetReadDeadline(deadline), control.SetWriteDeadline(deadline), control.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, "done")
	}
	s := f.serve(f.guard.Token("order.create")(f.handler))
	for range 2 {
		if answer, text, err := s.send(s.order(token)); err != nil || answer.StatusCode != http.StatusOK || text != "done" {
			t.Errorf("%v %q %v", answer, text, err)
		}
	}
	f.handler.ran(t, 1)
}

func TestWriteWhereThereIsNoBody(t *testing.T) {
	t.Parallel()
	for _, code := range []int{204, 304} {
		f := newFixture(t)
		token := f.token("order.create").Token
		f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("%d: wrote with %v", code, err)
			}
		}
		guarded := f.guard.Token("order.create")(f.handler)
		first := f.do(guarded, f.order(token))
		executed(t, first, code)
		repeats(t, f.do(guarded, f.order(token)), first)
	}
}

// A handler that takes away an outer middleware's cookies has lines of its own alone.
func TestCookiesOfAHandlerThatRemovesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token("order.create").Token
	f.handler.then = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Del("Set-Cookie")
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
	}
	inner := f.guard.Token("order.create", web.ReplayCookies())(f.handler)
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.handler.runs.Load() == 0 {
			http.SetCookie(w, &http.Cookie{Name: "outer", Value: "1"})
		}
		inner.ServeHTTP(w, r)
	})
	for range 2 {
		if got := f.do(guarded, f.order(token)).Header()["Set-Cookie"]; !slices.Equal(got, []string{"a=1"}) {
			t.Errorf("cookies %q", got)
		}
	}
}

// A key is found in a body that does not fit into memory.
func TestKeyOfASpooledBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	guarded := f.guard.Key("refund", web.JSONKey("no"), web.Anonymous())(f.handler)
	text := `{"note":"` + strings.Repeat("x", 2<<20) + `","no":7}`
	var first *httptest.ResponseRecorder
	for i := range 2 {
		rec := f.do(guarded, keyed("application/json", text))
		if i == 0 {
			executed(t, rec, 201)
			first = rec
		} else {
			repeats(t, rec, first)
		}
	}
}

// Whatever the answer, nothing is held behind it: flights and leases are gone with their calls.
func TestNothingIsHeldAfterTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) { // which ends only when every goroutine and timer of it has
		f := newFixture(t)
		guarded := f.guard.Token("order.create")(f.handler)
		for _, change := range []func(*http.Request){
			func(*http.Request) {},
			func(r *http.Request) { r.Header.Del("Cookie") },
			func(r *http.Request) { r.Header.Set(tokenHeader, "forged") },
			body("{}"),
			body(strings.Repeat("x", 11<<20)),
		} {
			token := f.token("order.create").Token
			f.do(guarded, f.order(token))
			f.do(guarded, f.order(token, change))
		}
		f.settle()
		extended := f.store.count("Extend") + f.ledger.count("Extend")
		pass(time.Hour)
		if n := f.store.count("Extend") + f.ledger.count("Extend"); n != extended {
			t.Errorf("%d leases are still renewed", n-extended)
		}
	})
}
