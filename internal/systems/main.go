// Command systems type-checks and vets everything, tests and dependencies too, for the systems that it
// is given as GOOS/GOARCH. It reads all from source, in a sixth of the time that compiling takes, and
// most of that is SQLite: so it finds what a compiler's first half finds, and nothing of a linker.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

// What go vet looks for where a system's own files, or the size of its int, may have it.
var vet = []*analysis.Analyzer{buildtag.Analyzer, copylock.Analyzer, lostcancel.Analyzer, printf.Analyzer,
	shift.Analyzer, stringintconv.Analyzer, unreachable.Analyzer, unusedresult.Analyzer}

func main() {
	for _, target := range os.Args[1:] {
		fmt.Println(target)
		if err := check(target); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			os.Exit(1)
		}
	}
}

func check(target string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("want GOOS/GOARCH")
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: true, ParseFile: parse,
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")}, "./...")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(pkgs); n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	graph, err := checker.Analyze(vet, pkgs, nil)
	if err != nil {
		return err
	}
	found := 0
	for _, a := range graph.Roots {
		found += len(a.Diagnostics)
		if a.Err != nil {
			return a.Err
		}
	}
	if found > 0 {
		_ = graph.PrintText(os.Stderr, 0) // the number says it too
		return fmt.Errorf("vet found %d", found)
	}
	return nil
}

// parse reads a file, and leaves out what functions do in the largest, which are SQLite and the C library
// that it needs, made from C by a program: what they declare is all that ours can be wrong about.
func parse(files *token.FileSet, name string, src []byte) (*ast.File, error) {
	f, err := parser.ParseFile(files, name, src, parser.AllErrors|parser.ParseComments)
	if err != nil || len(src) < 1<<19 {
		return f, err
	}
	used := map[string]bool{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			d.Body.List = []ast.Stmt{&ast.ForStmt{For: d.Body.Lbrace, Body: &ast.BlockStmt{}}} // returns nothing
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if n, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := n.X.(*ast.Ident); ok {
					used[x.Name] = true
				}
			}
			return true
		})
	}
	for _, i := range f.Imports {
		if i.Path.Value == `"unsafe"` && !used["unsafe"] {
			i.Name = &ast.Ident{NamePos: i.Pos(), Name: "_"}
		}
	}
	return f, nil
}
