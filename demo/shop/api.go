package shop

import (
	"context"
	"net/http"

	"github.com/idemkit/idem"
)

// maxAmount keeps sums far from overflow.
const maxAmount = 1_000_000_000

// maxName is the most characters of an order's, a refund's or an account's name.
const maxName = 100

// readOrder answers by itself where the body is no order.
func (s *shop) readOrder(w http.ResponseWriter, r *http.Request) (order, bool) {
	body, err := readObject(w, r, "item", "quantity")
	if err != nil {
		s.invalid(w, err)
		return order{}, false
	}
	o := order{Item: body.text("item", maxItem), Quantity: body.whole("quantity", 1, maxQuantity)}
	if len(body.wrong) > 0 {
		s.unprocessable(w, body.wrong)
		return order{}, false
	}
	return o, true
}

// place writes an order in the transaction that the guard commits together with its record. It begins after what is slow, for on SQLite it keeps every
// other writer waiting. The status is that of an attempt which is to fail; 0: it is not.
func (s *shop) place(ctx context.Context, o *order) (int, error) {
	if err := faultsFrom(ctx).wait(ctx); err != nil {
		return 0, err
	}
	tx, err := s.storage.guarded(ctx)
	if err != nil {
		return 0, err
	}
	o.Attempt = idem.FromContext(ctx).Attempt
	if err := s.storage.insert(ctx, tx, o); err != nil {
		return 0, err
	}
	if err := s.storage.announce(ctx, tx, *o); err != nil {
		return 0, err
	}
	return s.strike(ctx), nil // after the write: what the transaction holds goes with it
}

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	o, ok := s.readOrder(w, r)
	if !ok {
		return
	}
	switch status, err := s.place(r.Context(), &o); {
	case err != nil:
		s.fail(w, r, err)
	case status != 0:
		s.writeProblem(w, status, struck, nil)
	default:
		s.created(w, o)
	}
}

func (s *shop) created(w http.ResponseWriter, o order) {
	w.Header().Set("Location", o.URL())
	s.writeJSON(w, http.StatusCreated, o)
}

// placeUnguarded is what every shop has that never thought about it. Like most work it does not notice that the client has left, which is what a
// browser does to the first of two submissions of a form.
func (s *shop) placeUnguarded(ctx context.Context, o *order) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), idem.DefaultLimit)
	defer cancel()
	if err := faultsFrom(ctx).wait(ctx); err != nil {
		return err
	}
	return s.storage.insert(ctx, s.storage.plain, o)
}

func (s *shop) postUnguarded(w http.ResponseWriter, r *http.Request) {
	o, ok := s.readOrder(w, r)
	if !ok {
		return
	}
	if err := s.placeUnguarded(r.Context(), &o); err != nil {
		s.fail(w, r, err)
		return
	}
	s.created(w, o)
}

func (s *shop) listOrders(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	item := r.URL.Query().Get("item")
	if item == "" {
		s.writeProblem(w, http.StatusBadRequest, "Name the item whose orders you want: /api/orders?item=teapot", nil)
		return
	}
	count, orders, err := s.storage.ordersOf(r.Context(), item)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.writeJSON(w, http.StatusOK, struct {
		Count  int     `json:"count"`
		Orders []order `json:"orders"`
	}{count, orders})
}

func (s *shop) listAccounts(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	accounts, err := s.storage.accounts(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.writeJSON(w, http.StatusOK, struct {
		Accounts []account `json:"accounts"`
	}{accounts})
}
