package sqlitestore

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Options of a ledger. The zero value is ready to use.
type Options struct {
	// Table is the ledger's table: ASCII letters, digits and underscores, at most 63, not beginning with a digit or "sqlite_". Its indexes, the table
	// of the last fence and that of applied migrations have longer names that begin with it. Default: "idempotent_record".
	Table string
	// Now is the clock of leases and retention. Default: time.Now.
	Now func() time.Time
}

// ErrTable says that Options.Table is not a name that the store takes.
var ErrTable = errors.New("sqlitestore: the table's name is refused")

const defaultTable = "idempotent_record"

func (o Options) withDefaults() (Options, error) {
	if o.Table == "" {
		o.Table = defaultTable
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	plain := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	if !plain.MatchString(o.Table) || strings.HasPrefix(strings.ToLower(o.Table), "sqlite_") {
		return o, fmt.Errorf("%w: %q; use at most 63 ASCII letters, digits and underscores, no digit and no \"sqlite_\" in front", ErrTable, o.Table)
	}
	return o, nil
}

// named puts the table's name into a statement. The name is checked, quoted in the statement, and so takes reserved words too.
func (o Options) named(statement string) string {
	return strings.ReplaceAll(statement, "{{table}}", o.Table)
}
