package shop

import (
	"context"
	"errors"
	"fmt"
)

// pointsEach is what one piece of an order earns.
const pointsEach = 10

// event says that something was ordered, and what it earns.
type event struct {
	OrderID string `json:"orderId"`
	Points  int64  `json:"points"`
}

// announce writes the order's event in the order's own transaction: there is neither without the other.
func (s *Storage) announce(ctx context.Context, in session, o order) error {
	_, err := in.exec(ctx, `INSERT INTO shop_outbox (order_id, points, created_at, due_at) VALUES ($1, $2, $3, $3)`,
		o.ID, pointsEach*o.Quantity, o.CreatedAt)
	if err != nil {
		return fmt.Errorf("shop: announcing an order: %w", err)
	}
	return nil
}

// firstResend is after how many milliseconds an event is published again, whose points nobody has granted by then. It rests for its own age in addition, so that
// one which cannot be handled comes less and less often; while the broker is away it does not.
const firstResend = 3000

// maxPublished is how many events are taken at a time.
const maxPublished = 100

// due takes events that are to be published now, oldest first, and puts their next time off. Several processes may do so at once: one of them gets an event.
func (s *Storage) due(ctx context.Context) ([]event, error) {
	type row struct {
		event
		due int64
	}
	var rows []row
	now := s.millis()
	err := s.plain.query(ctx, `SELECT order_id, points, due_at FROM shop_outbox WHERE due_at <= $1 ORDER BY due_at, order_id LIMIT $2`,
		func(scan scanner) error {
			var r row
			err := scan(&r.OrderID, &r.Points, &r.due)
			rows = append(rows, r)
			return err
		}, now, maxPublished)
	if err != nil {
		return nil, fmt.Errorf("shop: reading the outbox: %w", err)
	}
	var mine []event
	for _, r := range rows {
		n, err := s.plain.exec(ctx, `UPDATE shop_outbox SET due_at = $1 - created_at WHERE order_id = $2 AND due_at = $3`,
			now+firstResend+now, r.OrderID, r.due)
		if err != nil {
			return mine, fmt.Errorf("shop: taking from the outbox: %w", err)
		}
		if n == 1 {
			mine = append(mine, r.event)
		}
	}
	return mine, nil
}

// hurry has an event published again soon, whose publication failed.
func (s *Storage) hurry(ctx context.Context, e event) error {
	_, err := s.plain.exec(ctx, `UPDATE shop_outbox SET due_at = $1 WHERE order_id = $2`, s.millis()+firstResend, e.OrderID)
	if err != nil {
		return fmt.Errorf("shop: putting back into the outbox: %w", err)
	}
	return nil
}

// grant writes the points and takes the event from the outbox, in the transaction that records the message as handled. Until that commits the event is
// published again and again, whatever a broker, or this process, forgets.
func (s *Storage) grant(ctx context.Context, e event) error {
	tx, err := s.guarded(ctx)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `INSERT INTO shop_points (order_id, points, granted_at) VALUES ($1, $2, $3)`, e.OrderID, e.Points, s.millis())
	if err == nil {
		_, err = tx.exec(ctx, `DELETE FROM shop_outbox WHERE order_id = $1`, e.OrderID)
	}
	if err != nil {
		return fmt.Errorf("shop: granting points: %w", err)
	}
	return nil
}

// reward is what an order has earned, and what is still on its way. The zero value: nothing, as no guarded route took the order.
type reward struct{ Granted, Coming int64 }

func (r reward) String() string {
	if r.Granted == 0 {
		return fmt.Sprintf("%d points on their way", r.Coming)
	}
	return fmt.Sprintf("%d points granted", r.Granted)
}

func (s *Storage) reward(ctx context.Context, orderID string) (reward, error) {
	var r reward
	err := first(ctx, s.plain, `SELECT (SELECT CAST(coalesce(sum(points), 0) AS BIGINT) FROM shop_points WHERE order_id = $1),
		(SELECT CAST(coalesce(sum(points), 0) AS BIGINT) FROM shop_outbox WHERE order_id = $1)`, []any{&r.Granted, &r.Coming}, orderID)
	if err != nil && !errors.Is(err, errNotFound) {
		return r, fmt.Errorf("shop: reading points: %w", err)
	}
	return r, nil
}
