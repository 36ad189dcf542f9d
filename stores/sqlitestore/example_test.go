package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// The order and the record that says so are one commit; a duplicate gets the first result. The guard of package web makes these calls.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(folder)

	db, err := sqlitestore.Open(filepath.Join(folder, "shop.db"))
	check(err)
	defer db.Close()
	check(sqlitestore.Migrate(ctx, db, sqlitestore.Options{}))
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (item TEXT)`)
	check(err)
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	check(err)

	for range 2 {
		answer, workCtx, work, err := ledger.ClaimTx(ctx, idem.Request{
			Key: idem.K("order.create", "4711"), Owner: idem.NewOwner(), Lease: 15 * time.Second, Retention: 720 * time.Hour,
		}, 30*time.Second)
		check(err)
		if answer.Outcome == idem.Done {
			fmt.Printf("replayed: %s\n", answer.Record.Result.Body)
			continue
		}
		tx, err := sqlitestore.Tx(workCtx)
		check(err)
		_, err = tx.ExecContext(ctx, `INSERT INTO orders VALUES ('book')`)
		check(err)
		check(work.Complete(ctx, idem.Result{Status: 201, Body: []byte("order 4711"), Kept: true}))
		fmt.Println("ordered")
	}
	// Output:
	// ordered
	// replayed: order 4711
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
