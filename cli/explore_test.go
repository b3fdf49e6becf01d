package cli

import (
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// The explorer in Chromium, served and as files: what is drawn while the knob turns has the numbers
// of sotto run. testdata/browser/explorer.mjs has it all.
func TestExplorerBrowser(t *testing.T) {
	if testkit.Race {
		t.Skip("the program's simulations take ten times as long: it runs among the tests of full size")
	}
	var want strings.Builder
	for _, by := range []string{"served", "static"} {
		for _, what := range []string{"what a link asks for is drawn, with the numbers of sotto run",
			"the knob turns by its keys, and the numbers are those of sotto run",
			"budgets, policies, arms and trust", "a link has all of it", "a log is dropped in",
			"what is wrong is said", "axe finds nothing serious, and nothing is wider than the page"} {
			want.WriteString(by + ": " + what)
			if by == "static" && strings.HasPrefix(what, "budgets") {
				want.WriteString(", offline")
			}
			want.WriteString("\n")
		}
	}
	want.WriteString("served: a log does not leave this computer\n")
	want.WriteString("nothing is said that is not known, and nothing stays that was not asked for\n")
	want.WriteString("a long run is left when the knob turns on\nwithout script the page says what it needs\n")
	drive(t, "explorer.mjs", want.String())
}
