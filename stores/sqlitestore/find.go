package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/idemkit/idem"
)

// search has the state as a literal, without which SQLite could not use the partial index on updated_at.
const search = `SELECT tenant, biz_type, ` + recordColumns + ` FROM "{{table}}"
	WHERE status = '{{state}}' AND updated_at <= ?1 AND format <= ?2 AND biz_type IN (SELECT value FROM json_each(?3)){{lapsed}}
	ORDER BY updated_at LIMIT ?4`

const lapsed = ` AND ifnull(lease_until, 0) <= ?5`

// searches are search for each state.
func (o Options) searches() map[idem.State]string {
	all := make(map[idem.State]string)
	for _, state := range []idem.State{idem.Processing, idem.Succeeded, idem.Failed, idem.Cancelled} {
		condition := ""
		if state == idem.Processing {
			condition = lapsed
		}
		all[state] = o.named(strings.NewReplacer("{{state}}", string(state), "{{lapsed}}", condition).Replace(search))
	}
	return all
}

// Find reads beside the writer: processing and failed records by an index, succeeded and cancelled ones by the whole table. A claim whose renewal waits for a
// transaction of this process is left out. Key, Subject and RequestID of a record are as the columns have them, and claim the same record. Records of a
// newer format are left out.
func (s *Store) Find(ctx context.Context, q idem.Query) ([]idem.Record, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if len(q.Types) == 0 {
		return nil, ctx.Err()
	}
	types, err := typeColumns(q.Types)
	if err != nil {
		return nil, err
	}
	now := s.now()
	args := []any{now.Add(-max(q.Quiet, 0)).UnixMicro(), idem.Format, types, q.Limit}
	if q.State == idem.Processing {
		args = append(args, now.UnixMicro())
	}
	rows, err := s.query(ctx, nil, s.sql.search[q.State], args...)
	if err != nil {
		return nil, unread(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has what went wrong
	return s.collect(ctx, rows)
}

func (s *Store) collect(ctx context.Context, rows *sql.Rows) ([]idem.Record, error) {
	var records []idem.Record
	for rows.Next() {
		var tenant, businessType string
		r := new(row)
		if err := rows.Scan(append([]any{&tenant, &businessType}, r.fields()...)...); err != nil {
			return nil, unread(ctx, err)
		}
		record, err := s.record(r, idem.Request{Key: idem.KeyOf(tenant, businessType, r.bizKey)})
		if err != nil {
			return nil, err
		}
		if !record.Live() {
			records = append(records, record)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, unread(ctx, err)
	}
	return records, nil
}

// typeColumns is a JSON array of the types as the columns have them, which are UTF-8.
func typeColumns(types []string) (string, error) {
	columns := make([]string, len(types))
	for i, businessType := range types {
		columns[i] = idem.Column(businessType)
	}
	array, err := json.Marshal(columns)
	return string(array), err
}
