package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// The recipes are run where pandas or R are, on the files of the page's own commands, and find the
// same numbers; everywhere, what they read is in those files.
func TestRecipes(t *testing.T) {
	if testkit.Race {
		t.Skip("what the pages show is simulation, slow under the race detector")
	}
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(examples, "examples"); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessionsOf(string(page)) {
		for _, c := range s.commands {
			if code := run(context.Background(), wordsOf(c.text)[1:],
				streams{in: strings.NewReader(""), out: io.Discard, err: os.Stderr}); code != exitOK {
				t.Fatalf("%s ends with %d", c.text, code)
			}
		}
	}
	writeLedger(t)
	code := func(name string) string {
		text, err := os.ReadFile("examples/recipes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	python, r := code("recipes.py"), code("recipes.R")
	t.Run("names", func(t *testing.T) { namesOfRecipes(t, python, r) })

	// What is printed, without its form: 512 and 512.0, and 198.4, in both.
	answer := func(t *testing.T, out []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"adap-klucb", "kl-ucb", "512", "198.4", "18.6", "middle",
			"placebo", "laplace"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("it does not print %s:\n%s", want, out)
			}
		}
	}
	t.Run("pandas", func(t *testing.T) {
		for _, program := range []string{"python3", "/usr/bin/python3"} {
			if exec.Command(program, "-c", "import pandas, matplotlib").Run() == nil {
				c := exec.Command(program, "-c", python)
				c.Env = append(os.Environ(), "MPLBACKEND=agg")
				out, err := c.CombinedOutput()
				answer(t, out, err)
				return
			}
		}
		t.Skip("pandas is not there")
	})
	t.Run("R", func(t *testing.T) {
		if exec.Command("Rscript", "-e", "library(jsonlite)").Run() != nil {
			t.Skip("R with jsonlite is not there")
		}
		out, err := exec.Command("Rscript", "-e", r).CombinedOutput()
		answer(t, out, err)
	})
}

// writeLedger writes ledger.json as the service gives it.
func writeLedger(t *testing.T) {
	t.Helper()
	l := privacy.NewLedger()
	for slot := range 3 {
		if err := l.Record(slot, privacy.Laplace{Scale: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("ledger.json", b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// namesOfRecipes checks that what the recipes name is in the files that they read.
func namesOfRecipes(t *testing.T, python, r string) {
	csv, err := os.ReadFile("results/small/summary.csv")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(csv, []byte("\n"))
	known := strings.Split(string(head), ",")
	for _, file := range []string{"trial.jsonl", "ledger.json"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllSubmatch(b, -1) {
			known = append(known, string(m[1]))
		}
	}
	used := 0
	for _, m := range regexp.MustCompile(`\["([a-z]+)"\]|\.get\("([a-z]+)"\)|\b(?:x|d|last|line|means|regret|ledger|entries|plays|mechanism)\$([a-z]+)`).
		FindAllStringSubmatch(python+r, -1) {
		used++
		name := m[1] + m[2] + m[3]
		if !slices.Contains(known, name) {
			t.Errorf("the recipes read %q, the files have %q", name, known)
		}
	}
	if used < 30 {
		t.Errorf("only %d names are read", used)
	}
}
