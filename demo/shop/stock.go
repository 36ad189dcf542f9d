package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/web"
)

// errFenced says that a later holder of the lock has been here.
var errFenced = errors.New("shop: a later holder of the lock has been here")

// stock is what there is of a thing, with the number of the lock under which it was read or written.
type stock struct {
	SKU   string `json:"sku"`
	Stock int64  `json:"stock"`
	Fence int64  `json:"fence"`
}

func (s *shop) postStock(w http.ResponseWriter, r *http.Request) {
	body, err := readObject(w, r, "sku", "delta")
	if err != nil {
		s.invalid(w, err)
		return
	}
	sku, delta := body.text("sku", maxName), body.whole("delta", -maxAmount, maxAmount)
	if len(body.wrong) > 0 {
		s.unprocessable(w, body.wrong)
		return
	}
	switch found, status, err := s.change(r.Context(), sku, delta); {
	case errors.Is(err, errFenced):
		s.guard.Refuse(w, r, web.ClaimLost, 0)
	case errors.Is(err, errUnsure):
		s.unsure(w, r, err)
	case err != nil:
		s.fail(w, r, err)
	case status != 0:
		s.writeProblem(w, status, struckEach, nil)
	default:
		s.writeJSON(w, http.StatusOK, found)
	}
}

// lost reports whether the lock went before the work had ended.
func lost(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, idem.ErrClaimLost) || errors.Is(cause, idem.ErrLeaseExpired) || errors.Is(cause, idem.ErrHeldTooLong)
}

// change reads, is as slow as it is asked to be, and writes: two at once would lose one of the changes. The lock keeps them apart, and where it
// cannot - Redis forgot it, the process stood still for longer than the lease - the fence does.
func (s *shop) change(ctx context.Context, sku string, delta int64) (stock, int, error) {
	fence := web.LockFrom(ctx).Fence
	if delta == 0 {
		found, err := s.storage.stock(ctx, sku)
		found.Fence = fence
		return found, 0, errors.Join(err, faultsFrom(ctx).wait(ctx))
	}
	found, err := s.storage.fence(ctx, sku, fence)
	if err == nil {
		err = faultsFrom(ctx).wait(ctx)
	}
	switch {
	case err != nil && lost(ctx):
		return stock{}, 0, errFenced // it is not worth trying
	case err != nil:
		return stock{}, 0, err
	}
	if status := s.strikeEach(ctx); status != 0 {
		return stock{}, status, nil
	}
	found.Stock += delta
	return found, 0, s.storage.writeStock(ctx, found)
}

// stock of what nobody has written yet is none.
func (s *Storage) stock(ctx context.Context, sku string) (stock, error) {
	found := stock{SKU: sku}
	err := first(ctx, s.plain, `SELECT stock, fence FROM shop_stock WHERE sku = $1`, []any{&found.Stock, &found.Fence}, sku)
	if err != nil && !errors.Is(err, errNotFound) {
		return found, fmt.Errorf("shop: reading the stock: %w", err)
	}
	return found, nil
}

// fence shows the number of the lock and reads what there is then: whoever holds a lower number can write no more, so nobody changes what was read but
// a later holder. errFenced: there has been one.
func (s *Storage) fence(ctx context.Context, sku string, fence int64) (stock, error) {
	shown, err := s.plain.exec(ctx, `INSERT INTO shop_stock (sku, stock, fence) VALUES ($1, 0, $2)
		ON CONFLICT (sku) DO UPDATE SET fence = excluded.fence WHERE shop_stock.fence <= excluded.fence`, sku, fence)
	if err != nil {
		return stock{}, fmt.Errorf("shop: showing the fence: %w", err)
	}
	if shown == 0 {
		return stock{}, errFenced
	}
	found, err := s.stock(ctx, sku)
	if err == nil && found.Fence > fence {
		err = errFenced
	}
	return found, err
}

// stockLimit bounds a write that the end of its context does not end.
const stockLimit = 5 * time.Second

// writeStock does not end with the context: a write that was broken off may have happened, and the fence is the one to refuse it.
func (s *Storage) writeStock(ctx context.Context, to stock) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stockLimit)
	defer cancel()
	written, err := s.plain.exec(ctx, `UPDATE shop_stock SET stock = $1 WHERE sku = $2 AND fence <= $3`, to.Stock, to.SKU, to.Fence)
	switch {
	case err != nil:
		return fmt.Errorf("%w: writing the stock: %w", errUnsure, err)
	case written == 0:
		return errFenced
	}
	return nil
}
