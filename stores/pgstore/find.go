package pgstore

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// search has the state as a literal, without which a plan that knows no parameter could not use a partial index. Both of those are on created_at, which no
// update changes, unlike updated_at; it comes before updated_at, so the condition on it leaves nothing out.
const search = `
SELECT tenant, biz_type, {{columns}} FROM {{table}} t
WHERE status = '{{state}}' AND biz_type = ANY ($1::text[]) AND format <= {{format}}
    AND created_at <= now() - $2::bigint * interval '1 microsecond' AND updated_at <= now() - $2::bigint * interval '1 microsecond'{{lapsed}}
ORDER BY updated_at LIMIT $3::bigint`

const lapsed = ` AND lease_until <= now()`

// searches are search for each state.
func (n names) searches() map[idem.State]string {
	all := make(map[idem.State]string)
	for _, state := range []idem.State{idem.Processing, idem.Succeeded, idem.Failed, idem.Cancelled} {
		condition := ""
		if state == idem.Processing {
			condition = lapsed
		}
		all[state] = n.render(strings.NewReplacer("{{state}}", string(state), "{{lapsed}}", condition).Replace(search))
	}
	return all
}

// Find reads processing and failed records by an index, succeeded and cancelled ones by the whole table. Key, Subject and RequestID of a record are as the
// columns have them, and claim the same record. Records of a newer format are left out.
func (s *Store) Find(ctx context.Context, q idem.Query) ([]idem.Record, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if len(q.Types) == 0 {
		return nil, ctx.Err()
	}
	var records []idem.Record
	err := s.transact(ctx, func(b *pgx.Batch) {
		b.Queue(s.sql.search[q.State], typeColumns(q.Types), microseconds(max(q.Quiet, 0)), q.Limit).Query(collecting(&records))
	})
	switch {
	case errors.Is(err, idem.ErrFormat):
		return nil, err
	case err != nil:
		return nil, failed(ctx, "find", err)
	}
	return records, nil
}

func collecting(records *[]idem.Record) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var tenant, businessType string
			var r row
			if err := rows.Scan(append([]any{&tenant, &businessType}, r.fields()...)...); err != nil {
				return err
			}
			record, err := r.record(idem.Request{Key: idem.KeyOf(tenant, businessType, r.column)})
			if err != nil {
				return err
			}
			*records = append(*records, *record)
		}
		return rows.Err()
	}
}
