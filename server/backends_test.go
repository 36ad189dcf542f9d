package server_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	redis := testkit.Redis(t)
	postgres := testkit.Postgres(t)
	for name, c := range map[string]struct {
		environ map[string]string
		ledger  string // beginning of its name
		says    []string
	}{
		"embedded":           {nil, "sqlite:", []string{"idem: the ledger is a SQLite file", "idem: tokens are kept in this process", "idem: the signing key is kept in a file"}},
		"Redis and Postgres": {map[string]string{"IDEM_REDIS_URL": "redis://" + redis.Addr, "IDEM_DATABASE_URL": postgres.URL(), "IDEM_KEYS": oneKey(t)}, "pg:" + postgres.Name, []string{"idem: the ledger is in Postgres", "idem: tokens are kept in Redis"}},
		"Redis and SQLite":   {map[string]string{"IDEM_REDIS_URL": "redis://" + redis.Addr, "IDEM_KEYS": oneKey(t)}, "sqlite:", []string{"idem: tokens are kept in Redis"}},
		"Postgres alone":     {map[string]string{"IDEM_DATABASE_URL": postgres.URL(), "IDEM_KEYS": oneKey(t)}, "pg:" + postgres.Name, []string{"idem: tokens are kept in this process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			b := open(t, c.environ, log.logger())
			if err := b.Store.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if err := b.Ledger.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(b.Ledger.Name(), c.ledger) {
				t.Errorf("the ledger is %s", b.Ledger.Name())
			}
			if onPostgres := strings.HasPrefix(c.ledger, "pg:"); onPostgres != (b.Postgres != nil) || onPostgres == (b.SQLite != nil) {
				t.Errorf("pool %v, handle %v", b.Postgres, b.SQLite)
			}
			for _, message := range c.says {
				if len(log.lines(t, message)) != 1 {
					t.Errorf("not logged: %s\n%s", message, log)
				}
			}
		})
	}
}

func TestOpenPrintsWhereTheFileIs(t *testing.T) {
	t.Parallel()
	path, log := filepath.Join(t.TempDir(), "shop.db"), &journal{}
	open(t, map[string]string{"IDEM_DATABASE_URL": "sqlite:" + path}, log.logger())
	if lines := log.lines(t, "idem: the ledger is a SQLite file"); len(lines) != 1 || lines[0]["path"] != path {
		t.Errorf("%v", lines)
	}
}

func TestOpenTwiceOnOneFileAndClose(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "a.db")}
	first, second := open(t, environ, discard()), open(t, environ, discard())
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := first.Ledger.Ping(t.Context()); err == nil {
		t.Error("it answers after Close")
	}
	if err := second.Ledger.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenDoesNotNeedRedis(t *testing.T) {
	t.Parallel()
	log, port := &journal{}, strconv.Itoa(testkit.FreePort(t))
	b := open(t, map[string]string{"IDEM_REDIS_URL": "redis://u:" + mark + "@127.0.0.1:" + port, "IDEM_KEYS": oneKey(t)}, log.logger())
	if len(log.lines(t, "idem: Redis does not answer; the ledger decides alone until it does")) != 1 || strings.Contains(log.String(), mark) {
		t.Errorf("log: %s", log)
	}
	if b.Store.Ping(t.Context()) == nil || b.Ledger.Ping(t.Context()) != nil {
		t.Error("Redis answers, or the ledger does not")
	}
}

func TestOpenNeedsTheDatabase(t *testing.T) {
	t.Parallel()
	nobody := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	for name, url := range map[string]string{
		"nobody listens":   "postgres://u:" + mark + "@" + nobody + "/d?sslmode=disable",
		"no such database": strings.Replace(testkit.Postgres(t).URL(), "postgres@", "postgres:"+mark+"@", 1) + "&dbname=none",
		"no such folder":   "sqlite:" + filepath.Join(t.TempDir(), "none", "a.db"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			_, err := server.Open(t.Context(), load(t, map[string]string{"IDEM_DATABASE_URL": url, "IDEM_KEYS": oneKey(t)}), log.logger())
			if err == nil {
				t.Fatal("opened")
			}
			if !strings.HasPrefix(err.Error(), "IDEM_DATABASE_URL: the database cannot be used: ") {
				t.Error(err)
			}
			if shown := fmt.Sprint(err, log); strings.Contains(shown, mark) {
				t.Errorf("shown: %s", shown)
			}
		})
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ url, says string }{
		"SQLite":         {"sqlite:" + filepath.Join(t.TempDir(), "a.db"), ""},
		"Postgres":       {testkit.Postgres(t).URL(), ""},
		"no database":    {"redis://" + mark, "IDEM_DATABASE_URL is not a database: it begins with none of sqlite: and postgres://; it may be empty"},
		"nobody listens": {"postgres://u:" + mark + "@127.0.0.1:" + strconv.Itoa(testkit.FreePort(t)) + "/d?sslmode=disable", "IDEM_DATABASE_URL: the database cannot be used: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			err := server.Migrate(t.Context(), server.Secret(c.url), log.logger())
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says)) {
				t.Error(err)
			}
			if shown := fmt.Sprint(err, log); strings.Contains(shown, mark) {
				t.Errorf("shown: %s", shown)
			}
		})
	}
}
