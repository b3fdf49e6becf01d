package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// What the outside module imports, beside the code of the page.
const outsideImports = `package main

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

`

// A module outside of this one, made of the code in docs/adding-a-policy.md alone, has every command
// with a policy of its own.
func TestOutsideModule(t *testing.T) {
	if testkit.Race {
		t.Skip("the program is another process, built without the race detector")
	}
	if testing.Short() {
		t.Skip("builds a program of another module")
	}
	mine := buildOutside(t)
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		var out, err strings.Builder
		c := exec.Command(mine, args...)
		c.Dir, c.Stdout, c.Stderr = t.TempDir(), &out, &err
		if e := c.Run(); e != nil && c.ProcessState == nil {
			t.Fatal(e)
		}
		return out.String(), err.String(), c.ProcessState.ExitCode()
	}

	// The commands of the page do what it says.
	page, err := os.ReadFile(addingPage)
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string][]string{
		"list policies": {`(?m)^private-commit  \(Private explore then commit\)$`},
		"run":           {`(?m)^  private-commit +ε=1 +80 ± 0 `, `(?m)^  private-commit +none +80 ± 0 `},
		"choose":        {`(?m)^1 +(private-commit|adap-klucb) `, `mine run --arms 0\.7,0\.3 --policies`},
		"audit policy":  {`private-commit rounds=4 +not refuted`},
	}
	for _, m := range regexp.MustCompile(`(?m)^    mine (.*)$`).FindAllStringSubmatch(string(page), -1) {
		out, errs, code := run(wordsOf(m[1])...)
		if code != exitOK {
			t.Errorf("mine %s: exit code %d: %s", m[1], code, errs)
		}
		for name, want := range wants {
			if !strings.HasPrefix(m[1]+" ", name+" ") {
				continue
			}
			for _, w := range want {
				if !regexp.MustCompile(w).MatchString(out) {
					t.Errorf("mine %s: want %s in\n%s", m[1], w, out)
				}
			}
			delete(wants, name)
		}
	}
	if len(wants) > 0 {
		t.Errorf("the page does not show %v", wants)
	}

	// A broken twin of it is refuted.
	out, _, code := run("audit", "policy", "private-commit:rounds=4", "--epsilon", "1", "--broken", "half",
		"--games", "20000", "--json")
	var audited struct{ Refuted bool }
	if err := json.Unmarshal([]byte(out), &audited); err != nil || code != exitFailed || !audited.Refuted {
		t.Errorf("half the noise is not refuted: exit code %d, error %v:\n%s", code, err, out)
	}

	// An experiment in shards, its results and their page.
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte(`name: mine
horizon: 2000
runs: 64
seed: 1
instances: [{name: two, bernoulli: [0.7, 0.3]}]
policies: [{policy: private-commit, rounds: 50}, dp-se]
budgets: [{epsilon: 1}, none]
`), 0o644); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{{"validate", file}, {"run", file, "--shard", "0/2", "--out", at("a")},
		{"run", file, "--shard", "1/2", "--out", at("b")}, {"merge", at("a"), at("b"), "--out", at("all")},
		{"report", at("all")}, {"schema"}} {
		if out, errs, code := run(args...); code != exitOK || strings.Contains(args[0], "report") &&
			!strings.Contains(out, "private-commit") {
			t.Errorf("mine %s: exit code %d: %s", strings.Join(args, " "), code, errs)
		}
	}

	// What is wrong is told as for every policy.
	_, errs, code := run("run", "--arms", "0.7,0.3", "--policies", "private-comit", "--epsilon", "1",
		"--horizon", "1e4")
	if code != exitUsage || !strings.Contains(errs, `did you mean "private-commit"`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// buildOutside builds the program of the page in a module of its own.
func buildOutside(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var program string
	parts := []string{}
	for _, b := range codeBlocks(read(addingPage)) {
		switch {
		case strings.HasPrefix(b, "// Command"):
			program = b + "\n"
		case len(parts) < 2 && strings.HasPrefix(b, "// "):
			parts = append(parts, b+"\n")
		}
	}
	// The same versions as here, and nothing from a network.
	_, requires, _ := strings.Cut(read(filepath.Join(root, "go.mod")), "\nrequire ")
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": program,
		"commit.go": outsideImports + strings.Join(parts, "\n"),
		"go.mod": "module example.org/mine\n\ngo 1.26.0\n\nrequire " + requires +
			"\nrequire github.com/sotto-dp/sotto v0.0.0\n\nreplace github.com/sotto-dp/sotto => " + root + "\n",
		"go.sum": read(filepath.Join(root, "go.sum"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", "mine", ".") // linked in half the time
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "mine")
}
