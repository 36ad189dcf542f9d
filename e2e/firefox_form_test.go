package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// TestFirefoxReloadsAFormMadeByHand: its hidden field has no autocomplete="off". The token that the client put in while somebody typed is not brought
// back, although what was typed is (rails#43280).
func TestFirefoxReloadsAFormMadeByHand(t *testing.T) {
	t.Parallel()
	secret, err := tokens.GenerateHS256("hand")
	must(t, err)
	keys, err := tokens.ParseKeys(secret)
	must(t, err)
	issuer, err := tokens.New(tokens.Config{Keys: keys, TTL: 2 * time.Second})
	must(t, err)
	guard, err := web.New(web.Config{Tokens: issuer, Store: memstore.New(memstore.Options{})})
	must(t, err)
	r := chi.NewRouter()
	r.Mount("/idem", guard.Routes())
	r.With(guard.Forms).Get("/", madeByHand)
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.ServeHTTP(storable{w}, q)
	}))
	t.Cleanup(l.Close)

	f := &firefox{&visitor{T: t}, drive(t)}
	f.do("open")
	f.do("goto", l.URL)
	first := f.text(tokenShown)
	f.enter("note", "as typed")
	f.until(tokenShown + fmt.Sprintf(` !== %q`, first))
	f.do("reload")
	if note := f.text(`document.getElementById("note").value`); note != "as typed" {
		t.Errorf("the note is %q: nothing is restored here", note)
	}
	// The request id tells a token that was brought back from one that was renewed since.
	intention := func(token string) string {
		return f.text(`JSON.parse(atob(` + token + `.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).rid`)
	}
	if now, served := intention(tokenShown), intention(`document.querySelector("[name=idempotent_token]").dataset.shown`); now != served {
		t.Errorf("after the reload the token is for %s, and the server's is for %s", now, served)
	}
}

// storable lets browsers keep the page.
type storable struct{ http.ResponseWriter }

func (w storable) WriteHeader(status int) {
	w.Header().Del("Cache-Control")
	w.ResponseWriter.WriteHeader(status)
}

func madeByHand(w http.ResponseWriter, r *http.Request) {
	page, err := templates.PageFrom(r.Context())
	if err != nil {
		panic(err)
	}
	token, err := page.Issuer.Token(r.Context(), "note.save", "")
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><script type="module" src="%s"></script><form method="post" data-idem>
		<input type="hidden" name="idempotent_token" value="%s" data-shown="%[2]s"><textarea id="note" name="note"></textarea></form>`,
		page.Assets.ScriptURL(), token.Value)
}
