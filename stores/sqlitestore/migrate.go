package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrations embed.FS

type migration struct {
	version int
	text    string
}

// Migrate brings the ledger's table up to date, in one transaction. Any number of processes may do so at once: one applies, the others wait
// and find it applied. It only adds, so that the version before this one goes on working, and it leaves a table alone that a
// newer version has migrated. What was applied stands in the table "<table>_migration". ErrTable; the context's error.
//
// It does not use goose: on SQLite goose has no lock between processes, and one immediate transaction is that lock.
func Migrate(ctx context.Context, db *sql.DB, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	steps, err := o.migrations()
	if err != nil {
		return err
	}
	if err := untilFree(ctx, func() error { return o.migrate(ctx, db, steps) }); err != nil {
		return fmt.Errorf("sqlitestore: migrate %s: %w", o.Table, err)
	}
	return nil
}

// SQL is all migrations as one text, for other tools: each statement may be run again without harm. Migrate may follow. Empty when
// Options.Table is refused.
func SQL(o Options) string {
	o, err := o.withDefaults()
	if err != nil {
		return ""
	}
	steps, err := o.migrations()
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, step := range steps {
		all.WriteString(step.text)
	}
	return all.String()
}

func (o Options) migrations() ([]migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: migrations: %w", err)
	}
	steps := make([]migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("sqlitestore: migration %s has no number: %w", name, err)
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("sqlitestore: migration %s: %w", name, err)
		}
		steps = append(steps, migration{version: version, text: o.named(string(text))})
	}
	return steps, nil
}

func (o Options) migrate(ctx context.Context, db *sql.DB, steps []migration) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the pool, its transaction over
	// The deferred BEGIN of a handle that was opened otherwise would let two processes read "nothing applied".
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		rollBack(ctx, conn)
		return err
	}
	if err := o.apply(ctx, conn, steps); err != nil {
		rollBack(ctx, conn)
		return err
	}
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		rollBack(ctx, conn)
		return err
	}
	return nil
}

func (o Options) apply(ctx context.Context, conn *sql.Conn, steps []migration) error {
	if _, err := conn.ExecContext(ctx, o.named(
		`CREATE TABLE IF NOT EXISTS "{{table}}_migration" (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT`)); err != nil {
		return err
	}
	var applied int
	if err := conn.QueryRowContext(ctx, o.named(`SELECT coalesce(max(version), 0) FROM "{{table}}_migration"`)).Scan(&applied); err != nil {
		return err
	}
	for _, step := range steps {
		if step.version <= applied {
			continue
		}
		if _, err := conn.ExecContext(ctx, step.text); err != nil {
			return fmt.Errorf("migration %d: %w", step.version, err)
		}
		if _, err := conn.ExecContext(ctx, o.named(`INSERT INTO "{{table}}_migration" (version, applied_at) VALUES (?, ?)`),
			step.version, o.Now().UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
