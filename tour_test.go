package sotto_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What docs/tour.md names is there: each file and folder, and each identifier in the file that was named last.
func TestTour(t *testing.T) {
	folder := regexp.MustCompile(`^[a-z]+(/[a-z]+)+$`)
	file := ""
	var known map[string]bool
	files, walks, names := 0, 0, 0
	for i, line := range strings.Split(read(t, "docs/tour.md"), "\n") {
		if strings.HasPrefix(line, "## Walk ") {
			walks++
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			name := m[1]
			switch {
			case strings.HasSuffix(name, ".go"):
				file, known = name, declarations(t, name)
				files++
			case folder.MatchString(name):
				if d, err := os.Stat(name); err != nil || !d.IsDir() {
					t.Errorf("docs/tour.md:%d: there is no folder %s", i+1, name)
				}
			case regexp.MustCompile(`^[A-Za-z]\w*(\.\w+)?$`).MatchString(name):
				names++
				if !known[name] {
					t.Errorf("docs/tour.md:%d: %s declares no %s", i+1, file, name)
				}
			}
		}
	}
	if walks != 5 || files < 100 || names < 150 {
		t.Errorf("the tour has %d walks, %d files and %d names", walks, files, names)
	}
}

// declarations are the names that a file declares; of a type's methods and fields, with the type's.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	all := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			all[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					all[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						all[n.Name] = true
					}
				}
			}
		}
	}
	return all
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
