// Command sized says which tests .ci/run does where, as assignments of the shell. In racing are the packages
// under a directory that start a goroutine, or whose tests do, or that hand functions to internal/pool: the race
// detector has something to find there. What only calls such a package is raced in that one's tests, and tests
// that run beside one another share nothing. alone are all other packages with tests. sized are the tests of
// racing that ask testkit for a size, or leave themselves out under the race detector, as a pattern for go test
// -run, and in are their packages. It goes by names alone: what has the name of what asks asks.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/sotto-dp/sotto"

// A folder is a package with its tests.
type folder struct {
	starts, testsStart   bool     // a goroutine
	imports, testsImport []string // folders of ours
	tests                bool
	uses                 map[string][]string // in tests: what stands in what each name declares
}

func main() {
	all, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	racing, alone, in, sized := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for dir, f := range all {
		if !f.tests {
			continue
		}
		if !f.starts && !f.testsStart && !slices.Contains(append(f.testsImport, f.imports...), "./internal/pool") {
			alone[dir] = true
			continue
		}
		racing[dir] = true
		for name := range f.uses {
			if strings.HasPrefix(name, "Test") && name != "TestMain" && !strings.HasSuffix(name, "InTime") && asks(f.uses, name, map[string]bool{}) {
				sized[name], in[dir] = true, true
			}
		}
	}
	list := func(set map[string]bool, by string) string { return strings.Join(slices.Sorted(maps.Keys(set)), by) }
	fmt.Printf("racing='%s'\nalone='%s'\nsized='^(%s)$'\nin='%s'\n", list(racing, " "), list(alone, " "),
		list(sized, "|"), list(in, " "))
}

func read() (map[string]*folder, error) {
	all := map[string]*folder{}
	return all, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch _, noModule := os.Stat(filepath.Join(name, "go.mod")); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (noModule == nil || slices.Contains([]string{"testdata", "node_modules"}, d.Name())):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := "./" + filepath.ToSlash(filepath.Dir(name))
		if all[dir] == nil {
			all[dir] = &folder{uses: map[string][]string{}}
		}
		all[dir].add(f, strings.HasSuffix(name, "_test.go"))
		return nil
	})
}

func (p *folder) add(f *ast.File, test bool) {
	var imports []string
	starts := false
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value) // it was parsed
		if ours, ok := strings.CutPrefix(name, module); ok {
			imports = append(imports, "./"+path.Clean("./"+ours))
		}
		starts = starts || test && name == "net/http/httptest"
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = starts || slices.Contains([]string{"Go", "AfterFunc", "RunParallel"}, n.Sel.Name)
		}
		return true
	})
	if !test {
		p.starts, p.imports = p.starts || starts, append(p.imports, imports...)
		return
	}
	p.tests, p.testsStart, p.testsImport = true, p.testsStart || starts, append(p.testsImport, imports...)
	for _, d := range f.Decls {
		names := namesIn(d)
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.uses[d.Name.Name] = append(p.uses[d.Name.Name], names...)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, n := range v.Names {
						p.uses[n.Name] = append(p.uses[n.Name], names...)
					}
				}
			}
		}
	}
}

// namesIn are the names in a declaration, those of other packages with theirs.
func namesIn(d ast.Decl) (names []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names = append(names, x.Name+"."+n.Sel.Name)
			}
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}

// asks says whether a name asks, by what it uses too.
func asks(uses map[string][]string, name string, seen map[string]bool) bool {
	switch name {
	case "testkit.Full", "testkit.Size", "testkit.Race", "testkit.RacedBefore",
		"testkit.OneGoroutine":
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	return slices.ContainsFunc(uses[name], func(n string) bool { return asks(uses, n, seen) })
}
