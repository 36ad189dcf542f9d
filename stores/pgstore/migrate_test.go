package pgstore_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
)

func emptyLab(t *testing.T) *lab {
	t.Helper()
	db := testkit.Postgres(t)
	return &lab{T: t, db: db, pool: db.Pool(t)}
}

// shape is everything that defines a table but its schema's name.
func (l *lab) shape(schema string) []string {
	l.Helper()
	rows, err := l.pool.Query(l.Context(), `
		SELECT concat_ws(' ', column_name, data_type, collation_name, is_nullable, column_default) FROM information_schema.columns
		WHERE table_schema = $1 AND table_name = 'idempotent_record'
		UNION ALL SELECT replace(indexdef, $1, '') FROM pg_indexes WHERE schemaname = $1 AND tablename = 'idempotent_record'
		UNION ALL SELECT concat_ws(' ', sequencename, data_type, increment_by, cycle, cache_size) FROM pg_sequences WHERE schemaname = $1 AND sequencename LIKE '%fence'
		UNION ALL SELECT array_to_string(reloptions, ',') FROM pg_class WHERE relname = 'idempotent_record' AND relnamespace = $1::text::regnamespace`, schema)
	if err != nil {
		l.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			l.Fatal(err)
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

func TestMigrateAndSQLMakeTheSame(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	if err := pgstore.Migrate(t.Context(), l.pool, pgstore.Options{Schema: "by_migrate"}); err != nil {
		t.Fatal(err)
	}
	text, err := pgstore.SQL(pgstore.Options{Schema: "by_sql"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.exec(text)
	}
	one, two := l.shape("by_migrate"), l.shape("by_sql")
	if len(one) < 20 || !slices.Equal(one, two) {
		t.Errorf("Migrate made\n%s\nSQL made\n%s", strings.Join(one, "\n"), strings.Join(two, "\n"))
	}
	if err := pgstore.Migrate(t.Context(), l.pool, pgstore.Options{Schema: "by_sql"}); err != nil {
		t.Errorf("Migrate over what SQL made: %v", err)
	}
}

func TestMigrateTwiceKeepsTheRecords(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	for range 2 {
		if err := pgstore.Migrate(t.Context(), l.pool, pgstore.Options{}); err != nil {
			t.Fatal(err)
		}
		l.store = open(t, l.pool)
		if answer, err := l.store.Claim(t.Context(), request("1")); err != nil {
			t.Fatal(answer, err)
		}
	}
	l.stands(request("1"), idem.Processing, 1)
	if n := query[int](l, `SELECT count(*) FROM idempotent_record_migration WHERE version_id > 0`); n != 2 {
		t.Errorf("%d migrations noted, want 2", n)
	}
	if there := query[bool](l, `SELECT to_regclass('goose_db_version') IS NOT NULL`); there {
		t.Error("the application's own goose table was made")
	}
}

// A database that the version before this one has made and filled gets what is missing, and keeps its records.
func TestMigrateFromTheFirstVersion(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	options := pgstore.Options{}
	if err := pgstore.Migrate(t.Context(), l.pool, options); err != nil {
		t.Fatal(err)
	}
	l.store = open(t, l.pool)
	l.won(request("1"), 1)
	l.exec(`DROP SEQUENCE idempotent_record_fence; DROP INDEX idempotent_record_failed;
		DELETE FROM idempotent_record_migration WHERE version_id = 2`)
	if err := pgstore.Migrate(t.Context(), l.pool, options); err != nil {
		t.Fatal(err)
	}
	if number, err := l.store.Fence(t.Context()); err != nil || number != 1 {
		t.Errorf("Fence: %d, %v", number, err)
	}
	l.stands(request("1"), idem.Processing, 1)
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	var running sync.WaitGroup
	for range 8 {
		pool := l.db.Pool(t, one)
		running.Go(func() {
			if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{Schema: "app"}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := query[int](l, `SELECT count(*) FROM app.idempotent_record_migration WHERE version_id > 0`); n != 2 {
		t.Errorf("%d migrations noted, want 2", n)
	}
}

// The role may make tables in its schema, and no schemas.
func TestMigrateWithoutTheRightToMakeSchemas(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	role := "role_" + l.db.Name
	l.exec(`CREATE ROLE ` + role + `; CREATE SCHEMA app AUTHORIZATION ` + role + `; ALTER ROLE ` + role + ` LOGIN`)
	t.Cleanup(func() { l.db.Exec(t, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	pool := l.db.Pool(t, as(role))
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{Schema: "app"}); err != nil {
		t.Error(err)
	}
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{Schema: "another"}); err == nil {
		t.Error("a schema was made without the right to")
	}
}

func TestNamesThatNeedQuotes(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	for _, options := range []pgstore.Options{
		{Schema: "user", Table: "order"}, {Schema: "App", Table: "Idem"}, {Schema: strings.Repeat("s", 63), Table: strings.Repeat("t", 52)}, {},
	} {
		if err := pgstore.Migrate(t.Context(), l.pool, options); err != nil {
			t.Fatalf("%+v: %v", options, err)
		}
		store, err := pgstore.New(l.pool, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		if answer, err := store.Claim(t.Context(), request("1")); err != nil || answer.Outcome != idem.Won {
			t.Errorf("%+v: %v, %v; tables must not share records", options, answer.Outcome, err)
		}
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("%+v: %v", options, err)
		}
		if number, err := store.Fence(t.Context()); err != nil || number != 1 {
			t.Errorf("%+v: Fence: %d, %v; tables must not share sequences", options, number, err)
		}
	}
}

func TestHostileNamesAreRefused(t *testing.T) {
	t.Parallel()
	pool := emptyLab(t).pool
	for _, name := range []string{
		`public"; DROP TABLE users; --`, `a.b`, `a b`, `1a`, `a-b`, `ä`, `a"b`, `a'b`, "a\x00b", "a\nb", `{{table}}`, `$1`, ` `, strings.Repeat("x", 64),
	} {
		for field, options := range map[string]pgstore.Options{"schema": {Schema: name}, "table": {Table: name}} {
			_, newErr := pgstore.New(pool, options)
			_, sqlErr := pgstore.SQL(options)
			for call, err := range map[string]error{"New": newErr, "SQL": sqlErr, "Migrate": pgstore.Migrate(t.Context(), pool, options)} {
				if !errors.Is(err, idem.ErrInvalid) {
					t.Errorf("%s with %s %q: %v, want ErrInvalid", call, field, name, err)
				}
			}
		}
	}
	if _, err := pgstore.New(pool, pgstore.Options{Table: strings.Repeat("x", 53)}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("a table whose index names Postgres would cut: %v, want ErrInvalid", err)
	}
	if _, err := pgstore.New(nil, pgstore.Options{}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("no pool: %v, want ErrInvalid", err)
	}
}

func TestPingMissesTheTable(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	store := open(t, l.pool)
	_, claim := store.Claim(t.Context(), request("order-1"))
	for command, err := range map[string]error{"ping": store.Ping(t.Context()), "claim": claim} {
		if err == nil || !strings.HasSuffix(err.Error(), "; run pgstore.Migrate") {
			t.Errorf("%s of a database without the table says %v", command, err)
		}
	}
}

func TestNameIsTheTables(t *testing.T) {
	t.Parallel()
	l := emptyLab(t)
	want := "pg:" + l.db.Name + ".public.idempotent_record"
	link := testkit.Proxy(t, l.db.Addr)
	for _, store := range []*pgstore.Store{open(t, l.pool), open(t, l.db.PoolVia(t, link.Addr()))} {
		if got := store.Name(); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
	other, err := pgstore.New(l.pool, pgstore.Options{Schema: "app"})
	if err != nil || other.Name() == want {
		t.Errorf("another schema has the name %q, %v", other.Name(), err)
	}
}
