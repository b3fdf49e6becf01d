package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	goTest   = regexp.MustCompile(`^go test (\.\S*) -run '?(Test\w+)\$?'?$`)
)

// Every claim of the page for data protection officers has a command that there is: a test of its package, a
// file of the repository, or a command of sotto that parses. No claim has two, or none.
func TestClaimsOfDPIA(t *testing.T) {
	text, err := os.ReadFile("../docs/dpia.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 12<<10 {
		t.Errorf("docs/dpia.md has %d bytes, must have at most %d", len(text), 12<<10)
	}
	before, claims, found := strings.Cut(string(text), "## Claims, and the command")
	if !found {
		t.Fatal("it has no claims")
	}
	rows := 0
	for line := range strings.Lines(claims) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 2 || cells[0] == "| claim" {
			continue
		}
		rows++
		spans := codeSpan.FindAllStringSubmatch(cells[1], -1)
		if len(spans) != 1 || len(cells[0]) < 20 {
			t.Errorf("a claim has not one command: %s", line)
			continue
		}
		if problem := refutes(t, spans[0][1]); problem != "" {
			t.Errorf("%s: %s", spans[0][1], problem)
		}
	}
	if rows < 20 {
		t.Errorf("it has %d claims", rows)
	}
	for _, m := range codeSpan.FindAllStringSubmatch(before, -1) {
		if strings.HasPrefix(m[1], "sotto ") && strings.Contains(m[1], ".yaml") {
			parses(t, m[1])
		}
	}
	for _, bad := range []string{"go test ./cli -run TestOfNobody", "go test ./nowhere -run TestClaimsOfDPIA",
		"proofs/none.sh", "go test ./cli", "go test ./release -run TestTimingOfReports", "go test ./noise -run TestModel"} {
		if refutes(t, bad) == "" {
			t.Errorf("%s passes for a command", bad)
		}
	}
}

// assigned are variables of the environment before a command.
var assigned = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )+`)

// refutes says why a command cannot be run, or would look at nothing, and nothing if it can.
func refutes(t *testing.T, command string) string {
	if first, second, both := strings.Cut(command, " && "); both {
		return refutes(t, first) + refutes(t, second)
	}
	variables := assigned.FindString(command)
	command = strings.TrimPrefix(command, variables)
	if strings.HasPrefix(command, "sotto ") {
		parses(t, command)
		return ""
	}
	m := goTest.FindStringSubmatch(command)
	if m == nil {
		program, _, _ := strings.Cut(command, " ")
		if info, err := os.Stat(filepath.Join("..", program)); err != nil || info.Mode()&0o111 == 0 {
			return "is no test, no command of sotto and no program of the repository"
		}
		return ""
	}
	files, err := filepath.Glob(filepath.Join("..", m[1], "*_test.go"))
	if err != nil {
		return err.Error()
	}
	exact := regexp.MustCompile(`(?ms)^func ` + m[2] + `\(t \*testing\.T\).*?^}`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err.Error()
		}
		if body := exact.Find(text); body != nil {
			for call, variable := range map[string]string{"testkit.Timing()": "SOTTO_TIMING=", `"SOTTO_MODEL"`: "SOTTO_MODEL="} {
				if bytes.Contains(body, []byte(call)) && !strings.Contains(variables, variable) {
					return "does nothing without " + variable
				}
			}
			return ""
		}
	}
	return "is no test of that package"
}
