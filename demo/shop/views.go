package shop

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

func (s *shop) index(w http.ResponseWriter, r *http.Request) {
	s.page(w, r, http.StatusOK, indexPage(s.site, r.Host))
}

func (s *shop) spa(w http.ResponseWriter, r *http.Request) {
	s.page(w, r, http.StatusOK, spaPage(s.site))
}

// doubleClick names two items that nobody else orders, so that what each button made can be counted.
func (s *shop) doubleClick(w http.ResponseWriter, r *http.Request) {
	view := strings.TrimPrefix(newOrderID(), "o-")
	s.page(w, r, http.StatusOK, doubleClickPage(s.site, "teapot "+view+unguardedTeapot, "teapot "+view+guardedTeapot))
}

const (
	unguardedTeapot = " unguarded"
	guardedTeapot   = " guarded"
)

// ownTeapot is one of doubleClick's: ordered twice, it is a duplicate. Others may be ordered by anybody as often as they like.
func ownTeapot(item string) bool {
	return strings.HasPrefix(item, "teapot ") && (strings.HasSuffix(item, unguardedTeapot) || strings.HasSuffix(item, guardedTeapot))
}

func (s *shop) receipt(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store") // how often the item was ordered changes
	o, err := s.storage.order(r.Context(), chi.URLParam(r, "id"))
	if errors.Is(err, errNotFound) {
		s.refuse(w, r, http.StatusNotFound, "Nothing was ordered under this number.")
		return
	}
	times, earned := 0, reward{}
	if err == nil {
		times, _, err = s.storage.ordersOf(r.Context(), o.Item)
	}
	if err == nil {
		earned, err = s.storage.reward(r.Context(), o.ID)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.page(w, r, http.StatusOK, receiptPage(s.site, o, times, earned))
}

// withDelay is a URL that passes the parameter delay of this request on.
func withDelay(r *http.Request, path string, parameters url.Values) string {
	if delay := r.URL.Query().Get("delay"); delay != "" {
		parameters.Set("delay", delay)
	}
	if len(parameters) == 0 {
		return path
	}
	return path + "?" + parameters.Encode()
}
