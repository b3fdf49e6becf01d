package sotto_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Comments name theorems that there are, and every theorem of proofs/ is named where it is used. What they
// rest on is checked by proofs/check.sh.
func TestProofsAreNamed(t *testing.T) {
	theorems := map[string]bool{} // whether a comment names it
	statement := regexp.MustCompile(`(?m)^Theorem (\w+)`)
	files, err := filepath.Glob("proofs/*.v")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of proofs: %v", len(files), err)
	}
	for _, path := range files {
		for _, m := range statement.FindAllStringSubmatch(read(t, path), -1) {
			theorems[filepath.ToSlash(path)+"#"+m[1]] = false
		}
	}
	name := regexp.MustCompile(`proofs/\w+\.v#\w+`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return err
		}
		for _, n := range name.FindAllString(read(t, path), -1) {
			if _, is := theorems[n]; !is {
				t.Errorf("%s names %s, which is no theorem", path, n)
			}
			theorems[n] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, named := range theorems {
		if !named {
			t.Errorf("no comment names %s", n)
		}
	}
}
