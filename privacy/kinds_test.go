package privacy

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inners are mechanisms inside others.
const (
	local = `{"mechanism":"aggregated","trust":"local","noise":"laplace","g":1,"users":1000,` +
		`"invited":1000,"modulus":3001,"tau":1000,"num":1,"den":1}`
	shares = `{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":10,"users":100,` +
		`"invited":120,"modulus":1307,"tau":53,"num":10,"den":1}`
)

// written has one of each kind, as it is written.
var written = map[string]string{
	"exact":                `{"mechanism":"exact"}`,
	"laplace":              `{"mechanism":"laplace","scale":1.5}`,
	"gaussian":             `{"mechanism":"gaussian","sigma":1e-7}`,
	"tree":                 `{"mechanism":"tree","scale":1e+21,"horizon":8}`,
	"hybrid":               `{"mechanism":"hybrid","scale":2}`,
	"kary":                 `{"mechanism":"kary","scale":5,"base":19,"horizon":1000000}`,
	"sqrt":                 `{"mechanism":"sqrt","sigma":2,"horizon":1000}`,
	"blt":                  `{"mechanism":"blt","sigma":2,"horizon":1000,"decay":[0.99,0.5],"weight":[0.1,0.3]}`,
	"questions":            `{"mechanism":"questions","threshold":6,"query":5,"statistic":"centre"}`,
	"sparse":               `{"mechanism":"sparse","threshold":6,"query":5,"statistic":"range","scale":2}`,
	"sums":                 `{"mechanism":"sums","sigma":3}`,
	"elliptic":             `{"mechanism":"elliptic","sigma":1,"of":3,"played":[0,2],"counts":[5,7],"actions":[[1,0],[0,1]]}`,
	"vector-gaussian":      `{"mechanism":"vector-gaussian","sigma":3}`,
	"vector-laplace":       `{"mechanism":"vector-laplace","scale":2}`,
	"gram-laplace":         `{"mechanism":"gram-laplace","scale":2}`,
	"gram-gaussian":        `{"mechanism":"gram-gaussian","sigma":3}`,
	"vector-tree":          `{"mechanism":"vector-tree","scale":2,"horizon":1000,"dim":3}`,
	"gaussian-vector-tree": `{"mechanism":"gaussian-vector-tree","sigma":2,"horizon":1000}`,
	"gram-tree":            `{"mechanism":"gram-tree","sigma":2,"horizon":1000}`,
	"gram-blt":             `{"mechanism":"gram-blt","sigma":2,"horizon":1000,"decay":[0.5],"weight":[0.3]}`,
	"gram-wishart":         `{"mechanism":"gram-wishart","scale":2,"horizon":9,"dim":3,"degrees":50000,"delta":0.000001}`,
	"laplace-histogram":    `{"mechanism":"laplace-histogram","scale":2}`,
	"gaussian-histogram":   `{"mechanism":"gaussian-histogram","sigma":1.5}`,
	"aggregated":           shares,
	"shuffled-count": `{"mechanism":"shuffled-count","epsilon":1,"num":2,"den":1,"users":1000,` +
		`"invited":1001,"beta":0.001}`,
	"split-mix": `{"mechanism":"split-mix","inner":` + shares + `,"shares":12}`,
	"clones":    `{"mechanism":"clones","inner":` + local + `,"delta":0.000001}`,
}

// A new mechanism is in the table, and says all that the ledger, a file and a reader ask of it.
// What it forgets of the interface does not compile; what it may forget in spite of that is here.
func TestMechanismsForgetNothing(t *testing.T) {
	for kind := range written {
		if mechanisms.byName[kind] == nil {
			t.Errorf("%s is no kind", kind)
		}
	}
	for _, zero := range mechanisms.all {
		kind := zero.Kind()
		t.Run(kind, func(t *testing.T) {
			m, err := UnmarshalMechanism([]byte(written[kind]))
			if err != nil || reflect.TypeOf(m) != reflect.TypeOf(zero) || m.Kind() != kind {
				t.Fatalf("%s is read as %T %v, %v", written[kind], m, m, err)
			}
			if data, err := json.Marshal(m); string(data) != written[kind] || err != nil {
				t.Errorf("%s is written as %s, %v", written[kind], data, err)
			}
			if s := fmt.Sprint(m); !strings.HasPrefix(s, kind) {
				t.Errorf("it is %q to people", s)
			}
			exact := kind == "exact"
			if m.Loss().Infinite() != exact {
				t.Errorf("it loses %v", m.Loss())
			}
			f := m.facts()
			if !f.sum && !f.vector && kind != "questions" {
				t.Error("its price is for nothing")
			}
			if running := m.Continual() && !exact && kind != "questions"; running != (f.longest > 0) {
				t.Errorf("continual is %v, and its longest sum of %d rewards", m.Continual(), f.longest)
			}
			e := m.entry()
			if !(e.Sensitivity > 0) || math.IsInf(e.Sensitivity, 0) || (e.Scale > 0) == exact {
				t.Errorf("entry %+v", e)
			}
			d, draws := DrawsOf(m)
			if running := f.longest > 0; running != (draws && (d.Shows != nil || d.Column != nil)) {
				t.Errorf("an auditor is told %+v of running sums", d)
			}
			if draws && !exact && d.Sum != (f.sum && !f.vector) || draws && !exact && !(d.Scale > 0) {
				t.Errorf("draws %+v", d)
			}
			if vector := f.vector && !exact; vector != (e.Norm != "") {
				t.Errorf("vector is %v, and its norm %q", f.vector, e.Norm)
			}
			l := NewLedger()
			if got := l.get(l.account(m)).mechanism; got != m {
				t.Errorf("to the ledger it is %v", got)
			}
		})
	}
}

// Every field must be there, and no other.
func TestMechanismsAreReadWhole(t *testing.T) {
	for kind, text := range written {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		refused := func(mention string) {
			data, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			m, err := UnmarshalMechanism(data)
			if err == nil || m != nil || !strings.Contains(err.Error(), mention) {
				t.Errorf("%s is read as %v, %v", data, m, err)
			}
		}
		for _, name := range slices.Collect(maps.Keys(fields)) {
			if name != "mechanism" {
				value := fields[name]
				delete(fields, name)
				refused("mechanism " + kind + ": the field \"" + name + "\" is missing")
				fields[name] = json.RawMessage("null")
				refused("the field \"" + name + "\" is missing")
				fields[name] = json.RawMessage(`{"":[]}`)
				refused("mechanism " + kind + ": " + name + ": ")
				fields[name] = value
			}
		}
		fields["future"] = json.RawMessage("1")
		refused("mechanism " + kind + ": it has no field \"future\"")
	}
}

// What is a mechanism is in the table, and one file has all of it.
func TestOneFileAMechanism(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]map[string]bool{} // of a type's methods
	kinds := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			of := f.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if g, ok := of.(*ast.IndexExpr); ok {
				of = g.X
			}
			typ := of.(*ast.Ident).Name
			if files[typ] == nil {
				files[typ] = map[string]bool{}
			}
			files[typ][name] = true
			kinds[typ] = kinds[typ] || f.Name.Name == "Kind"
		}
	}
	listed := map[string]bool{"Unknown": true}
	for _, m := range mechanisms.all {
		listed[reflect.TypeOf(m).Name()] = true
	}
	for typ, kind := range kinds {
		if kind && !listed[typ] {
			t.Errorf("%s is not in the table of mechanisms: it would cost ∞", typ)
		}
		if kind && len(files[typ]) > 1 {
			t.Errorf("methods of %s are in %v", typ, slices.Sorted(maps.Keys(files[typ])))
		}
	}
}
