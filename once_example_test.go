package idem_test

import (
	"context"
	"fmt"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// Receipt is what a gateway gives for a payment.
type Receipt struct{ No string }

func pay(_ context.Context, key string) (Receipt, error) {
	fmt.Println("paying under a key of", len(key), "characters")
	return Receipt{No: "G-7"}, nil
}

func ExampleOnce() {
	ctx, ledger := context.Background(), memstore.New(memstore.Options{})
	for range 2 {
		receipt, err := idem.Once(ctx, ledger, idem.K("refund", "R-1"), func(ctx context.Context) (Receipt, error) {
			return pay(ctx, idem.FromContext(ctx).OutboundKey()) // the same on every attempt: the gateway's own idempotency key
		})
		fmt.Println(receipt.No, err)
	}
	// Output:
	// paying under a key of 43 characters
	// G-7 <nil>
	// G-7 <nil>
}
