package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// manyFields is as many fields as 10 MiB can hold. They are not kept one by one, and no page gives them back: it would be fifty times as large.
func manyFields() string { return strings.Repeat("&a", 5_000_000) }

func TestFormOfManyFields(t *testing.T) {
	t.Parallel()
	t.Run("is not given back", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		guarded, token := f.orderForm(nil), f.token("order.create").Token
		f.clock.advance(time.Hour)
		rec := f.do(guarded, f.typed("/orders", token, manyFields()))
		if form := f.offered(rec, 409, web.TokenExpired); form != nil || rec.Body.Len() > 64<<10 {
			t.Errorf("offered %v on a page of %d bytes", form, rec.Body.Len())
		}
	})
	t.Run("has its fingerprint", func(t *testing.T) {
		t.Parallel()
		for name, body := range map[string]struct{ contentType, first, other string }{
			"urlencoded": {urlencoded, "n=1" + manyFields(), "n=1" + manyFields() + "&b"},
			"multipart":  {"multipart/form-data; boundary=b", manyParts("1"), manyParts("2")},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				guarded := f.guard.Key("order", web.FormKey("n"), web.Anonymous())(f.handler)
				first := f.do(guarded, f.request("/orders", body.contentType, body.first))
				executed(t, first, http.StatusCreated)
				repeats(t, f.do(guarded, f.request("/orders", body.contentType, body.first)), first)
				refused(t, f.do(guarded, f.request("/orders", body.contentType, body.other)), http.StatusUnprocessableEntity, web.PayloadMismatch)
			})
		}
	})
}

// manyParts ends with a part that nobody reads.
func manyParts(last string) string {
	const part = "--b\r\nContent-Disposition: form-data; name=n\r\n\r\n1\r\n"
	return part + strings.Repeat("--b\r\n\r\n\r\n", 40_000) + "--b\r\n\r\n" + last + "\r\n--b--\r\n"
}

// A page and the token service do not wait for a store that hangs: its client may have no time-out of its own.
func TestIssuingToAFrozenStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.store.onBefore("Issue", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		rec := httptest.NewRecorder()
		f.routes.ServeHTTP(rec, f.request("/idem/token", "", ""))
		if rec.Code != http.StatusCreated {
			t.Errorf("answered %d %s", rec.Code, rec.Body)
		}
	})
}
