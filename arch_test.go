package sotto_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/sotto-dp/sotto"

// floors are the layers, lowest first (docs/design.md): a package imports only floors below its
// own. A package that is not listed fails the test, so that a new one gets its place.
var floors = [][]string{
	{"client", "client/browser", "docs", "docs/explorer", "feature", "internal/atomicfile", "internal/build",
		"internal/chain", "internal/clock", "internal/design", "internal/divergence",
		"internal/gramline", "internal/look", "internal/mutate", "internal/network", "internal/pgtest",
		"internal/pool", "internal/rows", "internal/sized", "internal/stats", "internal/systems", "internal/testkit",
		"internal/unitball", "internal/words", "live/internal/plant", "live/internal/simulate", "live/lease", "live/serve/oidc", "logged",
		"noise",
		"privacy", "secagg"},
	{"bandit", "bound", "client/leased", "client/openfeature", "internal/parquetlog", "internal/report", "interval",
		"policy", "release", "secagg/prio", "secagg/transport"},
	{"internal/problem", "lab/letor", "live/aggregate", "play", "policy/identify", "policy/linear",
		"secagg/dap"},
	{"catalog", "live/serve/store", "sim", "trial/stopping"},
	{"choose", "internal/clicks", "internal/keyed", "lab/process", "trial"},
	{"audit", "lab/experiment", "live/decl"},
	{"audit/protocol", "cli/flags", "client/private", "lab/train", "live/plan", "live/serve",
		"live/serve/helper"},
	{"lab/bounds", "lab/explore", "lab/peers", "lab/verdict", "live/demo", "live/serve/compat", "live/serve/page"},
	{"lab/explore/site", "lab/paper", "live/serve/api"},
	{"lab/explore/make", "live/liveaudit", "live/load", "live/servetest"},
	{"cli", "examples/live", "examples/private", "examples/visitors"},
	{"cmd/sotto"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []listed {
	t.Helper()
	all, err := listing()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listing asks once for all tests.
var listing = sync.OnceValues(func() (all []listed, err error) {
	out, err := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func TestImportsOnlyGoDown(t *testing.T) {
	floor := map[string]int{}
	for i, names := range floors {
		for _, n := range names {
			floor[module+"/"+n] = i + 1
		}
	}
	for _, p := range list(t) {
		if p.ImportPath == module {
			continue
		}
		own, ok := floor[p.ImportPath]
		if !ok {
			t.Errorf("%s has no floor", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, module) && floor[i] >= own {
				t.Errorf("%s, floor %d, imports %s, floor %d", p.ImportPath, own, i, floor[i])
			}
		}
	}
}

// part is which of the three parts of the house a package is in, the library, the service and what
// applications import of it, and the lab; or what all of them share; or who uses them.
func part(name string) string {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "live", "client":
		return "service"
	case "lab", "internal":
		return top
	case "cli", "cmd", "examples", "docs":
		return "command"
	}
	return "library"
}

// The parts stay apart: the library knows of neither the service nor the lab, the service not of the
// lab nor the lab of the service, and the command alone imports the lab.
func TestParts(t *testing.T) {
	may := map[string][]string{"internal": {"library", "internal"}, "library": {"library", "internal"},
		"service": {"library", "internal", "service"}, "lab": {"library", "internal", "lab"}}
	// Audits of sums by protocols, and what an experiment draws by one, are made by the code that makes them.
	known := map[string]bool{"audit/protocol live/aggregate": true, "lab/experiment live/aggregate": true,
		"lab/explore/site docs/explorer": true, "lab/explore/make docs/explorer": true,
		"live/serve/page docs": true} // which are texts
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		from, ok := may[part(name)]
		for _, i := range p.Imports {
			to, ours := strings.CutPrefix(i, module+"/")
			if ours && ok && name != "" && !slices.Contains(from, part(to)) && !known[name+" "+to] {
				t.Errorf("%s, %s, imports %s, %s", name, part(name), to, part(to))
			}
		}
	}
}

// A program that imports a package of the library compiles few modules beside it.
func TestModulesOfTheLibrary(t *testing.T) {
	most := map[string]int{"audit/protocol": 4, "secagg": 3, "secagg/dap": 3, "secagg/prio": 3, "secagg/transport": 3,
		"client/private": 6, "client": 0, "client/leased": 1, "live/decl": 6}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{$.ImportPath}} {{.Path}}{{end}}",
		"./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := map[string]string{} // the module of a package
	for line := range strings.Lines(string(out)) {
		if pkg, of, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			home[pkg] = of
		}
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		limit, named := most[name]
		if !named {
			if limit = 1; name == module || part(name) != "library" {
				continue
			}
		}
		of := map[string]bool{}
		for _, d := range p.Deps {
			of[home[d]] = true
		}
		delete(of, "") // the standard library
		delete(of, module)
		if len(of) > limit {
			t.Errorf("%s compiles %d modules, must be at most %d: %v", name, len(of), limit, slices.Sorted(maps.Keys(of)))
		}
	}
}

// The table of docs/design.md is made of the floors, lowest first.
func TestDesignPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| floor | packages |\n|---|---|\n")
	for i, packages := range floors {
		fmt.Fprintf(&table, "| %d | `%s` |\n", i+1, strings.Join(slices.Sorted(slices.Values(packages)), "`, `"))
	}
	made(t, "docs/design.md", "floors", "go test . -run DesignPage -update", table.String())
}

// A policy is post-processing: nothing that it can reach holds a reward or draws noise.
func TestNoPolicyReachesRewards(t *testing.T) {
	seen := 0
	for _, p := range list(t) {
		if p.ImportPath != module+"/policy" && !strings.HasPrefix(p.ImportPath, module+"/policy/") {
			continue
		}
		seen++
		for _, forbidden := range []string{"bandit", "release", "noise", "play", "sim", "logged"} {
			if slices.Contains(p.Deps, module+"/"+forbidden) {
				t.Errorf("%s reaches %s", p.ImportPath, forbidden)
			}
		}
		for _, d := range p.Deps {
			if strings.HasPrefix(d, "math/rand") || d == "crypto/rand" {
				t.Errorf("%s reaches %s: a policy draws no noise", p.ImportPath, d)
			}
		}
	}
	if seen == 0 {
		t.Error("no policy package found")
	}
}

// Errors say what is wrong in one grammar, "field is value, must be …".
func TestErrorsHaveOneGrammar(t *testing.T) {
	old := regexp.MustCompile(`: ((it|they|there|both|all) )?must |[:,] want | at least [a-z0-9%]+ (is|are) needed`)
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, depth := range []string{"*/*/*.go", "*/*/*/*.go"} {
		more, err := filepath.Glob(depth)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, name := range files {
		// In a tool for those who work on the code, and in tests, "want" is a test's.
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/mutate") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, arg := range call.Args {
				if text := literal(arg); old.MatchString(text) {
					t.Errorf("%v: %q", set.Position(arg.Pos()), text)
				}
			}
			return true
		})
	}
}

// literal is the text of a string, or of strings that are added up.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}
