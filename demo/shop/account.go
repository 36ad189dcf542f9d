package shop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// account holds whole units of money, never fewer than none.
type account struct {
	Name    string `json:"name"`
	Balance int64  `json:"balance"`
}

// transfer moves money between two accounts.
type transfer struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

func (s *Storage) accounts(ctx context.Context) ([]account, error) {
	all := []account{}
	err := s.plain.query(ctx, `SELECT name, balance FROM shop_account ORDER BY name`, func(scan scanner) error {
		var a account
		err := scan(&a.Name, &a.Balance)
		all = append(all, a)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("shop: reading accounts: %w", err)
	}
	return all, nil
}

// move carries the transfer out in the session's transaction. What is wrong with it is in the complaints; nothing is written then.
func (s *Storage) move(ctx context.Context, in session, t transfer) (complaints, error) {
	balances, wrong, err := s.lock(ctx, in, t)
	if err != nil || len(wrong) > 0 {
		return wrong, err
	}
	if balances[t.From] < t.Amount {
		wrong.add("amount", fmt.Sprintf("is above the balance of %s, which is %d", t.From, balances[t.From]))
		return wrong, nil
	}
	for name, change := range map[string]int64{t.From: -t.Amount, t.To: t.Amount} {
		if _, err := in.exec(ctx, `UPDATE shop_account SET balance = balance + $1 WHERE name = $2`, change, name); err != nil {
			return nil, fmt.Errorf("shop: moving money: %w", err)
		}
	}
	return nil, nil
}

// lock holds both accounts, in the order of their names, so that two transfers that cross do not wait for one another. An update that changes
// nothing locks in both databases; FOR UPDATE is not SQLite's.
func (s *Storage) lock(ctx context.Context, in session, t transfer) (map[string]int64, complaints, error) {
	members := map[string]string{t.From: "from", t.To: "to"}
	names := []string{t.From, t.To}
	slices.Sort(names)
	balances, wrong := map[string]int64{}, complaints(nil)
	for _, name := range names {
		var balance int64
		err := first(ctx, in, `UPDATE shop_account SET balance = balance WHERE name = $1 RETURNING balance`, []any{&balance}, name)
		switch {
		case errors.Is(err, errNotFound):
			wrong.add(members[name], fmt.Sprintf("names no account: %q", name))
		case err != nil:
			return nil, nil, fmt.Errorf("shop: locking accounts: %w", err)
		}
		balances[name] = balance
	}
	return balances, wrong, nil
}
