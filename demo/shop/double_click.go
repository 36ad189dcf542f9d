package shop

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// view is one person's page of /double-click. Nobody else orders its two items, so that what each button made can be counted.
type view struct {
	id                 string
	unguarded, guarded side
}

// side is one button, and what the shop knows of it.
type side struct {
	name, item string
	count      int
	orders     []order // the first ones
}

func newView(id string) view {
	named := func(name string) side { return side{name: name, item: "teapot " + id + " " + name} }
	return view{id: id, unguarded: named("unguarded"), guarded: named("guarded")}
}

// isView: it is as newOrderID makes it.
func isView(id string) bool {
	return len(id) == 10 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// viewOf is the view whose teapot this is; false: it is something else, which anybody may order as often as they like.
func viewOf(item string) (view, bool) {
	id, found := strings.CutPrefix(item, "teapot ")
	id, _, _ = strings.Cut(id, " ")
	v := newView(id)
	return v, found && isView(id) && (item == v.unguarded.item || item == v.guarded.item)
}

// doubleClick shows what the buttons of a view made so far. Without an id it is a new one.
func (s *shop) doubleClick(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("view")
	if !isView(id) {
		id = strings.TrimPrefix(newOrderID(), "o-")
	}
	v := newView(id)
	for _, d := range []*side{&v.unguarded, &v.guarded} {
		if err := s.look(r.Context(), d); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	s.page(w, r, http.StatusOK, doubleClickPage(s.site, v))
}

func (s *shop) look(ctx context.Context, d *side) (err error) {
	d.count, d.orders, err = s.storage.ordersOf(ctx, d.item)
	return err
}

func (v view) url() string { return "/double-click?view=" + v.id }

// requestID has the form keep its intention when the page comes back: another click is a replay, and no second order.
func (v view) requestID() string { return "double-click-form." + v.id }

func (v view) ordered() bool { return v.unguarded.count+v.guarded.count > 0 }

func (v view) verdict() string {
	return fmt.Sprintf("The button without a guard made %s, the one with idem %s.", times(v.unguarded.count), times(v.guarded.count))
}

func times(orders int) string { return fmt.Sprintf("%d %s", orders, plural(orders, "order")) }

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}
