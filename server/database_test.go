package server

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestParseDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    string
		sqlite string
		holds  func(*pgxpool.Config) bool
		err    error
	}{
		"none":                {sqlite: "idem-demo.db"},
		"SQLite, relative":    {url: "sqlite:data/a b.db", sqlite: "data/a b.db"},
		"SQLite, absolute":    {url: "sqlite:/var/a.db", sqlite: "/var/a.db"},
		"SQLite, no file":     {url: "sqlite:", err: errSQLitePath},
		"SQLite, in memory":   {url: "sqlite::memory:", err: errSQLitePath},
		"SQLite, as a URL":    {url: "sqlite:///var/a.db", err: errSQLitePath},
		"SQLite, zero byte":   {url: "sqlite:a\x00b", err: errSQLitePath},
		"another database":    {url: "mysql://h/d", err: errDatabaseScheme},
		"keywords":            {url: "host=h dbname=d", err: errDatabaseScheme},
		"Postgres, bad port":  {url: "postgres://h:p/d", err: errPostgresURL},
		"Postgres, bad pool":  {url: "postgres://h/d?pool_max_conns=many", err: errPostgresURL},
		"Postgres, bad mode":  {url: "postgres://h/d?sslmode=perhaps", err: errPostgresURL},
		"Postgres, bad quote": {url: "postgres://h/%zz", err: errPostgresURL},
		"Postgres, defaults": {
			url: "postgres://u:p@h/d?sslmode=disable",
			holds: func(c *pgxpool.Config) bool {
				return c.MaxConns >= 16 && c.MaxConnIdleTime == postgresIdle && c.ConnConfig.ConnectTimeout == postgresConnect &&
					c.ConnConfig.RuntimeParams["application_name"] == "idem" && c.ConnConfig.Password == "p" && c.ConnConfig.Database == "d"
			},
		},
		"Postgres, its own settings": {
			url: "postgresql://h/d?pool_max_conns=3&pool_max_conn_idle_time=1m&connect_timeout=9&application_name=shop&sslmode=disable",
			holds: func(c *pgxpool.Config) bool {
				return c.MaxConns == 3 && c.MaxConnIdleTime == time.Minute && c.ConnConfig.ConnectTimeout == 9*time.Second &&
					c.ConnConfig.RuntimeParams["application_name"] == "shop"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseDatabase(c.url)
			if !errors.Is(err, c.err) || got.sqlite != c.sqlite {
				t.Fatalf("%q, %v", got.sqlite, err)
			}
			if c.holds != nil && !c.holds(got.postgres) {
				t.Errorf("%+v", got.postgres)
			}
		})
	}
}

// Calls that end with their context close their connections themselves, all at once here.
func TestCloseSQLiteLeavesNoLog(t *testing.T) {
	t.Parallel()
	for range 20 {
		path := filepath.Join(t.TempDir(), "a.db")
		db, _, err := openSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		var begun sync.WaitGroup
		for range 4 {
			begun.Go(func() {
				if tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
					t.Error(err)
				} else if _, err := tx.ExecContext(ctx, `SELECT count(*) FROM idempotent_record`); err != nil {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		giveUp()
		if err := closeSQLite(db); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
	}
}
