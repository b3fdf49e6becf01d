package plant

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

const root = "../../.."

// Each fault has its place, once, beside the others', and what is planted there is Go.
func TestFaultsHaveTheirPlaces(t *testing.T) {
	text, err := planted(root, "SOTTO_FAULT")
	if err != nil {
		t.Fatal(err)
	}
	for file, s := range text {
		if _, err := parser.ParseFile(token.NewFileSet(), file, s, parser.SkipObjectResolution); err != nil {
			t.Error(err)
		}
	}
	for _, f := range Faults() {
		if !strings.Contains(text[f.File], `planted == "`+f.Name+`"`) {
			t.Errorf("%s is not in %s: its place is another one's too", f.Name, f.File)
		}
	}
}

func TestTable(t *testing.T) {
	all, names, reverts := Faults(), map[string]bool{}, 0
	for _, f := range all {
		if names[f.Name] || f.Name == "" || f.Needs == "" {
			t.Errorf("%q is there twice, or not whole", f.Name)
		}
		names[f.Name] = true
		if f.Revert != "" {
			reverts++
		}
	}
	if len(all) < 30 || reverts < 10 {
		t.Errorf("%d faults, %d of mends, must be at least 30 and 10", len(all), reverts)
	}
}

// What a fault undoes is a commit of this history, where there is one: an archive of the sources has none.
func TestRevertsAreCommits(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "rev-parse", "--is-shallow-repository", "--show-prefix").Output()
	whole := err == nil && string(out) == "false\n\n" // and this is its top
	id := regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	for _, f := range Faults() {
		switch {
		case f.Revert == "":
		case !id.MatchString(f.Revert):
			t.Errorf("%s: %q is no commit", f.Name, f.Revert)
		case whole:
			if err := exec.Command("git", "-C", root, "merge-base", "--is-ancestor", f.Revert, "HEAD").Run(); err != nil {
				t.Errorf("%s: %s is no commit of this history: %v", f.Name, f.Revert, err)
			}
		}
	}
}

// The model of a play finds what is planted in it, in its quick test, and nothing where nothing is. It gives a
// policy what a line says, and does not see that it had it before; and it has no totals, which the simulation has.
func TestPlayFindsFaults(t *testing.T) {
	if !testkit.Full() {
		t.Skip("the program is built again with faults: SOTTO_FULL has it")
	}
	const env = "SOTTO_FAULT"
	binary, err := Build(t.Context(), root, "./play", t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append([]Fault{{File: "play/"}}, Faults()...) {
		if !strings.HasPrefix(f.File, "play/") || f.File == "play/total.go" {
			continue
		}
		only := "^TestLiveIsTheModel$"
		if f.Name == "" { // the package's own test has them all
			only += "/^dp-klucb$"
		}
		c := exec.Command(binary, "-test.run="+only, "-rapid.checks=1", "-rapid.nofailfile",
			"-rapid.shrinktime=1ms")
		c.Env = append(os.Environ(), env+"="+f.Name, "SOTTO_FULL=")
		if out, err := c.CombinedOutput(); (err == nil) != (f.Name == "") {
			t.Errorf("%q: %v\n%.2000s", f.Name, err, out)
		}
	}
}
