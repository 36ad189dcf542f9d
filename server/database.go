package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idemkit/idem/stores/pgstore"
	"github.com/idemkit/idem/stores/sqlitestore"
)

const defaultSQLite = "idem-demo.db"

// databaseTarget is what IDEM_DATABASE_URL names: one of the two is set.
type databaseTarget struct {
	sqlite   string // path of the file
	postgres *pgxpool.Config
}

// As with Redis, no text shows any part of the URL.
var (
	errDatabaseScheme = errors.New("is not a database: it begins with none of sqlite: and postgres://")
	errSQLitePath     = errors.New("does not name a file: there is none in memory, for a ledger must not forget")
	errPostgresURL    = errors.New("is not a Postgres URL: its host, port or one of its parameters is not as pgx knows it")
)

func parseDatabase(text string) (databaseTarget, error) {
	if text == "" {
		return databaseTarget{sqlite: defaultSQLite}, nil
	}
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		if path == "" || path == ":memory:" || strings.HasPrefix(path, "//") || strings.ContainsRune(path, 0) {
			return databaseTarget{}, errSQLitePath
		}
		return databaseTarget{sqlite: path}, nil
	}
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return databaseTarget{}, errDatabaseScheme
	}
	config, err := parsePostgres(text)
	return databaseTarget{postgres: config}, err
}

const (
	postgresConnect = 5 * time.Second
	postgresIdle    = 5 * time.Minute
	postgresMinPool = 16
)

func parsePostgres(text string) (*pgxpool.Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errPostgresURL
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, errPostgresURL
	}
	query := u.Query()
	if !query.Has("pool_max_conns") {
		// Work holds a connection for as long as its transaction is open, so pgx' four would be few.
		config.MaxConns = int32(max(postgresMinPool, 4*runtime.GOMAXPROCS(0)))
	}
	if !query.Has("pool_max_conn_idle_time") {
		config.MaxConnIdleTime = postgresIdle
	}
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = postgresConnect
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "idem"
	}
	return config, nil
}

// openSQLite returns the handle of a migrated file.
func openSQLite(ctx context.Context, path string) (*sql.DB, *sqlitestore.Store, error) {
	db, err := sqlitestore.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if err := sqlitestore.Migrate(ctx, db, sqlitestore.Options{}); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	store, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, store, nil
}

const (
	sqliteDrain = 2 * time.Second
	sqlitePoll  = time.Millisecond
)

// closeSQLite leaves no write-ahead log behind. Calls that were given up close their connections by themselves, and of two that close at the same moment each
// takes the other for another user of the file, so that neither removes the log: once they have, one more connection closes alone.
func closeSQLite(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), sqliteDrain)
	defer cancel()
	for db.Stats().InUse > 0 && ctx.Err() == nil {
		<-time.After(sqlitePoll)
	}
	_ = db.PingContext(ctx) // a file that cannot be opened keeps its log
	return db.Close()
}

// openPostgres returns the pool of a migrated database.
func openPostgres(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, *pgstore.Store, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("opening Postgres: %w", err)
	}
	if err := pgstore.Migrate(ctx, pool, pgstore.Options{}); err != nil {
		pool.Close()
		return nil, nil, err
	}
	store, err := pgstore.New(pool, pgstore.Options{})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return pool, store, nil
}

// absolute is the path as people find the file; the path itself where the working directory is unknown.
func absolute(path string) string {
	if found, err := filepath.Abs(path); err == nil {
		return found
	}
	return path
}
