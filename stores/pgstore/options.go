package pgstore

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem"
)

// Options name the table. The zero value is valid.
type Options struct {
	// Schema holds the table. Default "public".
	Schema string
	// Table is the table's name. Default "idempotent_record". Indexes, the sequence of fences and the table of migrations bear it as their prefix.
	Table string
}

const (
	defaultSchema = "public"
	defaultTable  = "idempotent_record"
)

// Postgres cuts names at 63 bytes without an error, so the longest suffix of a name made from the table's must fit too.
const (
	maxName         = 63
	migrationSuffix = "_migration"
	requestIDSuffix = "_request_id"
	runningSuffix   = "_processing"
	expirySuffix    = "_expiry"
	failedSuffix    = "_failed"
	fenceSuffix     = "_fence"
	maxTable        = maxName - len(requestIDSuffix)
)

// names are the checked identifiers, unquoted.
type names struct{ schema, table string }

// names are always quoted as well; refusing everything else keeps them readable in every tool, and goose's own statements safe.
func (o Options) names() (names, error) {
	chosen := names{schema: cmp.Or(o.Schema, defaultSchema), table: cmp.Or(o.Table, defaultTable)}
	if err := checkName("Schema", chosen.schema, maxName); err != nil {
		return names{}, err
	}
	if err := checkName("Table", chosen.table, maxTable); err != nil {
		return names{}, err
	}
	return chosen, nil
}

func checkName(field, name string, longest int) error {
	if len(name) > longest || !regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*\z`).MatchString(name) {
		return fmt.Errorf("%w: pgstore.Options.%s %.80q; it may have letters, digits and underscores, no digit first, at most %d of them",
			idem.ErrInvalid, field, name, longest)
	}
	return nil
}

func (n names) quoted() string { return pgx.Identifier{n.schema, n.table}.Sanitize() }

func (n names) migrations() string {
	return pgx.Identifier{n.schema, n.table + migrationSuffix}.Sanitize()
}

func (n names) fence() string { return pgx.Identifier{n.schema, n.table + fenceSuffix}.Sanitize() }

// render fills the names into SQL. Nothing else ever gets into a statement but as a parameter.
func (n names) render(sql string) string {
	index := func(suffix string) string { return pgx.Identifier{n.table + suffix}.Sanitize() }
	return strings.NewReplacer(
		"{{schema}}", pgx.Identifier{n.schema}.Sanitize(),
		"{{table}}", n.quoted(),
		"{{request_id_index}}", index(requestIDSuffix),
		"{{processing_index}}", index(runningSuffix),
		"{{expiry_index}}", index(expirySuffix),
		"{{failed_index}}", index(failedSuffix),
		"{{fence}}", n.fence(),
		"{{columns}}", recordColumns,
		"{{free}}", free,
		"{{format}}", fmt.Sprint(idem.Format),
	).Replace(sql)
}
