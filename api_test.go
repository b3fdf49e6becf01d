package sotto_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// What is exported by the packages that docs/stability.md promises is testdata/api.txt, one line an
// identifier, so that a review sees what changes of it. With -update it is written anew:
//
//	go test . -run API -update
func TestAPI(t *testing.T) {
	const file = "testdata/api.txt"
	_, row, found := strings.Cut(read(t, "docs/stability.md"), "\n| **API.** ")
	row, _, _ = strings.Cut(row, "\n")
	if !found {
		t.Fatal("docs/stability.md promises no package")
	}
	var lines []string
	for _, m := range packageName.FindAllStringSubmatch(row, -1) {
		lines = append(lines, exported(t, m[1])...)
	}
	slices.Sort(lines)
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := strings.Split(strings.TrimSuffix(read(t, file), "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(old, l) {
			t.Errorf("new: %s", l)
		}
	}
	for _, l := range old {
		if !slices.Contains(lines, l) {
			t.Errorf("gone: %s", l)
		}
	}
	if t.Failed() {
		t.Error("the API changes: if it should, run go test . -run API -update, and say so in CHANGELOG.md")
	}
}

// exported are the lines of a package, as it is on the machine that runs the test.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, "pkg "+filepath.ToSlash(dir)+", "+fmt.Sprintf(format, args...))
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				function(d, add)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						value(d.Tok, s, add)
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							declared(s, add)
						}
					}
				}
			}
		}
	}
	return lines
}

type adder func(format string, args ...any)

func function(d *ast.FuncDecl, add adder) {
	signature := strings.TrimPrefix(code(d.Type), "func")
	switch {
	case !d.Name.IsExported():
	case d.Recv == nil:
		add("func %s%s", d.Name, signature)
	default:
		of := code(d.Recv.List[0].Type)
		if ast.IsExported(strings.TrimLeft(of, "*")) {
			add("method (%s) %s%s", of, d.Name, signature)
		}
	}
}

func value(kind token.Token, s *ast.ValueSpec, add adder) {
	for i, n := range s.Names {
		if !n.IsExported() {
			continue
		}
		text := n.Name
		if s.Type != nil {
			text += " " + code(s.Type)
		}
		if kind == token.CONST && i < len(s.Values) {
			text += " = " + code(s.Values[i])
		}
		add("%s %s", kind, text)
	}
}

// declared lists a type; of a struct its exported fields, of an interface its methods.
func declared(s *ast.TypeSpec, add adder) {
	name := s.Name.Name
	if s.TypeParams != nil {
		name += "[" + strings.TrimSuffix(strings.TrimPrefix(code(&ast.FuncType{
			Params: s.TypeParams}), "func("), ")") + "]"
	}
	var members []*ast.Field
	kind := ""
	switch x := s.Type.(type) {
	case *ast.StructType:
		kind, members = "struct", x.Fields.List
	case *ast.InterfaceType:
		kind, members = "interface", x.Methods.List
	default:
		if s.Assign.IsValid() {
			kind = "= "
		}
		add("type %s %s%s", name, kind, code(s.Type))
		return
	}
	add("type %s %s", name, kind)
	for _, m := range members {
		if of := code(m.Type); len(m.Names) == 0 &&
			(kind == "interface" || ast.IsExported(of[strings.LastIndexAny(of, "*.")+1:])) {
			add("type %s %s, %s", name, kind, code(m.Type))
		}
		for _, n := range m.Names {
			if n.IsExported() {
				text := code(m.Type)
				if kind == "interface" {
					text = strings.TrimPrefix(text, "func")
				} else {
					text = " " + text
				}
				add("type %s %s, %s%s", name, kind, n.Name, text)
			} else if kind == "interface" {
				add("type %s %s, unexported methods", name, kind)
			}
		}
	}
}

// code is a node in one line.
func code(n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
