package pgstore_test

import (
	"context"
	"fmt"
	"strings"

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
