package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
)

// Every cell of the cube that is proved names rows of the self-audit, of its policy and of its noise, and each
// has a broken copy that must be refuted.
func TestCubeIsAudited(t *testing.T) {
	all, err := Audits()
	if err != nil {
		t.Fatal(err)
	}
	names, err := audit.SelfAudit{More: all}.Names()
	if err != nil {
		t.Fatal(err)
	}
	faults := []string{"of the scale", "half the scale", "without cover", "not shuffled", "not mixed"}
	for _, c := range catalog.Cube() {
		for _, row := range c.Audits {
			claimed := slices.ContainsFunc(names, func(n string) bool { return n == row || strings.HasPrefix(n, row+" noise=") })
			broken := slices.ContainsFunc(names, func(n string) bool {
				return strings.HasPrefix(n, row) && slices.ContainsFunc(faults, func(f string) bool { return strings.HasSuffix(n, f) })
			})
			if !claimed || !broken {
				t.Errorf("%s: no row %q and a broken copy of it", c.Name(), row)
			}
		}
	}
}
