package sqlitestore

import (
	"context"
	"fmt"
)

const draw = `INSERT INTO "{{table}}_fence" (one, last) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET last = last + 1 RETURNING last`

// Fence counts in a table of one row. It takes its turn among the writers; ErrNested in work whose transaction is open.
func (s *Store) Fence(ctx context.Context) (int64, error) {
	var number int64
	err := s.write(ctx, func(tx *transaction) error {
		return tx.QueryRowContext(ctx, s.sql.draw).Scan(&number)
	})
	if err != nil {
		return 0, fmt.Errorf("sqlitestore: fence: %w", err)
	}
	return number, nil
}
