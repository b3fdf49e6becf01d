// Command sized says which tests .ci/run does where, as assignments of the shell. racing are the packages under a
// directory that start a goroutine, or whose tests do, or that hand functions to internal/pool: the race detector has
// something to find there, but for the tests that are still: those that reach nothing of the kind by the functions
// they name, of any package of ours, and by the methods that they name, of their own, where a package has more than a few. What only calls such a package is
// raced in that one's tests, and tests that run beside one another share nothing. alone are all other packages with
// tests. sized are the tests that are done at full size without the detector, as a pattern for go test -run: of racing
// those that are still, ask testkit for a size, or leave themselves out under the detector; in are their packages. It
// goes by names alone: what has the name of what starts one starts one, and what has the name of what asks asks.
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
	tests        bool
	code, tested side
}

// A side is what a package's code declares, or its tests; methods by ".", and their names alone.
type side struct {
	names map[string]*named
	tests bool
}

// A named is all that a folder declares by one name.
type named struct {
	own    bool // it starts a goroutine, or uses a package that is there to start some
	starts bool // that, or it uses what does
	uses   []use
	asks   []string // what stands in it, with the names of packages
	by     []*named // what uses it
}

// A use is of what a folder declares by a name.
type use struct{ dir, name string }

func main() {
	all, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	reach(all)
	type set = map[string]bool
	racing, alone, still, in, sized := set{}, set{}, set{}, set{}, set{}
	for dir, f := range all {
		switch {
		case !f.tests:
		case f.races() && !f.still():
			racing[dir] = true
		default:
			alone[dir] = true
		}
	}
	for dir := range racing {
		var quiet []string
		for name := range all[dir].runs() {
			if !all[dir].tested.names[name].starts {
				quiet = append(quiet, name)
			}
		}
		for _, name := range quiet {
			still[name] = still[name] || len(quiet) > few
		}
	}
	for dir := range racing { // a name is skipped in all packages
		for name := range all[dir].runs() {
			still[name] = still[name] && !all[dir].tested.names[name].starts
		}
	}
	maps.DeleteFunc(still, func(_ string, is bool) bool { return !is })
	for dir := range racing {
		for name := range all[dir].runs() {
			if still[name] || all[dir].asks(name, map[string]bool{}) {
				sized[name], in[dir] = true, true
			}
		}
	}
	list := func(set set, by string) string { return strings.Join(slices.Sorted(maps.Keys(set)), by) }
	fmt.Printf("racing='%s'\nalone='%s'\nstill='^(%s)$'\nsized='^(%s)$'\nin='%s'\n", list(racing, " "), list(alone, " "),
		list(still, "|"), list(sized, "|"), list(in, " "))
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
			all[dir] = &folder{code: side{map[string]*named{}, false}, tested: side{map[string]*named{}, true}}
		}
		if to := all[dir]; strings.HasSuffix(name, "_test.go") {
			to.tests = true
			to.tested.add(dir, f)
		} else {
			to.code.add(dir, f)
		}
		return nil
	})
}

// few tests are not worth a package built once more.
const few = 7

// pool and server are packages that are there to start goroutines.
const (
	pool   = "./internal/pool"
	server = "net/http/httptest"
)

// starters are packages of the standard library whose use starts goroutines.
var starters = []string{"net", "net/http", "net/rpc", "os/exec", "os/signal", "database/sql"}

func (p *side) add(dir string, f *ast.File) {
	called := map[string]string{} // by the name of a package, its folder if it is of ours; "go" if it starts some
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value) // it was parsed
		as, of := path.Base(name), ""
		if ours, ok := strings.CutPrefix(name, module); ok {
			of = "./" + path.Clean("./"+ours)
		} else if name == server {
			of = server
		} else if slices.Contains(starters, name) {
			of = "go"
		}
		if i.Name != nil {
			as = i.Name.Name
		}
		called[as] = of
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = "." + name
			}
			p.declare(dir, name, d, called)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						p.declare(dir, n.Name, s, called)
					}
				case *ast.TypeSpec:
					p.declare(dir, s.Name.Name, s, called)
				}
			}
		}
	}
}

// declare has what stands in a declaration of a name.
func (p *side) declare(dir, name string, d ast.Node, called map[string]string) {
	if name == "init" || name == "TestMain" || name == "_" { // which go on before every test
		name = ""
	}
	of := p.names[name]
	if of == nil {
		of = &named{}
		p.names[name] = of
	}
	method := map[*ast.Ident]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			of.own = true
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			of.own = of.own || ok && slices.Contains([]string{"Go", "AfterFunc", "RunParallel"}, sel.Sel.Name)
		case *ast.SelectorExpr:
			method[n.Sel] = true
			x, ok := n.X.(*ast.Ident)
			if ok {
				of.asks = append(of.asks, x.Name+"."+n.Sel.Name)
			}
			if at, is := called[fmt.Sprint(n.X)]; ok && is {
				if of.own, of.starts = of.own || at == pool || at == server && p.tests, of.starts || at == "go"; at != "" && at != "go" {
					of.uses = append(of.uses, use{at, n.Sel.Name})
				}
				method[x] = true
				return true
			}
			of.uses = append(of.uses, use{dir, "." + n.Sel.Name})
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				method[key] = true // as a rule a field
			}
		case *ast.Ident:
			of.asks = append(of.asks, n.Name)
			if !method[n] {
				of.uses = append(of.uses, use{dir, n.Name})
			}
		}
		return true
	})
}

// reach has everything start a goroutine that uses what starts one.
func reach(all map[string]*folder) {
	var queue []*named
	for dir, f := range all {
		for _, from := range []*side{&f.code, &f.tested} {
			for _, of := range from.names {
				for _, u := range of.uses {
					for _, to := range meant(all, dir, u) {
						to.by = append(to.by, of)
					}
				}
				if of.starts = of.starts || of.own; of.starts {
					queue = append(queue, of)
				}
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, by := range queue[0].by {
			if !by.starts {
				by.starts = true
				queue = append(queue, by)
			}
		}
	}
}

// meant is what a name can be that stands in a folder: of another one its code has it, and a method is of the same.
func meant(all map[string]*folder, dir string, u use) (out []*named) {
	sides := func(f *folder) []*side {
		switch {
		case f == nil:
			return nil
		case u.dir == dir:
			return []*side{&f.code, &f.tested}
		}
		return []*side{&f.code}
	}
	for _, in := range sides(all[u.dir]) {
		if of := in.names[u.name]; of != nil {
			out = append(out, of)
		}
	}
	return out
}

// runs are the names of what go test runs, but for what holds a time against what is promised.
func (p *folder) runs() map[string]bool {
	out := map[string]bool{}
	for name := range p.tested.names {
		if (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")) && !strings.HasSuffix(name, "InTime") {
			out[name] = true
		}
	}
	return out
}

// races says whether something of the package's own starts a goroutine, or hands functions to what does.
func (f *folder) races() bool {
	for _, in := range []*side{&f.code, &f.tested} {
		for _, of := range in.names {
			if of.own {
				return true
			}
		}
	}
	return false
}

// still says whether nothing that go test runs reaches what starts a goroutine.
func (f *folder) still() bool {
	for name := range f.runs() {
		if f.tested.names[name].starts {
			return false
		}
	}
	return true
}

// asks says whether a name of a test asks testkit for a size, by what it uses too.
func (p *folder) asks(name string, seen map[string]bool) bool {
	switch name {
	case "testkit.Full", "testkit.Size", "testkit.Race", "testkit.RacedBefore",
		"testkit.OneGoroutine":
		return true
	}
	if seen[name] || p.tested.names[name] == nil {
		return false
	}
	seen[name] = true
	return slices.ContainsFunc(p.tested.names[name].asks, func(n string) bool { return p.asks(n, seen) })
}
