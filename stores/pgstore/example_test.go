package pgstore_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/pgstore"
)

func ExampleSQL() {
	text, err := pgstore.SQL(pgstore.Options{Schema: "app", Table: "idem"})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _, _ := strings.Cut(text, "\n")
	fmt.Println(first)
	// Output: CREATE SCHEMA IF NOT EXISTS "app";
}

// Guarded work takes its transaction from the context and leaves ending it to the guard.
func ExampleTx() {
	pay := func(ctx context.Context, orderNo string) error {
		tx, err := pgstore.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO payment (order_no) VALUES ($1)", orderNo)
		return err
	}
	fmt.Println(pay(context.Background(), "17"))
	// Output: pgstore: the context carries no transaction; it must be the one that guarded work was given
}

// The coupon is used once, whatever orders it comes with; where the order is rolled back it is unused again.
func ExampleOnceTx() {
	order := func(ctx context.Context, pool *pgxpool.Pool, ledger *pgstore.Store, orderNo, coupon string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			usedBy, err := pgstore.OnceTx(ctx, ledger, tx, idem.K("coupon.use", coupon), func(tx pgx.Tx) (string, error) {
				_, err := tx.Exec(ctx, "UPDATE coupon SET order_no = $1 WHERE code = $2", orderNo, coupon)
				return orderNo, err
			})
			if err != nil {
				return err // idem.ErrInProgress: another order is about to use it; begin again
			}
			_, err = tx.Exec(ctx, "INSERT INTO orders (no, discounted) VALUES ($1, $2)", orderNo, usedBy == orderNo)
			return err
		})
	}
	_ = order
}
