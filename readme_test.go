package idem_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code of the README is part of an Example, or of a component that an Example renders.
func TestReadmeCodeIsTested(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	sources := map[string]string{"go": "", "templ": ""}
	for language, patterns := range map[string][]string{"go": {"*example_test.go", "e2e/example_test.go"}, "templ": {"e2e/*.templ"}} {
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
