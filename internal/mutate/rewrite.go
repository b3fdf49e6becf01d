package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// switches is compiled into the package: what each mutant does when it is on.
//
//go:embed switches.go.txt
var switches string

type mutant struct {
	id                    int
	kind, fn, expr, place string
	state                 state
}

// key says which mutant it is, wherever it stands.
func (m mutant) key() string { return m.fn + " " + m.kind + " " + m.expr }

// build compiles a package's tests with all its mutants.
func build(pattern, work string) (*binary, []mutant, error) {
	ps, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedCompiledGoFiles |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, pattern)
	if err != nil {
		return nil, nil, err
	}
	if len(ps) != 1 {
		return nil, nil, fmt.Errorf("%s is %d packages, must be one", pattern, len(ps))
	}
	p := ps[0]
	if len(p.Errors) > 0 {
		return nil, nil, p.Errors[0]
	}
	w := &rewriter{pkg: p}
	overlay := map[string]string{}
	put := func(path, text string) error {
		dst := filepath.Join(work, filepath.Base(path))
		overlay[path] = dst
		return os.WriteFile(dst, []byte(text), 0o600)
	}
	for i, f := range p.Syntax {
		text, err := w.rewrite(f, p.CompiledGoFiles[i])
		if err == nil {
			err = put(p.CompiledGoFiles[i], text)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	dir := filepath.Dir(p.CompiledGoFiles[0])
	if err := put(filepath.Join(dir, "zz_mutants.go"), "package "+p.Name+switches); err != nil {
		return nil, nil, err
	}
	js, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, nil, err
	}
	over := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(over, js, 0o600); err != nil {
		return nil, nil, err
	}
	b := &binary{path: filepath.Join(work, "test"), dir: dir, work: work, least: 2 * time.Second}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", over, "-o", b.path, pattern)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building the mutants of %s: %w\n%s", pattern, err, out)
	}
	return b, w.mutants, nil
}

type rewriter struct {
	pkg     *packages.Package
	src     []byte
	fn      string
	mutants []mutant
}

func (w *rewriter) rewrite(f *ast.File, path string) (string, error) {
	var err error
	if w.src, err = os.ReadFile(path); err != nil {
		return "", err
	}
	var b strings.Builder
	at := 0
	for _, d := range f.Decls {
		w.fn = "var"
		if d, ok := d.(*ast.FuncDecl); ok {
			w.fn = d.Name.Name
			if d.Recv != nil {
				w.fn = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + w.fn
			}
		}
		b.Write(w.src[at:w.offset(d.Pos())])
		b.WriteString(w.text(d))
		at = w.offset(d.End())
	}
	b.Write(w.src[at:])
	return b.String(), nil
}

func (w *rewriter) offset(p token.Pos) int { return w.pkg.Fset.Position(p).Offset }

func (w *rewriter) source(n ast.Node) string {
	return string(w.src[w.offset(n.Pos()):w.offset(n.End())])
}

// text is the source of n with the mutants in it.
func (w *rewriter) text(n ast.Node) string {
	if s, ok := w.mutate(n); ok {
		return s
	}
	var b strings.Builder
	at := w.offset(n.Pos())
	ast.Inspect(n, func(m ast.Node) bool {
		switch d := m.(type) {
		case nil, *ast.ArrayType: // a length must stay constant
			return false
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				return false
			}
		}
		if m == n {
			return true
		}
		s, ok := w.mutate(m)
		if ok {
			b.Write(w.src[at:w.offset(m.Pos())])
			b.WriteString(s)
			at = w.offset(m.End())
		}
		return !ok
	})
	b.Write(w.src[at:w.offset(n.End())])
	return b.String()
}

var arithmetic = map[token.Token]struct {
	name string
	to   token.Token
}{
	token.ADD: {"Add", token.SUB}, token.SUB: {"Sub", token.ADD}, token.REM: {"Rem", token.MUL},
	token.MUL: {"Mul", token.QUO}, token.QUO: {"Quo", token.MUL},
}

var ordered = map[token.Token]string{token.LSS: "Lss", token.LEQ: "Leq", token.GTR: "Gtr", token.GEQ: "Geq"}

// mutate is n with its mutants, or false if there are none at its top.
func (w *rewriter) mutate(n ast.Node) (string, bool) {
	if e, ok := n.(ast.Expr); ok && w.pkg.TypesInfo.Types[e].Value != nil {
		return w.constant(e)
	}
	switch e := n.(type) {
	case *ast.IncDecStmt:
		id := w.add("INCREMENT_DECREMENT", e, types.ExprString(e.X)+e.Tok.String())
		op := map[token.Token]string{token.INC: "+=", token.DEC: "-="}[e.Tok]
		return fmt.Sprintf("%s %s %s(mutOne(%d))", w.text(e.X), op, w.typeOf(e.X), id), true
	case *ast.UnaryExpr:
		if e.Op == token.SUB && w.numeric(e) {
			id := w.add("INVERT_NEGATIVES", e, types.ExprString(e))
			return fmt.Sprintf("mutNeg(%d, %s)", id, w.text(e.X)), true
		}
	case *ast.BinaryExpr:
		inst := "" // a constant takes the type of the other operand
		if v := w.pkg.TypesInfo.Types; v[e.X].Value != nil {
			inst = "[" + w.typeOf(e.Y) + "]"
		} else if v[e.Y].Value != nil {
			inst = "[" + w.typeOf(e.X) + "]"
		}
		if a, ok := arithmetic[e.Op]; ok && w.numeric(e) {
			id := w.add("ARITHMETIC_BASE", e, operation(e))
			return fmt.Sprintf("mut%s%s(%d, %s, %s)", a.name, inst, id, w.text(e.X), w.text(e.Y)), true
		}
		if name, ok := ordered[e.Op]; ok {
			id := w.add("CONDITIONALS_BOUNDARY", e, operation(e))
			w.add("CONDITIONALS_NEGATION", e, operation(e))
			return fmt.Sprintf("mut%s%s(%d, %s, %s)", name, inst, id, w.text(e.X), w.text(e.Y)), true
		}
		if e.Op == token.EQL || e.Op == token.NEQ {
			id := w.add("CONDITIONALS_NEGATION", e, operation(e))
			return fmt.Sprintf("mutNot(%d, %s %s %s)", id, w.text(e.X), e.Op, w.text(e.Y)), true
		}
	}
	return "", false
}

// constant is a constant expression beside each of its mutants that compile: it is worked out by
// the compiler, exactly, before it becomes a number of its type.
func (w *rewriter) constant(c ast.Expr) (string, bool) {
	typ, src := w.typeOf(c), w.source(c)
	var or []string
	first := len(w.mutants)
	ast.Inspect(c, func(n ast.Node) bool {
		kind, expr, at, to, was := "", "", token.NoPos, "", 0
		switch e := n.(type) {
		case *ast.UnaryExpr:
			if e.Op == token.SUB {
				kind, expr, at, to, was = "INVERT_NEGATIVES", types.ExprString(e), e.OpPos, "+", 1
			}
		case *ast.BinaryExpr:
			if a, ok := arithmetic[e.Op]; ok {
				kind, expr, at, to, was = "ARITHMETIC_BASE", operation(e), e.OpPos, a.to.String(), 1
			}
		}
		if kind == "" {
			return true
		}
		i := w.offset(at) - w.offset(c.Pos())
		text := fmt.Sprintf("%s(%s%s%s)", typ, src[:i], to, src[i+was:])
		if _, err := types.Eval(w.pkg.Fset, w.pkg.Types, c.Pos(), text); err == nil {
			w.add(kind, n, expr)
			or = append(or, text)
		}
		return true
	})
	// Text that is mutated keeps its place even where nothing compiles, so that no part of
	// it is tried again.
	if or == nil {
		return src, true
	}
	return fmt.Sprintf("mutPick[%s](%d, %s, %s)", typ, first, src, strings.Join(or, ", ")), true
}

func (w *rewriter) add(kind string, n ast.Node, expr string) int {
	p := w.pkg.Fset.Position(n.Pos())
	id := len(w.mutants)
	w.mutants = append(w.mutants, mutant{id: id, kind: kind, fn: w.fn, expr: expr,
		place: fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)})
	return id
}

func (w *rewriter) numeric(e ast.Expr) bool {
	t := w.pkg.TypesInfo.TypeOf(e)
	if _, ok := t.(*types.TypeParam); ok {
		return true
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

func (w *rewriter) typeOf(e ast.Expr) string {
	return types.TypeString(types.Default(w.pkg.TypesInfo.TypeOf(e)), func(p *types.Package) string {
		if p == w.pkg.Types {
			return ""
		}
		return p.Name()
	})
}

// operation is an operator with the near ends of its operands.
func operation(e *ast.BinaryExpr) string {
	x, y := []rune(types.ExprString(e.X)), []rune(types.ExprString(e.Y))
	if len(x) > 40 {
		x = append([]rune("…"), x[len(x)-40:]...)
	}
	if len(y) > 40 {
		y = append(y[:40], '…')
	}
	return fmt.Sprintf("%s %s %s", string(x), e.Op, string(y))
}
