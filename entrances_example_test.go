package idem_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// shelf refuses the write of a holder that was overtaken.
type shelf struct{ count, fence int64 }

func (s *shelf) set(_ context.Context, count, fence int64) error {
	if fence <= s.fence {
		return idem.ErrClaimLost
	}
	s.count, s.fence = count, fence
	return nil
}

func ExampleLock() {
	ctx, store, ledger := context.Background(), memstore.New(memstore.Options{}), memstore.New(memstore.Options{})
	stock := &shelf{count: 7}
	take := func() error {
		locked, lock, err := idem.Lock(ctx, store, idem.K("stock", "S-1"), idem.LockOptions{Ledger: ledger, Wait: 5 * time.Second})
		if err != nil {
			return err // idem.ErrInProgress: somebody else still has it
		}
		defer lock.Release(ctx)
		return stock.set(locked, stock.count-1, lock.Fence) // the write refuses a holder that was overtaken
	}
	fmt.Println(take(), take(), stock.count)
	fmt.Println(stock.set(ctx, 6, 1)) // of a holder that was frozen
	// Output:
	// <nil> <nil> 5
	// idem: the claim is lost
}

func ExampleWindow() {
	ctx, store := context.Background(), memstore.New(memstore.Options{})
	pay := func(orderNo, channel string) error {
		pass, err := idem.Window(ctx, store, idem.K("payment", idem.Digest(orderNo, channel)), 10*time.Second)
		if errors.Is(err, idem.ErrDuplicate) {
			return fmt.Errorf("paid already, ask again in %v", pass.Left.Round(time.Second))
		}
		return err
	}
	fmt.Println(pay("O-1", "card"))
	fmt.Println(pay("O-1", "card"))
	fmt.Println(pay("O-1", "cash"))
	// Output:
	// <nil>
	// paid already, ask again in 10s
	// <nil>
}
