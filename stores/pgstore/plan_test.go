package pgstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
)

// Every statement finds its rows by an index in a table that is large, with a plan that knows no parameter, as a prepared statement's does.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := testkit.Postgres(t)
	text, err := SQL(Options{})
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(t, text)
	db.Exec(t, `INSERT INTO idempotent_record SELECT 'shop', 'order', i::text, CASE i % 10 WHEN 0 THEN 'processing' WHEN 1 THEN 'failed' ELSE 'succeeded' END, 1, 'owner', 'alice', i::text,
		NULL, 201, '[]', '', NULL, 1, now(), NULL, now() + interval '1 day', now(), now() FROM generate_series(1, 20000) i`)
	db.Exec(t, `VACUUM ANALYZE idempotent_record`)
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	names, err := Options{}.names()
	if err != nil {
		t.Fatal(err)
	}
	sql := names.statements()
	for name, row := range map[string]struct {
		sql        string
		parameters int
	}{
		"take over": {sql.takeOver, 12}, "give up": {sql.giveUpRequestID, 5}, "find": {sql.find, 7}, "look": {sql.look, 5},
		"worked": {sql.worked, 5}, "complete": {sql.complete, 10}, "release": {sql.release, 8}, "fence": {sql.fence, 5},
		"extend": {sql.extend, 6}, "purge": {sql.purge, 2},
		"find processing": {sql.search[idem.Processing], 3}, "find failed": {sql.search[idem.Failed], 3},
	} {
		plan := explain(ctx, t, conn, strings.ReplaceAll(name, " ", "_"), row.sql, row.parameters)
		if strings.Contains(plan, "Seq Scan on idempotent_record") || !strings.Contains(plan, "Index") {
			t.Errorf("%s reads the whole table:\n%s", name, plan)
		}
	}
}

func explain(ctx context.Context, t *testing.T, conn *pgx.Conn, name, sql string, parameters int) string {
	t.Helper()
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", parameters), ",")
	if _, err := conn.Exec(ctx, fmt.Sprintf(`PREPARE %s AS %s`, name, sql)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	rows, err := conn.Query(ctx, fmt.Sprintf(`EXPLAIN EXECUTE %s(%s)`, name, nulls), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.Join(lines, "\n")
}
