package keyed

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/sotto-dp/sotto/catalog"
)

// maxFile is the largest experiment file in bytes.
const maxFile = 1 << 20

// maxDepth is how deep brackets may nest: the format needs four, and the parser below is recursive.
const maxDepth = 32

type Decoder struct {
	Known catalog.Catalog
	Src   *Source
	own   *regexp.Regexp // finds a key that files of the form have and logs do not
	want  string         // those keys
	log   string         // what to do with a log that was named instead
}

// NewDecoder reads a file with policies of known. own finds a key that such files have and logs do not,
// want lists those keys, and log says what to do with a log that was named instead.
func NewDecoder(known catalog.Catalog, file string, own *regexp.Regexp, want, log string) *Decoder {
	return &Decoder{Known: known, Src: &Source{file: file, At: map[string]Pos{}}, own: own, want: want, log: log}
}

// parse is the body of a file.
func (d *Decoder) Parse(data []byte) (ast.Node, error) {
	if len(data) > maxFile {
		return nil, d.whole("the file is larger than %d bytes", maxFile)
	}
	if !utf8.Valid(data) {
		return nil, d.whole("the file is not UTF-8 text")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	d.Src.lines = strings.Split(text, "\n")
	if err := d.checkForm(text); err != nil {
		return nil, err
	}
	if err := d.checkDepth(text); err != nil {
		return nil, err
	}
	return d.document(text)
}

func (d *Decoder) whole(format string, args ...any) error {
	return &Error{Pos: Pos{File: d.Src.file}, Err: fmt.Errorf(format, args...)}
}

func (d *Decoder) Pos(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{File: d.Src.file}
	}
	return Pos{File: d.Src.file, Line: tk.Position.Line, Column: max(1, tk.Position.Column)}
}

func (d *Decoder) Fail(n ast.Node, field, format string, args ...any) error {
	return d.Src.wrapAt(d.Pos(First(n)), field, fmt.Errorf(format, args...))
}

// first is the token at which a node begins; a mapping's own token is its first colon.
func First(n ast.Node) *token.Token {
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
func (d *Decoder) checkForm(text string) error {
	something := func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && line[0] != '#'
	}
	if !slices.ContainsFunc(d.Src.lines, something) || d.own.MatchString(text) {
		return nil // what is empty has an error of its own
	}
	return d.whole("the file has none of the keys %s, so it is no experiment%s", d.want, d.log)
}

// checkDepth refuses nesting that only an attack needs. It counts brackets wherever they stand,
// and indentation.
func (d *Decoder) checkDepth(text string) error {
	for i, line := range d.Src.lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		dashes := len(line) - len(strings.TrimLeft(line, " -?"))
		if indent > 200 || dashes > 200 {
			return d.Src.wrapAt(Pos{d.Src.file, i + 1, 1}, "", errors.New("indented too deeply"))
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
func (d *Decoder) document(text string) (body ast.Node, err error) {
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
			return nil, d.Src.wrapAt(d.Pos(y.GetToken()), "", errors.New(y.GetMessage()))
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
			return nil, d.Fail(doc.Body, "", "a second document begins here: a file holds one experiment")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, d.whole("the file is empty, must be an experiment, with %s", d.want)
	}
	return body, nil
}

// keys reads a mapping, calling set for each of its known keys.
func (d *Decoder) Keys(n ast.Node, field string, known []string,
	set func(key, field string, value ast.Node) error) error {
	values, err := d.Mapping(n, field)
	if err != nil {
		return err
	}
	for _, kv := range values {
		key := kv.Key.GetToken().Value
		if !slices.Contains(known, key) {
			return d.Src.wrapAt(d.Pos(kv.Key.GetToken()), field, fmt.Errorf("unknown key %q%s; known are %s",
				Clip(key), catalog.Hint(Clip(key), known), strings.Join(known, ", ")))
		}
		at := Join(field, key)
		d.Src.At[at] = d.Pos(First(kv.Value))
		if err := set(key, at, kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func Join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// mapping is the pairs of a mapping whose keys are plain words, each given once.
func (d *Decoder) Mapping(n ast.Node, field string) ([]*ast.MappingValueNode, error) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, d.Fail(n, field, "is %s, must be key: value pairs", KindOfNode(n))
	}
	seen := map[string]bool{}
	for _, kv := range values {
		key, ok := kv.Key.(*ast.StringNode)
		if !ok {
			return nil, d.Src.wrapAt(d.Pos(kv.Key.GetToken()), field,
				fmt.Errorf("the key is %s, must be a plain word", KindOfNode(kv.Key)))
		}
		if seen[key.Value] {
			return nil, d.Src.wrapAt(d.Pos(key.GetToken()), field,
				fmt.Errorf("key %q is given twice", Clip(key.Value)))
		}
		seen[key.Value] = true
	}
	return values, nil
}

// items calls each for the items of a list.
func (d *Decoder) Items(n ast.Node, field string, each func(i int, field string, item ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.Fail(n, field, "is %s, must be a list", KindOfNode(n))
	}
	for i, item := range seq.Values {
		at := field + "[" + strconv.Itoa(i) + "]"
		d.Src.At[at] = d.Pos(First(item))
		if err := each(i, at, item); err != nil {
			return err
		}
	}
	return nil
}

// KindOfNode says in words what a node is.
func KindOfNode(n ast.Node) string {
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
		return "the number " + Clip(n.GetToken().Value)
	case *ast.StringNode, *ast.LiteralNode:
		return "the text " + strconv.Quote(Clip(n.GetToken().Value))
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key (experiments have none)"
	case *ast.TagNode:
		return "tagged with ! (experiments have no tags)"
	}
	return "something else"
}

func (d *Decoder) Text(n ast.Node, field string, to *string) error {
	switch v := n.(type) {
	case *ast.StringNode:
		*to = v.Value
	case *ast.LiteralNode:
		*to = v.Value.Value
	default:
		return d.Fail(n, field, "is %s, must be text (in quotes if it looks like something else)",
			KindOfNode(n))
	}
	return nil
}

func (d *Decoder) Flag(n ast.Node, field string, to *bool) error {
	v, ok := n.(*ast.BoolNode)
	if !ok {
		return d.Fail(n, field, "is %s, must be true or false", KindOfNode(n))
	}
	*to = v.Value
	return nil
}

// digits is the text of a node that may be a number: a bare number, or text, since the library
// takes some numbers for text.
func Digits(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return strings.TrimSpace(v.GetToken().Value), true
	case *ast.StringNode:
		return v.Value, true
	}
	return "", false
}

func (d *Decoder) Count(n ast.Node, field string, to *Count) error {
	switch n.(type) {
	case *ast.InfinityNode, *ast.NanNode:
		return d.Fail(n, field, "is %s, must be a whole number from 1 to %s", KindOfNode(n), mostCount())
	}
	s, ok := Digits(n)
	if !ok {
		return d.Fail(n, field, "is %s, must be a whole number from 1 to %s", KindOfNode(n), mostCount())
	}
	c, err := ParseCount(s)
	if err != nil {
		return d.Fail(n, field, "%w", err)
	}
	*to = c
	return nil
}

// float reads a number. NaN and the infinities pass: who knows what the number is for
// refuses them by name.
func (d *Decoder) Float(n ast.Node, field string, to *float64) error {
	switch v := n.(type) {
	case *ast.InfinityNode:
		*to = v.Value
		return nil
	case *ast.NanNode:
		*to = math.NaN()
		return nil
	case *ast.StringNode:
		if t := v.GetToken().Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			return d.Fail(n, field, "is %s, must be a number, without quotes", KindOfNode(n))
		}
	}
	s, ok := Digits(n)
	if ok {
		s, ok = Plain(s)
	}
	if !ok {
		return d.Fail(n, field, "is %s, must be a decimal number", KindOfNode(n))
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return d.Fail(n, field, "is %s, too large for a number", KindOfNode(n))
	}
	*to = x
	return nil
}

func (d *Decoder) floats(n ast.Node, field string) ([]float64, error) {
	out := []float64{}
	err := d.Items(n, field, func(_ int, at string, item ast.Node) error {
		var x float64
		err := d.Float(item, at, &x)
		out = append(out, x)
		return err
	})
	return out, err
}

func (d *Decoder) Pair(n ast.Node, field string, lo, hi *float64) error {
	x, err := d.floats(n, field)
	if err != nil {
		return err
	}
	if len(x) != 2 {
		return d.Fail(n, field, "has %d numbers, must be two: [low, high]", len(x))
	}
	*lo, *hi = x[0], x[1]
	if !(x[0] < x[1]) || math.IsInf(x[0], 0) || math.IsInf(x[1], 0) {
		return d.Fail(n, field, "is [%v, %v], must be two finite numbers, the first below the "+
			"second", x[0], x[1])
	}
	return nil
}

// ReadFile is what in has, if it is no longer than a file may be; file is its name in errors.
func ReadFile(in io.Reader, file string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, &Error{Pos: Pos{File: file}, Err: err}
	}
	return data, nil
}
