package experiment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/stopping"
)

// maxFile is the largest experiment file in bytes.
const maxFile = 1 << 20

// maxDepth is how deep brackets may nest: the format needs four, and the parser below is recursive.
const maxDepth = 32

// A Reader reads experiments whose policies are those of its catalog.
type Reader struct{ Catalog catalog.Catalog }

// Read reads an experiment with the policies of Sotto, as Reader.Read does.
func Read(path string) (*Spec, error) { return Reader{}.Read(path) }

// Parse reads an experiment with the policies of Sotto, as Reader.Parse does.
func Parse(file string, data []byte) (*Spec, error) { return Reader{}.Parse(file, data) }

// Read reads an experiment from a file. Paths in it are relative to its directory.
func (r Reader) Read(path string) (*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Err: err}
	}
	defer f.Close()
	return r.ReadAll(f, path)
}

// ReadAll reads an experiment from in; errors and relative paths are named after file.
func (r Reader) ReadAll(in io.Reader, file string) (*Spec, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, &Error{Pos: Pos{File: file}, Err: err}
	}
	return r.Parse(file, data)
}

// Parse reads an experiment from YAML, strictly: an unknown key, a key given twice, a second
// document, a number where text should be, or a number that would have to be rounded is an error.
// The error says where it is and, of a name it does not know, which one was probably meant. Parse
// checks the form; Spec.Resolve checks what it says.
func (r Reader) Parse(file string, data []byte) (*Spec, error) {
	d := &decoder{known: r.Catalog, src: &source{file: file, at: map[string]Pos{}}}
	if len(data) > maxFile {
		return nil, d.whole("the file is larger than %d bytes", maxFile)
	}
	if !utf8.Valid(data) {
		return nil, d.whole("the file is not UTF-8 text")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	d.src.lines = strings.Split(text, "\n")
	if err := d.checkForm(text); err != nil {
		return nil, err
	}
	if err := d.checkDepth(text); err != nil {
		return nil, err
	}
	body, err := d.document(text)
	if err != nil {
		return nil, err
	}
	spec, err := d.spec(body)
	if err != nil {
		return nil, err
	}
	spec.src, spec.Catalog = d.src, r.Catalog
	spec.dir = filepath.Dir(file)
	return spec, nil
}

type decoder struct {
	known catalog.Catalog
	src   *source
}

func (d *decoder) whole(format string, args ...any) error {
	return &Error{Pos: Pos{File: d.src.file}, Err: fmt.Errorf(format, args...)}
}

func (d *decoder) pos(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{File: d.src.file}
	}
	return Pos{File: d.src.file, Line: tk.Position.Line, Column: max(1, tk.Position.Column)}
}

func (d *decoder) fail(n ast.Node, field, format string, args ...any) error {
	return d.src.wrapAt(d.pos(first(n)), field, fmt.Errorf(format, args...))
}

// first is the token at which a node begins; a mapping's own token is its first colon.
func first(n ast.Node) *token.Token {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return m.Key.GetToken()
	}
	return n.GetToken()
}

// checkForm refuses a file that has none of an experiment's keys. It may be a log that was
// named in place of the experiment that reads it, and other errors quote what they find: so
// this one quotes nothing.
func (d *decoder) checkForm(text string) error {
	something := func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && line[0] != '#'
	}
	if !slices.ContainsFunc(d.src.lines, something) || ownKey.MatchString(text) {
		return nil // what is empty has an error of its own
	}
	return d.whole("the file has none of the keys horizon, instances, policies, rules and " +
		"budgets, so it is no experiment. " +
		"Rewards in a CSV are read by an instance, csv: FILE, or by --csv FILE in place of an experiment")
}

// ownKey is a key of experiments that a log has no column for.
var ownKey = regexp.MustCompile(`(?m)(^|[\s{,"'])(horizon|instances|policies|rules|budgets)["']?\s*:`)

// checkDepth refuses nesting that only an attack needs. It counts brackets wherever they stand,
// and indentation.
func (d *decoder) checkDepth(text string) error {
	for i, line := range d.src.lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		dashes := len(line) - len(strings.TrimLeft(line, " -?"))
		if indent > 200 || dashes > 200 {
			return d.src.wrapAt(Pos{d.src.file, i + 1, 1}, "", errors.New("indented too deeply"))
		}
	}
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return d.whole("brackets nest more than %d deep, or are not closed", maxDepth)
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}

// document is the body of the only document.
func (d *decoder) document(text string) (body ast.Node, err error) {
	defer func() {
		// The parser is another project's; a panic in it is a file that cannot be read.
		if r := recover(); r != nil {
			body, err = nil, d.whole("the file cannot be parsed as YAML (%v)", r)
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			return nil, d.src.wrapAt(d.pos(y.GetToken()), "", errors.New(y.GetMessage()))
		}
		return nil, d.whole("%w", err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if _, ok := doc.Body.(*ast.CommentGroupNode); ok {
			continue
		}
		if body != nil {
			return nil, d.fail(doc.Body, "", "a second document begins here: a file holds one experiment")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, d.whole("the file is empty: want an experiment, with name, horizon, runs, " +
			"instances and policies")
	}
	return body, nil
}

// keys reads a mapping, calling set for each of its known keys.
func (d *decoder) keys(n ast.Node, field string, known []string,
	set func(key, field string, value ast.Node) error) error {
	values, err := d.mapping(n, field)
	if err != nil {
		return err
	}
	for _, kv := range values {
		key := kv.Key.GetToken().Value
		if !slices.Contains(known, key) {
			return d.src.wrapAt(d.pos(kv.Key.GetToken()), field, fmt.Errorf("unknown key %q%s; known are %s",
				clip(key), catalog.Hint(clip(key), known), strings.Join(known, ", ")))
		}
		at := join(field, key)
		d.src.at[at] = d.pos(first(kv.Value))
		if err := set(key, at, kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// mapping is the pairs of a mapping whose keys are plain words, each given once.
func (d *decoder) mapping(n ast.Node, field string) ([]*ast.MappingValueNode, error) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, d.fail(n, field, "is %s, want key: value pairs", kind(n))
	}
	seen := map[string]bool{}
	for _, kv := range values {
		key, ok := kv.Key.(*ast.StringNode)
		if !ok {
			return nil, d.src.wrapAt(d.pos(kv.Key.GetToken()), field,
				fmt.Errorf("the key is %s, want a plain word", kind(kv.Key)))
		}
		if seen[key.Value] {
			return nil, d.src.wrapAt(d.pos(key.GetToken()), field,
				fmt.Errorf("key %q is given twice", clip(key.Value)))
		}
		seen[key.Value] = true
	}
	return values, nil
}

// items calls each for the items of a list.
func (d *decoder) items(n ast.Node, field string, each func(i int, field string, item ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.fail(n, field, "is %s, want a list", kind(n))
	}
	for i, item := range seq.Values {
		at := field + "[" + strconv.Itoa(i) + "]"
		d.src.at[at] = d.pos(first(item))
		if err := each(i, at, item); err != nil {
			return err
		}
	}
	return nil
}

// kind says in words what a node is.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "empty"
	case *ast.BoolNode:
		return "the truth value " + n.GetToken().Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + clip(n.GetToken().Value)
	case *ast.StringNode, *ast.LiteralNode:
		return "the text " + strconv.Quote(clip(n.GetToken().Value))
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key (experiments have none)"
	case *ast.TagNode:
		return "tagged with ! (experiments have no tags)"
	}
	return "something else"
}

func (d *decoder) text(n ast.Node, field string, to *string) error {
	switch v := n.(type) {
	case *ast.StringNode:
		*to = v.Value
	case *ast.LiteralNode:
		*to = v.Value.Value
	default:
		return d.fail(n, field, "is %s, want text (in quotes if it looks like something else)", kind(n))
	}
	return nil
}

func (d *decoder) flag(n ast.Node, field string, to *bool) error {
	v, ok := n.(*ast.BoolNode)
	if !ok {
		return d.fail(n, field, "is %s, want true or false", kind(n))
	}
	*to = v.Value
	return nil
}

// digits is the text of a node that may be a number: a bare number, or text, since the library
// takes some numbers for text.
func digits(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return strings.TrimSpace(v.GetToken().Value), true
	case *ast.StringNode:
		return v.Value, true
	}
	return "", false
}

func (d *decoder) count(n ast.Node, field string, to *Count) error {
	switch n.(type) {
	case *ast.InfinityNode, *ast.NanNode:
		return d.fail(n, field, "is %s, want a whole number from 1 to %s", kind(n), mostCount())
	}
	s, ok := digits(n)
	if !ok {
		return d.fail(n, field, "is %s, want a whole number from 1 to %s", kind(n), mostCount())
	}
	c, err := ParseCount(s)
	if err != nil {
		return d.fail(n, field, "%w", err)
	}
	*to = c
	return nil
}

// float reads a number. NaN and the infinities pass: who knows what the number is for
// refuses them by name.
func (d *decoder) float(n ast.Node, field string, to *float64) error {
	switch v := n.(type) {
	case *ast.InfinityNode:
		*to = v.Value
		return nil
	case *ast.NanNode:
		*to = math.NaN()
		return nil
	case *ast.StringNode:
		if t := v.GetToken().Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			return d.fail(n, field, "is %s, want a number, without quotes", kind(n))
		}
	}
	s, ok := digits(n)
	if ok {
		s, ok = plain(s)
	}
	if !ok {
		return d.fail(n, field, "is %s, want a decimal number", kind(n))
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return d.fail(n, field, "is %s, too large for a number", kind(n))
	}
	*to = x
	return nil
}

func (d *decoder) floats(n ast.Node, field string) ([]float64, error) {
	out := []float64{}
	err := d.items(n, field, func(_ int, at string, item ast.Node) error {
		var x float64
		err := d.float(item, at, &x)
		out = append(out, x)
		return err
	})
	return out, err
}

func (d *decoder) pair(n ast.Node, field string, lo, hi *float64) error {
	x, err := d.floats(n, field)
	if err != nil {
		return err
	}
	if len(x) != 2 {
		return d.fail(n, field, "has %d numbers, want two: [low, high]", len(x))
	}
	*lo, *hi = x[0], x[1]
	if !(x[0] < x[1]) || math.IsInf(x[0], 0) || math.IsInf(x[1], 0) {
		return d.fail(n, field, "is [%v, %v], want two finite numbers, the first below the second", x[0], x[1])
	}
	return nil
}

// specKeys are the keys of an experiment of a kind.
func specKeys(kind string) []string {
	if kind == KindStopping {
		return []string{"name", "description", "kind", "cap", "runs", "seed", "range", "instances",
			"rules", "budgets"}
	}
	if kind == KindIdentify {
		return []string{"name", "description", "kind", "risk", "cap", "runs", "seed", "range",
			"trust", "noise", "precision", "promised", "dropout", "per_user", "protocol", "corrupt",
			"instances", "policies", "budgets"}
	}
	keys := []string{"name", "description", "kind", "horizon", "runs", "seed", "checkpoints",
		"range", "unclipped", "bounds"}
	if trusted(kind) {
		keys = append(keys, trustKeys()...)
	}
	return append(keys, "instances", "policies", "budgets")
}

// specKind reads the kind first: the other keys depend on it, wherever it stands.
func (d *decoder) specKind(n ast.Node, to *string) error {
	values, err := d.mapping(n, "")
	if err != nil {
		return err
	}
	for _, kv := range values {
		if kv.Key.GetToken().Value != "kind" {
			continue
		}
		if err := d.text(kv.Value, "kind", to); err != nil {
			return err
		}
		if *to == "" {
			return d.fail(kv.Value, "kind", "is empty: known are %s", strings.Join(Kinds(), ", "))
		}
		if err := checkKind(*to); err != nil {
			return d.fail(kv.Value, "kind", "%w", err)
		}
	}
	return nil
}

func (d *decoder) spec(n ast.Node) (*Spec, error) {
	s := &Spec{}
	if err := d.specKind(n, &s.Kind); err != nil {
		return s, err
	}
	err := d.keys(n, "", specKeys(s.Kind), func(key, at string, v ast.Node) error {
		if done, err := d.trustKey(&s.Trust, key, at, v); done {
			return err
		}
		switch key {
		case "name":
			return d.text(v, at, &s.Name)
		case "description":
			return d.text(v, at, &s.Description)
		case "kind":
			return nil
		case "horizon":
			return d.count(v, at, &s.Horizon)
		case "cap":
			return d.count(v, at, &s.Cap)
		case "risk":
			return d.float(v, at, &s.Risk)
		case "runs":
			text, ok := v.(*ast.StringNode)
			switch {
			case !ok || s.Kind != KindIdentify || strings.ContainsAny(text.Value, "0123456789"):
				return d.count(v, at, &s.Runs)
			case text.Value != resolving:
				return d.fail(v, at, "is %s%s: want a whole number of runs, or %s", kind(v),
					catalog.Hint(clip(text.Value), []string{resolving}), resolving)
			}
			s.Resolving = true
			return nil
		case "seed":
			text, ok := digits(v)
			if !ok {
				return d.fail(v, at, "is %s, want a whole number from 0 to 2^64-1", kind(v))
			}
			seed, err := parseSeed(text)
			if err != nil {
				return d.fail(v, at, "%w", err)
			}
			s.Seed = seed
			return nil
		case "checkpoints":
			if _, ok := v.(*ast.SequenceNode); !ok {
				return d.count(v, at, &s.Points)
			}
			s.Checkpoints = []Count{}
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				var c Count
				err := d.count(item, at, &c)
				s.Checkpoints = append(s.Checkpoints, c)
				return err
			})
		case "range":
			return d.pair(v, at, &s.Lo, &s.Hi)
		case "unclipped":
			return d.flag(v, at, &s.Unclipped)
		case "bounds":
			return d.flag(v, at, &s.Bounds)
		case "instances":
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				in, err := d.anInstance(s.Kind, item, at)
				s.Instances = append(s.Instances, in)
				return err
			})
		case "policies":
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				p, err := d.policy(s.Kind, item, at)
				s.Policies = append(s.Policies, p)
				return err
			})
		case "rules":
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				q, err := d.rule(item, at)
				s.Rules = append(s.Rules, q)
				return err
			})
		default: // budgets
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				b, err := d.budget(item, at)
				s.Budgets = append(s.Budgets, b)
				return err
			})
		}
	})
	return s, err
}

// programKey stands in the normal form of an instance that came from a program. It can be read, so
// that such results can be reported, but not played.
const programKey = "source"

// A described source is known by its description only.
type described string

// Instance says so.
func (d described) Instance(*noise.Fast) (bandit.Instance, error) {
	return bandit.Instance{}, fmt.Errorf("comes from a program, %q: only that program can play it",
		clip(string(d)))
}

// Linear says so.
func (d described) Linear(*noise.Fast) (bandit.LinearInstance, error) {
	_, err := d.Instance(nil)
	return bandit.LinearInstance{}, err
}

// Contextual says so.
func (d described) Contextual(*noise.Fast) (bandit.ContextualInstance, error) {
	_, err := d.Instance(nil)
	return nil, err
}

// Redrawn is unknown, and asked by nobody.
func (d described) Redrawn() bool { return false }

// String is the description.
func (d described) String() string { return string(d) }

// instance reads an instance of an experiment of a kind.
func (d *decoder) instance(kind string, n ast.Node, field string) (Instance, error) {
	var in Instance
	var m Means
	var l Linear
	what := "arms"
	if linearKind(kind) {
		what, in.Linear = "actions", &l
	}
	known := []string{"name"}
	all := instanceWays(kind)
	ways := all.names()
	values, err := d.mapping(n, field)
	if err != nil {
		return in, err
	}
	for _, k := range all {
		for _, kv := range values {
			if kv.Key.GetToken().Value == k.key {
				known = append(append(known, k.key), k.takes...)
			}
		}
	}
	count := 0
	for _, k := range known {
		if slices.Contains(ways, k) || k == programKey {
			count++
		}
	}
	switch {
	case count == 0:
		known = append(known, ways...)
	case count > 1:
		return in, d.fail(n, field, "says what its %s are in %d ways: want one of %s", what, count,
			strings.Join(ways, ", "))
	}
	err = d.keys(n, field, known, func(key, at string, v ast.Node) error {
		var err error
		switch key {
		case "name":
			return d.text(v, at, &in.Name)
		case "bernoulli":
			in.Bernoulli, err = d.floats(v, at)
			return err
		case "laws":
			in.Laws = []string{}
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				var law string
				if err := d.lawText(item, at, &law); err != nil {
					return err
				}
				in.Laws = append(in.Laws, law)
				return nil
			})
		case "standard":
			return d.text(v, at, &in.Standard)
		case "arms":
			if linearKind(kind) {
				return d.count(v, at, &l.Arms)
			}
			return d.count(v, at, &in.Arms)
		case "actions", "sphere", "contexts", "dimension", "mean", "variance", "theta", "noise", "normalise":
			return d.linear(&l, key, v, at)
		case "means":
			in.Means = &m
			given := false
			if err := d.keys(v, at, []string{"uniform"}, func(_, at string, v ast.Node) error {
				given = true
				return d.pair(v, at, &m.Lo, &m.Hi)
			}); err != nil {
				return err
			}
			if !given {
				return d.fail(v, at, "says no law: want {uniform: [low, high]}")
			}
			return nil
		case "law":
			return d.text(v, at, &m.Law)
		case "sd":
			return d.float(v, at, &m.SD)
		case "redraw":
			if linearKind(kind) {
				return d.flag(v, at, &l.Redraw)
			}
			return d.flag(v, at, &m.Redraw)
		case "csv":
			if err := d.text(v, at, &in.CSV); err != nil {
				return err
			}
			if in.CSV == "" {
				return d.fail(v, at, "is empty, want the path of a file")
			}
			return nil
		case "arm_column":
			return d.column(v, at, &in.Columns.Arm)
		case "reward_column":
			return d.column(v, at, &in.Columns.Reward)
		case "user_column":
			return d.column(v, at, &in.Columns.User)
		case "skip_missing":
			return d.flag(v, at, &in.Columns.SkipMissing)
		case programKey:
			var text string
			err := d.text(v, at, &text)
			switch kind {
			case KindLinear:
				in.Linear, in.LinearSource = nil, described(text)
			case KindContextual:
				in.Linear, in.ContextualSource = nil, described(text)
			default:
				in.Source = described(text)
			}
			return err
		default: // sha256
			return d.text(v, at, &in.SHA256)
		}
	})
	if err == nil && count == 0 {
		return in, d.fail(n, field, "says nowhere what its %s are: want one of %s", what,
			strings.Join(ways, ", "))
	}
	return in, err
}

// column reads the name of a column.
func (d *decoder) column(n ast.Node, field string, name *string) error {
	if err := d.text(n, field, name); err != nil {
		return err
	}
	if *name == "" {
		return d.fail(n, field, "is empty: want the name of a column")
	}
	return nil
}

func (d *decoder) anInstance(kind string, n ast.Node, field string) (Instance, error) {
	if kind == KindStopping {
		return d.law(n, field)
	}
	return d.instance(kind, n, field)
}

// linear reads a field of an instance with actions in ℝ^d.
func (d *decoder) linear(l *Linear, key string, v ast.Node, at string) error {
	var err error
	switch key {
	case "actions":
		l.Actions = [][]float64{}
		return d.items(v, at, func(_ int, at string, item ast.Node) error {
			a, err := d.floats(item, at)
			l.Actions = append(l.Actions, a)
			return err
		})
	case "sphere":
		l.Sphere = true
		return d.keys(v, at, []string{"arms", "dimension"}, func(key, at string, v ast.Node) error {
			if key == "arms" {
				return d.count(v, at, &l.Arms)
			}
			return d.count(v, at, &l.Dimension)
		})
	case "contexts":
		if err := d.text(v, at, &l.Contexts); err != nil {
			return err
		}
		if l.Contexts == "" {
			return d.fail(v, at, "is empty: want gaussian or sphere")
		}
		return nil
	case "dimension":
		return d.count(v, at, &l.Dimension)
	case "mean":
		if _, ok := v.(*ast.SequenceNode); ok {
			l.Mean, err = d.floats(v, at)
			if err == nil && len(l.Mean) == 0 {
				return d.fail(v, at, "is empty: want a number, or a list of them")
			}
			return err
		}
		l.Mean = make([]float64, 1)
		return d.float(v, at, &l.Mean[0])
	case "variance":
		if err := d.float(v, at, &l.Variance); err != nil {
			return err
		}
		if !(l.Variance > 0) {
			return d.fail(v, at, "is %v: want a finite number above 0", l.Variance)
		}
		return nil
	case "theta":
		if s, ok := v.(*ast.StringNode); ok && s.Value == "sphere" {
			return nil
		}
		if _, ok := v.(*ast.SequenceNode); !ok {
			return d.fail(v, at, "is %s, want a list of numbers, or sphere", kind(v))
		}
		l.Theta, err = d.floats(v, at)
		return err
	case "noise":
		if err := d.text(v, at, &l.Noise); err != nil {
			return err
		}
		if _, err := parseNoise(l.Noise); err != nil {
			return d.fail(v, at, "%w", err)
		}
		return nil
	default: // normalise
		return d.flag(v, at, &l.Normalise)
	}
}

// law reads {name: LABEL, law: LAW}, an instance of KindStopping.
func (d *decoder) law(n ast.Node, field string) (Instance, error) {
	var in Instance
	err := d.keys(n, field, []string{"name", "law"}, func(key, at string, v ast.Node) error {
		if key == "name" {
			return d.text(v, at, &in.Name)
		}
		return d.lawText(v, at, &in.Law)
	})
	if err == nil && in.Law == "" {
		return in, d.fail(n, field, "says no law: want law, such as law: bernoulli(0.3)")
	}
	return in, err
}

// lawText reads a law; a bare number is the mean of a Bernoulli.
func (d *decoder) lawText(n ast.Node, field string, to *string) error {
	if s, ok := digits(n); ok {
		*to = s
		return nil
	}
	return d.text(n, field, to)
}

// rule reads {rule: NAME, name: LABEL, alpha: α, beta: β}.
func (d *decoder) rule(n ast.Node, field string) (Rule, error) {
	var q Rule
	err := d.keys(n, field, []string{"rule", "name", "alpha", "beta"}, func(key, at string, v ast.Node) error {
		switch key {
		case "rule":
			if err := d.text(v, at, &q.Rule); err != nil {
				return err
			}
			if _, err := ruleEntry(q.Rule); err != nil {
				return d.fail(v, at, "%w", err)
			}
			return nil
		case "name":
			if err := d.text(v, at, &q.Name); err != nil {
				return err
			}
			if q.Name == "" {
				return d.fail(v, at, "is empty")
			}
			return nil
		case "alpha":
			return d.float(v, at, &q.Alpha)
		default:
			return d.float(v, at, &q.Beta)
		}
	})
	if err == nil && q.Rule == "" {
		return q, d.fail(n, field, "names no rule: want rule: NAME, one of %s",
			strings.Join(stopping.Names(), ", "))
	}
	return q, err
}

// policy reads {policy: NAME, PARAMETER: VALUE, …}, or NAME alone. The parameters' names and kinds
// come from the catalog.
func (d *decoder) policy(kind string, n ast.Node, field string) (Policy, error) {
	var p Policy
	if s, ok := n.(*ast.StringNode); ok {
		p.Policy = s.Value
		if _, err := d.known.Find(banditOf(kind), p.Policy); err != nil {
			return p, d.fail(n, field, "%w", err)
		}
		return p, nil
	}
	values, err := d.mapping(n, field)
	if err != nil {
		return p, err
	}
	var entry catalog.Entry
	found := false
	for _, kv := range values {
		if kv.Key.GetToken().Value != "policy" {
			continue
		}
		if err := d.text(kv.Value, field+".policy", &p.Policy); err != nil {
			return p, err
		}
		if entry, err = d.known.Find(banditOf(kind), p.Policy); err != nil {
			return p, d.fail(kv.Value, field+".policy", "%w", err)
		}
		found = true
	}
	if !found {
		return p, d.fail(n, field, "names no policy: want policy: NAME")
	}
	known := []string{"policy", "name", "budgets"}
	if trusted(kind) {
		known = append(known, trustKeys()...)
	}
	params := map[string]catalog.Param{}
	for _, q := range entry.Params {
		known = append(known, q.Name)
		params[q.Name] = q
	}
	err = d.keys(n, field, known, func(key, at string, v ast.Node) error {
		switch key {
		case "policy":
			return nil
		case "name":
			if err := d.text(v, at, &p.Name); err != nil {
				return err
			}
			if p.Name == "" {
				return d.fail(v, at, "is empty")
			}
			return nil
		case "budgets":
			return d.items(v, at, func(_ int, at string, item ast.Node) error {
				b, err := d.budget(item, at)
				p.Budgets = append(p.Budgets, b)
				return err
			})
		}
		if trusted(kind) {
			if done, err := d.trustKey(&p.Trust, key, at, v); done {
				return err
			}
		}
		if p.Params == nil {
			p.Params = catalog.Params{}
		}
		if params[key].Flag {
			var yes bool
			if err := d.flag(v, at, &yes); err != nil {
				return err
			}
			p.Params[key] = 0
			if yes {
				p.Params[key] = 1
			}
			return nil
		}
		if params[key].Choices != nil {
			var text string
			if err := d.text(v, at, &text); err != nil {
				return err
			}
			x, err := params[key].Parse(text)
			if err != nil {
				return d.fail(v, at, "%w", err)
			}
			p.Params[key] = x
			return nil
		}
		var x float64
		err := d.float(v, at, &x)
		p.Params[key] = x
		return err
	})
	return p, err
}

// budget reads {epsilon: 1} | {rho: 0.1} | {epsilon: 1, delta: 1e-6} | {alpha: 8,
// epsilon: 0.5} | none.
func (d *decoder) budget(n ast.Node, field string) (privacy.Budget, error) {
	const want = "want {epsilon: 1}, {rho: 0.1}, {epsilon: 1, delta: 1e-6}, {alpha: 8, epsilon: 0.5} or none"
	if s, ok := n.(*ast.StringNode); ok && s.Value == "none" {
		return privacy.None{}, nil
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return nil, d.fail(n, field, "is %s, %s", kind(n), want)
	}
	x := map[string]float64{}
	err := d.keys(n, field, []string{"epsilon", "rho", "delta", "alpha"},
		func(key, at string, v ast.Node) error {
			var f float64
			err := d.float(v, at, &f)
			x[key] = f
			return err
		})
	if err != nil {
		return nil, err
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := x[name]; !ok {
				return false
			}
		}
		return len(x) == len(names)
	}
	switch {
	case has("epsilon"):
		return privacy.Pure{Epsilon: x["epsilon"]}, nil
	case has("rho"):
		return privacy.ZCDP{Rho: x["rho"]}, nil
	case has("epsilon", "delta"):
		return privacy.Approx{Epsilon: x["epsilon"], Delta: x["delta"]}, nil
	case has("alpha", "epsilon"):
		return privacy.Renyi{Alpha: x["alpha"], Epsilon: x["epsilon"]}, nil
	}
	return nil, d.fail(n, field, "these keys make no budget: %s", want)
}
