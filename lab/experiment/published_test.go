package experiment_test

import (
	"crypto/sha256"
	"fmt"
	"github.com/sotto-dp/sotto/lab/experiment"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// published are the experiments whose hashes people may have: the examples, and the settings of the
// sources' figures.
func published(t *testing.T) []string {
	t.Helper()
	settings, err := filepath.Glob("../../lab/paper/settings/*.yaml")
	if err != nil || len(settings) < 50 {
		t.Fatalf("%v, %v", settings, err)
	}
	return append(examples(t), settings...)
}

// A published experiment keeps its hash and its normal form: results that somebody has can be gone
// on with, and joined. Both are of what is played, so that a change of either is a change of the
// format (FormatVersion).
func TestPublishedHashes(t *testing.T) {
	var out strings.Builder
	for _, file := range published(t) {
		spec, err := experiment.Reader{}.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := spec.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		text, err := plan.Spec.YAML()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: %d cells, hash %s, normal form %x\n", filepath.Base(file),
			len(plan.Cells), plan.Hash, sha256.Sum256(text))
	}
	golden(t, "hashes.txt", out.String())
}

// unitsOf is a line that says what a directory's units are, byte for byte.
func unitsOf(t *testing.T, dir string) string {
	t.Helper()
	units, err := filepath.Glob(filepath.Join(dir, "units", "*.unit"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(units)
	h := sha256.New()
	for _, unit := range units {
		b, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	return fmt.Sprintf("%d units, %x\n", len(units), h.Sum(nil))
}

// shortened is an example with three short runs a cell.
func shortened(t *testing.T, file string) *experiment.Spec {
	t.Helper()
	spec, err := experiment.Reader{}.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Cap == 0 {
		if err := spec.Override("horizon", "--horizon", "2000"); err != nil {
			t.Fatal(err)
		}
	}
	if spec.Risk > 0 {
		spec.Cap = 100_000 // some go on for millions of plays
	}
	if err := spec.Override("runs", "--runs", "3"); err != nil {
		t.Fatal(err)
	}
	return spec
}
