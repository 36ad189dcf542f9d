package idem_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The rule itself, on modules made up for it: a test that finds nothing must be one that can find something.
func TestImportRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, imports string
		says          string // empty: allowed
	}{
		"root, standard library":         {file: "a.go", imports: "net/http"},
		"root, own package":              {file: "a.go", imports: module + "/tokens", says: "a.go imports"},
		"root, a module":                 {file: "a.go", imports: jwt, says: "modules []"},
		"root's test, memory store":      {file: "a_test.go", imports: module + "/stores/memstore"},
		"root's test, root":              {file: "a_test.go", imports: module},
		"root's test, Redis store":       {file: "a_test.go", imports: module + "/stores/redisstore", says: "a_test.go imports"},
		"tokens, root":                   {file: "tokens/a.go", imports: module},
		"tokens, golang-jwt":             {file: "tokens/a.go", imports: jwt},
		"tokens, a package of a module":  {file: "tokens/a.go", imports: jwt + "/request"},
		"tokens, another major version":  {file: "tokens/a.go", imports: "github.com/golang-jwt/jwt/v50", says: "modules"},
		"tokens, web":                    {file: "tokens/a.go", imports: module + "/web", says: "packages []"},
		"tokens, rapid":                  {file: "tokens/a.go", imports: rapid, says: "modules"},
		"tokens' test, rapid":            {file: "tokens/a_test.go", imports: rapid},
		"tokens' test, tokens":           {file: "tokens/a_test.go", imports: module + "/tokens"},
		"a store, another store":         {file: "stores/pgstore/a.go", imports: module + "/stores/sqlitestore", says: "packages"},
		"a store, components":            {file: "stores/pgstore/a.go", imports: module + "/internal/testkit", says: "packages"},
		"a store's test, components":     {file: "stores/pgstore/a_test.go", imports: module + "/internal/testkit"},
		"a store's test, the suite":      {file: "stores/pgstore/a_test.go", imports: module + "/stores/storetest"},
		"web, Redis store":               {file: "web/a.go", imports: module + "/stores/redisstore", says: "packages"},
		"web, Prometheus":                {file: "web/a.go", imports: "github.com/prometheus/client_golang/prometheus", says: "modules"},
		"web, tokens":                    {file: "web/a.go", imports: module + "/tokens"},
		"server, anything of others":     {file: "server/a.go", imports: "example.com/x"},
		"server, components":             {file: "server/a.go", imports: module + "/internal/testkit", says: "packages"},
		"server, demo":                   {file: "server/a.go", imports: module + "/demo", says: "packages"},
		"demo, server":                   {file: "demo/main.go", imports: module + "/server"},
		"components, anything":           {file: "internal/testkit/a.go", imports: module + "/stores/pgstore"},
		"cgo":                            {file: "server/a.go", imports: "C", says: "cgo"},
		"a module of like name":          {file: "tokens/a.go", imports: module + "x/tokens", says: "modules"},
		"folder without a row":           {file: "newcomer/a.go", imports: "fmt", says: `add {folder: "newcomer", ...}`},
		"folder below a row":             {file: "tokens/deep/a.go", imports: "fmt", says: `add {folder: "tokens/deep", ...}`},
		"test data is no package":        {file: "tokens/testdata/a.go", imports: module + "/web"},
		"hidden folders are no packages": {file: ".cache/a.go", imports: module + "/web"},
		"a module of its own":            {file: "bench/a.go", imports: module + "/web"},
		"a build constraint hides nothing": {
			file: "tokens/a_windows.go", imports: module + "/web", says: "packages",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := sources(fstest.MapFS{
				"bench/go.mod": {Data: []byte("module bench\n")},
				c.file:         {Data: []byte("package p\n\nimport _ \"" + c.imports + "\"\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			found := violations(all)
			if c.says == "" && len(found) > 0 {
				t.Errorf("found %q", found)
			}
			if c.says != "" && (len(found) != 1 || !strings.Contains(found[0], c.says)) {
				t.Errorf("found %q, want %q", found, c.says)
			}
		})
	}
}

// Rows may only point at rows: a misspelt one would allow nothing and say nothing.
func TestLayoutNamesItsOwnRows(t *testing.T) {
	t.Parallel()
	var folders []string
	for _, r := range layout() {
		if slices.Contains(folders, r.folder) {
			t.Errorf("two rows for %s", r.folder)
		}
		folders = append(folders, r.folder)
	}
	leanFolders, _ := lean()
	named := slices.Concat(inTests().packages, leanFolders)
	for _, r := range layout() {
		named = append(named, r.packages...)
	}
	for _, folder := range named {
		if folder != anything && !slices.Contains(folders, folder) {
			t.Errorf("no row for %s", folder)
		}
	}
}
