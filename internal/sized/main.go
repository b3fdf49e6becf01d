// Command sized prints the names of the tests under a directory that ask testneeds for a size, or leave
// themselves out where the race detector is on, as a pattern for go test -run, and then their packages.
// It goes by names alone: a test that uses what has the name of what asks is one of them.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	uses := map[string]map[string][]string{} // by directory: what stands in what each name declares
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := "./" + filepath.Dir(path)
		if uses[dir] == nil {
			uses[dir] = map[string][]string{}
		}
		for _, d := range f.Decls {
			names := namesIn(d)
			switch d := d.(type) {
			case *ast.FuncDecl:
				uses[dir][d.Name.Name] = append(uses[dir][d.Name.Name], names...)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, n := range v.Names {
							uses[dir][n.Name] = append(uses[dir][n.Name], names...)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tests, dirs := map[string]bool{}, map[string]bool{}
	for dir, uses := range uses {
		for name := range uses {
			if strings.HasPrefix(name, "Test") && name != "TestMain" && asks(uses, name, map[string]bool{}) {
				tests[name], dirs[dir] = true, true
			}
		}
	}
	fmt.Printf("^(%s)$\n%s\n", strings.Join(slices.Sorted(maps.Keys(tests)), "|"),
		strings.Join(slices.Sorted(maps.Keys(dirs)), "\n"))
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
	case "testneeds.Full", "testneeds.Size", "testneeds.Race", "testneeds.OneGoroutine":
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	return slices.ContainsFunc(uses[name], func(n string) bool { return asks(uses, n, seen) })
}
