package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/idemkit/idem"
)

// refund is what the gateway was asked for and, once it answered, what became of it.
type refund struct {
	RefundNo string `json:"refundNo"`
	OrderNo  string `json:"orderNo"`
	Amount   int64  `json:"amount"`
	State    string `json:"state"`
	Attempt  int    `json:"attempt"` // of the claim under which its answer was recorded
}

// refunded is the state of a refund that the gateway has made.
const refunded = "refunded"

// send asks the pretended gateway for a refund. It commits on its own, like any service elsewhere, and like a good one it makes a refund once: the
// same key again gets the first.
func (s *Storage) send(ctx context.Context, outboundKey string, r refund) (refund, error) {
	_, err := s.plain.exec(ctx, `INSERT INTO shop_gateway (outbound_key, refund_no, order_no, amount, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (outbound_key) DO NOTHING`, outboundKey, r.RefundNo, r.OrderNo, r.Amount, s.millis())
	if err != nil {
		return refund{}, fmt.Errorf("shop: sending to the gateway: %w", err)
	}
	return s.sent(ctx, outboundKey)
}

// sent asks the gateway what it knows of a key; errNotFound: nothing.
func (s *Storage) sent(ctx context.Context, outboundKey string) (refund, error) {
	r := refund{State: refunded}
	err := first(ctx, s.plain, `SELECT refund_no, order_no, amount FROM shop_gateway WHERE outbound_key = $1`,
		[]any{&r.RefundNo, &r.OrderNo, &r.Amount}, outboundKey)
	if err != nil && !errors.Is(err, errNotFound) {
		err = fmt.Errorf("shop: asking the gateway: %w", err)
	}
	return r, err
}

// askGateway is the resolver of refunds: after an attempt that did not come to its end only the gateway knows whether the money went.
func (s *Storage) askGateway(ctx context.Context, c idem.Claim) (idem.Ending, error) {
	r, err := s.sent(ctx, c.OutboundKey())
	switch {
	case errors.Is(err, errNotFound):
		return idem.Ending{State: idem.Failed, Reason: "the gateway knows nothing of it"}, nil
	case err != nil:
		return idem.Ending{}, err
	}
	r.Attempt = c.Attempt
	body, err := json.Marshal(r)
	if err != nil {
		return idem.Ending{}, err
	}
	return idem.Ending{State: idem.Succeeded, Result: idem.Result{
		Status: http.StatusCreated, Header: [][2]string{{"Content-Type", jsonType}}, Body: append(body, '\n'), Kept: true, Keep: idem.DefaultResultRetention,
	}}, nil
}
