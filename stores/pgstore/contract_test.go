package pgstore_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/idemkit/idem/stores/storetest"
)

// The suite runs in every way in which pgx can send a statement: bytea, arrays and nulls differ between them.
func TestContract(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]pgx.QueryExecMode{
		"cache statement": pgx.QueryExecModeCacheStatement,
		"cache describe":  pgx.QueryExecModeCacheDescribe,
		"describe exec":   pgx.QueryExecModeDescribeExec,
		"exec":            pgx.QueryExecModeExec,
		"simple protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, backend(t, "", mode(m)))
		})
	}
}
