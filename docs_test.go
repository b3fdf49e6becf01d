package sotto_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read is a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages are all pages of the repository, without what runs have written.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (path == "results" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// Links between pages lead somewhere: to a file that there is and, after #, to one of its headings.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
				continue
			}
			if heading != "" && !slices.Contains(anchors(read(t, target)), heading) {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}

// anchors are a page's headings as links have them.
func anchors(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\pL\pN\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(plain, " ", "-"))
	}
	return out
}

// The README is two screens, and leads to every page of docs; CI takes the tests' command from it.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	if n := strings.Count(text, "\n"); n > 80 {
		t.Errorf("README.md has %d lines: what a page says goes there", n)
	}
	if len(regexp.MustCompile(`(?m)^    go test .*$`).FindAllString(text, -1)) != 1 {
		t.Error("README.md must have one line with the tests' command")
	}
	for _, path := range pages(t) {
		if filepath.Dir(path) == "docs" && !strings.Contains(text, "("+filepath.ToSlash(path)) {
			t.Errorf("README.md does not lead to %s", path)
		}
	}
}

// The page of examples has each file of the directory, and no other.
func TestExamplesPage(t *testing.T) {
	text := read(t, "examples/README.md")
	var named []string
	for _, m := range regexp.MustCompile("`([a-z0-9-]+\\.(?:yaml|csv|txt))`").FindAllStringSubmatch(text, -1) {
		named = append(named, m[1])
	}
	files, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "README.md" && !slices.Contains(named, f.Name()) {
			t.Errorf("examples/README.md does not name %s", f.Name())
		}
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join("examples", name)); err != nil {
			t.Error(err)
		}
	}
}
