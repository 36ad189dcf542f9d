package shop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of an order.
const (
	maxQuantity = 99
	maxItem     = 200 // characters
	maxNote     = 500 // characters
	maxFileName = 120 // characters
)

// order is what was ordered and, once written, what became of it.
type order struct {
	ID             string `json:"id"`
	Item           string `json:"item"`
	Quantity       int64  `json:"quantity"`
	Attempt        int    `json:"attempt"` // of the claim that wrote it; 0: no guard counted
	Note           string `json:"-"`
	Attachment     string `json:"-"` // file name; empty: none
	AttachmentSize int64  `json:"-"` // bytes
	CreatedAt      int64  `json:"-"` // milliseconds since 1970
}

// newOrderID is readable over the phone and cannot be guessed: 50 random bits in base32.
func newOrderID() string { return "o-" + strings.ToLower(rand.Text()[:10]) }

// check is what a shop may ask of an order.
func (o order) check() complaints {
	var wrong complaints
	wrong.add("item", textWrong(o.Item, maxItem, false))
	if o.Quantity < 1 || o.Quantity > maxQuantity {
		wrong.add("quantity", fmt.Sprintf("must be a whole number from 1 to %d", maxQuantity))
	}
	if o.Note != "" {
		wrong.add("note", textWrong(o.Note, maxNote, true))
	}
	if o.Attachment != "" {
		wrong.add("attachment", textWrong(o.Attachment, maxFileName, false))
	}
	return wrong
}

// Time is when the order was written, in UTC.
func (o order) Time() time.Time { return time.UnixMilli(o.CreatedAt).UTC() }

// URL is the receipt's.
func (o order) URL() string { return "/orders/" + o.ID }

const orderColumns = `id, item, quantity, note, attachment, attachment_size, attempt, created_at`

func (o *order) columns() []any {
	return []any{&o.ID, &o.Item, &o.Quantity, &o.Note, &o.Attachment, &o.AttachmentSize, &o.Attempt, &o.CreatedAt}
}

// insert writes the order, under a new id, in the session's transaction.
func (s *Storage) insert(ctx context.Context, in session, o *order) error {
	o.ID, o.CreatedAt = newOrderID(), s.millis()
	_, err := in.exec(ctx, `INSERT INTO shop_order (`+orderColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		o.ID, o.Item, o.Quantity, o.Note, o.Attachment, o.AttachmentSize, o.Attempt, o.CreatedAt)
	if err != nil {
		return fmt.Errorf("shop: writing an order: %w", err)
	}
	return nil
}

// order returns errNotFound for an id that nothing was ordered under.
func (s *Storage) order(ctx context.Context, id string) (order, error) {
	var o order
	err := first(ctx, s.plain, `SELECT `+orderColumns+` FROM shop_order WHERE id = $1`, o.columns(), id)
	if err != nil && !errors.Is(err, errNotFound) {
		err = fmt.Errorf("shop: reading an order: %w", err)
	}
	return o, err
}

// maxListed is how many orders of an item are listed; all are counted.
const maxListed = 100

// ordersOf counts the orders of an item and returns the first ones, oldest first.
func (s *Storage) ordersOf(ctx context.Context, item string) (int, []order, error) {
	count, orders := 0, []order{}
	if err := first(ctx, s.plain, `SELECT count(*) FROM shop_order WHERE item = $1`, []any{&count}, item); err != nil {
		return 0, nil, fmt.Errorf("shop: counting orders: %w", err)
	}
	err := s.plain.query(ctx, `SELECT `+orderColumns+` FROM shop_order WHERE item = $1 ORDER BY created_at, id LIMIT $2`, func(scan scanner) error {
		var o order
		err := scan(o.columns()...)
		orders = append(orders, o)
		return err
	}, item, maxListed)
	if err != nil {
		return 0, nil, fmt.Errorf("shop: listing orders: %w", err)
	}
	return count, orders, nil
}
