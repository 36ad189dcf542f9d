package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/idemkit/idem/web"
)

// paymentWindow is how long a second payment of one order through one channel counts as the first one again.
const paymentWindow = 10 * time.Second

// payment is what another service reports, with neither token nor key.
type payment struct {
	OrderNo        string `json:"orderNo"`
	PaymentChannel string `json:"paymentChannel"`
	Amount         int64  `json:"amount"`
}

func (s *shop) postPayment(w http.ResponseWriter, r *http.Request) {
	body, err := readObject(w, r, "orderNo", "paymentChannel", "amount")
	if err != nil {
		s.invalid(w, err)
		return
	}
	p := payment{OrderNo: body.text("orderNo", maxName), PaymentChannel: body.text("paymentChannel", maxName), Amount: body.whole("amount", 1, maxAmount)}
	if len(body.wrong) > 0 {
		s.unprocessable(w, body.wrong)
		return
	}
	switch status, err := s.pay(r.Context(), p); {
	case errors.Is(err, errUnsure):
		web.Unknown(r.Context()) // the window stays closed
		s.unsure(w, r, err)
	case err != nil:
		s.fail(w, r, err)
	case status != 0:
		s.writeProblem(w, status, struckEach, nil)
	default:
		s.writeJSON(w, http.StatusCreated, p)
	}
}

// pay fails before it writes: a window has no transaction that would take the payment back.
func (s *shop) pay(ctx context.Context, p payment) (int, error) {
	if err := faultsFrom(ctx).wait(ctx); err != nil {
		return 0, err
	}
	if status := s.strikeEach(ctx); status != 0 {
		return status, nil
	}
	return 0, s.storage.pay(ctx, p)
}

func (s *Storage) pay(ctx context.Context, p payment) error {
	_, err := s.plain.exec(ctx, `INSERT INTO shop_payment (order_no, payment_channel, amount, created_at) VALUES ($1, $2, $3, $4)`,
		p.OrderNo, p.PaymentChannel, p.Amount, s.millis())
	if err != nil {
		return fmt.Errorf("%w: writing a payment: %w", errUnsure, err)
	}
	return nil
}
