package experiment

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// A Reader reads experiments whose policies are those of its catalog, Sotto's if that is empty.
type Reader struct{ Catalog catalog.Catalog }

// Read reads an experiment from a file. Paths in it are relative to its directory.
func (r Reader) Read(path string) (*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &keyed.Error{Err: err}
	}
	defer f.Close()
	return r.ReadAll(f, path)
}

// ReadAll reads an experiment from in; errors and relative paths are named after file.
func (r Reader) ReadAll(in io.Reader, file string) (*Spec, error) {
	data, err := keyed.ReadFile(in, file)
	if err != nil {
		return nil, err
	}
	return r.Parse(file, data)
}

// Parse reads an experiment from YAML, strictly: an unknown key, a key given twice, a second
// document, a number where text should be, or a number that would have to be rounded is an error.
// The error says where it is and, of a name it does not know, which one was probably meant. Parse
// checks the form; Spec.Resolve checks what it says.
func (r Reader) Parse(file string, data []byte) (*Spec, error) {
	d := keyed.NewDecoder(r.Catalog, file, ownKey, "horizon, instances, policies, rules and budgets",
		". Rewards in a CSV are read by an instance, csv: FILE, or by --csv FILE in place of an experiment")
	body, err := d.Parse(data)
	if err != nil {
		return nil, err
	}
	spec, err := readSpec(d, body)
	if err != nil {
		return nil, err
	}
	spec.src, spec.Catalog = d.Src, r.Catalog
	spec.dir = filepath.Dir(file)
	return spec, nil
}

// ownKey is a key of experiments that a log has no column for.
var ownKey = regexp.MustCompile(`(?m)(^|[\s{,"'])(horizon|instances|policies|rules|budgets)["']?\s*:`)

// spec reads an experiment: the kind first, as the other keys depend on it, wherever it stands.
func readSpec(d *keyed.Decoder, n ast.Node) (*Spec, error) {
	s := &Spec{Kind: KindRegret}
	values, err := d.Mapping(n, "")
	if err != nil {
		return nil, err
	}
	for _, kv := range values {
		if kv.Key.GetToken().Value != "kind" {
			continue
		}
		if err := d.Text(kv.Value, "kind", &s.Kind); err != nil {
			return nil, err
		}
		if s.Kind == "" {
			return nil, d.Fail(kv.Value, "kind", "is empty: known are %s", strings.Join(Kinds(), ", "))
		}
		if _, err := kindOf(s.Kind); err != nil {
			return nil, d.Fail(kv.Value, "kind", "%w", err)
		}
	}
	k, err := kindOf(s.Kind)
	if err != nil {
		return nil, err
	}
	s.Kind = k.name()
	return s, keyed.ReadKeys(d, n, "", k.keys(d.Known), s)
}
