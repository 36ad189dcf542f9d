package idem_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The code of the README is part of an Example, or of a component that an Example renders.
func TestReadmeCodeIsTested(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	sources := map[string]string{"go": "", "templ": ""}
	for language, patterns := range map[string][]string{"go": {"*example_test.go", "e2e/example_test.go", "consumer/*/example_test.go"}, "templ": {"e2e/*.templ"}} {
		for _, pattern := range patterns {
			files, _ := filepath.Glob(pattern)
			for _, file := range files {
				sources[language] += read(t, file)
			}
		}
	}
	blocks := regexp.MustCompile("(?s)```(go|templ)\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of code in the README", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(collapse(sources[block[1]]), collapse(block[2])) {
			t.Errorf("no Example has this code of the README:\n%s", block[2])
		}
	}
}

// Every mechanism has its row, with a place in the demo and tests that exist.
func TestReadmeNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| (R\d+) [^|]+\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(rows) != 14 {
		t.Fatalf("%d mechanisms, want 14", len(rows))
	}
	named := regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")
	for i, row := range rows {
		if want := "R" + strconv.Itoa(i+1); row[1] != want {
			t.Errorf("row %s, want %s", row[1], want)
		}
		tests := named.FindAllStringSubmatch(row[3], -1)
		if len(tests) == 0 || len(tests) != strings.Count(row[3], "·")+1 {
			t.Errorf("%s: not every test is named as `folder: TestName`: %s", row[1], row[3])
		}
		for _, test := range tests {
			if !hasTest(t, test[1], test[2]) {
				t.Errorf("%s: %s has no test %s", row[1], test[1], test[2])
			}
		}
	}
}

// hasTest looks into the test files of one folder; "idem" is the root.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	if folder == "idem" {
		folder = "."
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		if strings.Contains(read(t, file), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// Every file that the README links to is there.
func TestReadmeLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(links) == 0 {
		t.Fatal("no links found")
	}
	for _, link := range links {
		if _, err := os.Stat(link[1]); err != nil {
			t.Errorf("%s: %v", link[1], err)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// collapse makes indentation and alignment equal.
func collapse(code string) string { return strings.Join(strings.Fields(code), " ") }
