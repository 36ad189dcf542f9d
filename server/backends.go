package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/stores/redisstore"
	"github.com/idemkit/idem/tokens"
)

// Backends are the open stores and what signs tokens. Its parts are safe for concurrent use.
type Backends struct {
	Store    idem.TokenStore // in Redis, or in this process
	Ledger   idem.Ledger
	Tokens   *tokens.Issuer
	Redis    redis.UniversalClient // of the Store, for the application's own keys; nil in this process
	Postgres *pgxpool.Pool         // the ledger's database, for the application's own tables; nil on SQLite
	SQLite   *sql.DB               // likewise; nil on Postgres

	storeName, ledgerName string // as readyz names them
	close                 []func() error
}

// redisFirst is how long the start waits to see whether Redis is there.
const redisFirst = 2 * time.Second

// Open opens what the settings name and migrates the ledger. The database must answer; Redis need not, its absence is logged: the ledger decides alone
// until it is back. No error or log line shows a password or key. The caller closes the Backends, after Serve has returned.
func Open(ctx context.Context, c Config, logger *slog.Logger) (*Backends, error) {
	database, err := parseDatabase(c.DatabaseURL.Reveal())
	if err != nil {
		return nil, refused("IDEM_DATABASE_URL", err)
	}
	entrance, err := parseRedis(c.RedisURL.Reveal())
	if err != nil {
		return nil, refused("IDEM_REDIS_URL", err)
	}
	b := &Backends{}
	if err := b.open(ctx, c, database, entrance, logger); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Backends) open(ctx context.Context, c Config, database databaseTarget, entrance redisTarget, logger *slog.Logger) error {
	if err := b.openLedger(ctx, database, logger); err != nil {
		return err
	}
	ring, err := c.ring(ctx, database.sqlite, logger)
	if err != nil {
		return err
	}
	b.Tokens, err = tokens.New(tokens.Config{Keys: ring, TTL: c.TokenTTL})
	if err != nil {
		return refused("IDEM_KEYS", err)
	}
	b.openStore(ctx, entrance, logger)
	return nil
}

func (b *Backends) openLedger(ctx context.Context, database databaseTarget, logger *slog.Logger) error {
	const unusable = "IDEM_DATABASE_URL: the database cannot be used: %w"
	if database.postgres == nil {
		db, store, err := openSQLite(ctx, database.sqlite)
		if err != nil {
			return fmt.Errorf(unusable, err)
		}
		b.SQLite, b.Ledger, b.ledgerName = db, store, "sqlite"
		b.close = append(b.close, func() error { return closeSQLite(db) })
		logger.InfoContext(ctx, "idem: the ledger is a SQLite file", "path", absolute(database.sqlite))
		return nil
	}
	pool, store, err := openPostgres(ctx, database.postgres)
	if err != nil {
		return fmt.Errorf(unusable, err)
	}
	b.Postgres, b.Ledger, b.ledgerName = pool, store, "postgres"
	b.close = append(b.close, func() error { store.Close(); pool.Close(); return nil })
	logger.InfoContext(ctx, "idem: the ledger is in Postgres", "database", database.postgres.ConnConfig.Database)
	return nil
}

func (b *Backends) openStore(ctx context.Context, entrance redisTarget, logger *slog.Logger) {
	client := entrance.client()
	if client == nil {
		b.Store, b.storeName = memstore.New(memstore.Options{Forgetful: true}), "memory"
		logger.InfoContext(ctx, "idem: tokens are kept in this process")
		return
	}
	b.Redis = client
	b.Store, b.storeName = redisstore.New(client, redisstore.Options{}), "redis"
	b.close = append(b.close, client.Close)
	ctx, cancel := context.WithTimeout(ctx, redisFirst)
	defer cancel()
	if err := b.Store.Ping(ctx); err != nil {
		logger.WarnContext(ctx, "idem: Redis does not answer; the ledger decides alone until it does", "error", err)
		return
	}
	logger.InfoContext(ctx, "idem: tokens are kept in Redis")
}

// Migrate brings the ledger's table up to date and does nothing else; databaseURL is as Config.DatabaseURL. It needs no keys, and may have an account of
// its own. Open does the same on its way.
func Migrate(ctx context.Context, databaseURL Secret, logger *slog.Logger) error {
	database, err := parseDatabase(databaseURL.Reveal())
	if err != nil {
		return refused("IDEM_DATABASE_URL", err)
	}
	b := &Backends{}
	return errors.Join(b.openLedger(ctx, database, logger), b.Close())
}

// Close closes what Open opened, once all work has ended. Closing twice is harmless.
func (b *Backends) Close() error {
	var failed []error
	for i := len(b.close) - 1; i >= 0; i-- {
		failed = append(failed, b.close[i]())
	}
	b.close = nil
	return errors.Join(failed...)
}
