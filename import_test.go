package idem_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/idemkit/idem"

// Modules of others, by the name that the table uses.
const (
	amqp     = "github.com/rabbitmq/amqp091-go"
	gjson    = "github.com/tidwall/gjson"
	chromedp = "github.com/chromedp"
	goleak   = "go.uber.org/goleak"
	goose    = "github.com/pressly/goose/v3"
	jwt      = "github.com/golang-jwt/jwt/v5"
	pgx      = "github.com/jackc/pgx/v5"
	rapid    = "pgregory.net/rapid"
	redis    = "github.com/redis/go-redis/v9"
	sqlite   = "modernc.org/sqlite"
	templ    = "github.com/a-h/templ"
	anything = "*"
)

// row is one line of the layout: what the files of a folder may import besides the standard library and the root.
type row struct {
	folder   string // from the module's root; "." is the root
	packages []string
	modules  []string
}

// layout is the whole direction of imports. A package that is not built yet may have its row already.
func layout() []row {
	library := []string{
		"tokens", "stores/memstore", "stores/redisstore", "stores/pgstore", "stores/sqlitestore", "idemtest", "web", "templates", "js",
		"consumer", "consumer/rabbitmq", "consumer/redisstream",
	}
	return []row{
		{folder: "."},
		{folder: "tokens", modules: []string{jwt}},
		{folder: "stores/memstore"},
		{folder: "stores/redisstore", modules: []string{redis}},
		{folder: "stores/pgstore", modules: []string{pgx, goose}},
		{folder: "stores/sqlitestore", modules: []string{sqlite, goose}},
		{folder: "stores/storetest", packages: []string{"stores/memstore"}, modules: []string{rapid}},
		{folder: "idemtest", packages: []string{"tokens", "web", "stores/memstore"}},
		{folder: "web", packages: []string{"tokens", "templates", "js"}, modules: []string{gjson, templ, "golang.org/x/text"}},
		{folder: "templates", packages: []string{"tokens", "js"}, modules: []string{templ}},
		{folder: "js"},
		{folder: "consumer"},
		{folder: "consumer/rabbitmq", packages: []string{"consumer"}, modules: []string{amqp}},
		{folder: "consumer/redisstream", packages: []string{"consumer"}, modules: []string{redis}},
		{folder: "consumer/consumertest", packages: []string{"consumer"}},
		{folder: "server", packages: library, modules: []string{anything}},
		{folder: "cmd/idem", packages: slices.Concat(library, []string{"server"}), modules: []string{anything}},
		{folder: "demo", packages: slices.Concat(library, []string{"server", "demo/shop"}), modules: []string{anything}},
		{folder: "demo/shop", packages: slices.Concat(library, []string{"server"}), modules: []string{anything}},
		{folder: "e2e", packages: slices.Concat(library, []string{"server", "demo", "demo/shop"}), modules: []string{anything}},
		{folder: "internal/testkit", packages: []string{anything}, modules: []string{anything}},
	}
}

// inTests is what test files may import in addition.
func inTests() row {
	return row{
		packages: []string{"stores/storetest", "consumer/consumertest", "internal/testkit", "stores/memstore", "stores/pgstore", "stores/sqlitestore"},
		modules:  []string{goleak, rapid, chromedp, jwt},
	}
}

// lean are the packages that users of another back end compile too: these modules must not reach them by any way.
func lean() (folders, without []string) {
	return []string{".", "tokens", "stores/memstore", "js", "templates", "web", "idemtest", "consumer"},
		[]string{redis, "github.com/jackc/", "github.com/prometheus/"}
}

// forbidden says why a file of the row must not import the path; empty: it may.
func (r row) forbidden(imported string, test bool) string {
	packages, modules := r.packages, r.modules
	if test {
		packages = slices.Concat(packages, inTests().packages, []string{r.folder})
		modules = slices.Concat(modules, inTests().modules)
	}
	if imported == "C" {
		return "cgo is not used here"
	}
	if imported == module {
		return ""
	}
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		if slices.Contains(packages, inside) || slices.Contains(packages, anything) {
			return ""
		}
		return fmt.Sprintf("the layout lets it import the packages %v", packages)
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") || slices.ContainsFunc(modules, func(m string) bool { return m == anything || within(imported, m) }) {
		return ""
	}
	return fmt.Sprintf("the layout lets it import the modules %v", modules)
}

func within(imported, module string) bool {
	return imported == module || strings.HasPrefix(imported, module+"/")
}

// source is one Go file with its imports, whatever its build constraints.
type source struct {
	file, folder string
	imports      []string
}

func (s source) test() bool { return strings.HasSuffix(s.file, "_test.go") }

// sources reads every Go file of the module; folders with a go.mod of their own are other modules.
func sources(root fs.FS) ([]source, error) {
	var all []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && elsewhere(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		imports, err := importsOf(root, name)
		all = append(all, source{file: name, folder: path.Dir(name), imports: imports})
		return err
	})
	return all, err
}

func elsewhere(root fs.FS, folder string) bool {
	base := path.Base(folder)
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	return err == nil
}

func importsOf(root fs.FS, name string) ([]string, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var imports []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		imports = append(imports, imported)
	}
	return imports, nil
}

// violations lists the imports that run against the layout, and the folders that it does not know.
func violations(all []source) []string {
	var found []string
	rows := layout()
	for _, s := range all {
		at := slices.IndexFunc(rows, func(r row) bool { return r.folder == s.folder })
		if at < 0 {
			found = append(found, fmt.Sprintf("%s: no row for its folder; add {folder: %q, ...} to layout and to the table of the design", s.file, s.folder))
			continue
		}
		for _, imported := range s.imports {
			if why := rows[at].forbidden(imported, s.test()); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", s.file, imported, why))
			}
		}
	}
	return found
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	all, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found")
	}
	for _, violation := range violations(all) {
		t.Error(violation)
	}
}

func TestLeanPackagesStayLean(t *testing.T) {
	t.Parallel()
	folders, without := lean()
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			if found, err := filepath.Glob(filepath.Join(folder, "*.go")); err != nil || len(found) == 0 {
				return // not built yet; TestImportsRunOneWay knows its row
			}
			out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "./"+folder).Output()
			if err != nil {
				if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
					t.Fatalf("go list: %v: %s", err, failed.Stderr)
				}
				t.Fatal(err)
			}
			for imported := range strings.FieldsSeq(string(out)) {
				if slices.ContainsFunc(without, func(m string) bool { return strings.HasPrefix(imported, m) }) {
					t.Errorf("%s reaches %s", folder, imported)
				}
			}
		})
	}
}
