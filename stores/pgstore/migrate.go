package pgstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

const createSchema = `CREATE SCHEMA IF NOT EXISTS {{schema}}`

// SQL is what Migrate would run on an empty database, for other tools. It may be run again: it only makes what is not there.
// idem.ErrInvalid where the options cannot name a table.
func SQL(options Options) (string, error) {
	chosen, err := options.names()
	if err != nil {
		return "", err
	}
	text := chosen.render(createSchema) + ";\n"
	files, err := scripts()
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text += "\n" + chosen.render(file.text)
	}
	return text, nil
}

// Migrate makes the schema where there is none, and brings the table up to this version. Migrations only add. Any number of processes may
// call it at once; one works, the others wait, by a transaction's advisory lock, which PgBouncer in transaction mode lets through. It uses up to three connections of its own, made as the pool makes them.
// Which migrations ran is kept in the table named by the options with "_migration" behind it.
func Migrate(ctx context.Context, pool *pgxpool.Pool, options Options) error {
	chosen, err := options.names()
	if err != nil {
		return err
	}
	return chosen.migrate(ctx, openDB(pool))
}

// migrate closes db.
func (n names) migrate(ctx context.Context, db *sql.DB) error {
	defer func() { _ = db.Close() }() // what it did is committed or has failed
	provider, err := n.provider(db)
	if err != nil {
		return fmt.Errorf("pgstore: migrate: %w", err)
	}
	turn, err := n.enter(ctx, db)
	if err != nil {
		return failed(ctx, "migrate", err)
	}
	defer func() { _ = turn.Rollback() }() // it has written nothing
	if _, err := provider.Up(ctx); err != nil {
		return failed(ctx, "migrate", err)
	}
	return nil
}

// openDB does not use the pool itself: with one connection it could never hold the lock and migrate.
func openDB(pool *pgxpool.Pool) *sql.DB {
	config := pool.Config()
	var options []stdlib.OptionOpenDB
	if config.BeforeConnect != nil {
		options = append(options, stdlib.OptionBeforeConnect(config.BeforeConnect))
	}
	if config.AfterConnect != nil {
		options = append(options, stdlib.OptionAfterConnect(config.AfterConnect))
	}
	return stdlib.OpenDB(*config.ConnConfig, options...)
}

func (n names) provider(db *sql.DB) (*goose.Provider, error) {
	files, err := scripts()
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, len(files))
	for i, file := range files {
		statement := n.render(file.text)
		steps[i] = goose.NewGoMigration(file.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		}}, nil)
	}
	store, err := database.NewStore(database.DialectPostgres, n.migrations())
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, db, nil, goose.WithStore(history{Store: store, names: n}), goose.WithGoMigrations(steps...),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// script is one migration, its version the number that its file's name begins with.
type script struct {
	version int64
	text    string
}

// scripts are in the order of their versions, as fs.Glob sorts names whose numbers have equal lengths.
func scripts() ([]script, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]script, len(files))
	for i, file := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", file, err)
		}
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all[i] = script{version: version, text: string(text)}
	}
	return all, nil
}

// history is goose's table of migrations under a quoted name, which goose itself cannot look up.
type history struct {
	database.Store
	names names
}

func (h history) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	var exists bool
	err := db.QueryRowContext(ctx, `SELECT to_regclass($1::text) IS NOT NULL`, h.names.migrations()).Scan(&exists)
	return exists, err
}

// enter lets one process at a time migrate, until the transaction ends: a session's lock would not survive PgBouncer's transaction mode. It is taken here and not by a
// locker of goose, which looks for pending migrations before it locks. The schema must be there before goose's own table; it is asked for first, as
// IF NOT EXISTS wants the right to create even where nothing is to be made.
func (n names) enter(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := n.takeTurn(ctx, tx, db); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// takeTurn waits as long as the context allows, whatever the database's defaults are: building an index takes others' time.
func (n names) takeTurn(ctx context.Context, tx *sql.Tx, db *sql.DB) error {
	const patience = `SELECT set_config('lock_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`
	if _, err := tx.ExecContext(ctx, patience); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, lockNumber("migrate", n.quoted())); err != nil {
		return err
	}
	return n.ensureSchema(ctx, db)
}

func (n names) ensureSchema(ctx context.Context, db *sql.DB) error {
	var exists bool
	err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1::text)`, n.schema).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = db.ExecContext(ctx, n.render(createSchema))
	return err
}
