package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
)

// maxDeclaration bounds the form of a new experiment, in bytes.
const maxDeclaration = 256 << 10

// A NewForm is a form for an experiment: fields for what most say, or the text of its declaration.
type NewForm struct {
	Frame
	Fields map[string]string // by their names, as they came
	Text   string            // the declaration in YAML
	AsText bool              // the form has the text, and not the fields
	// Tests are those for an A/B test, Policies those for an experiment that learns, and Rules those for
	// a trial, which has a risk.
	Tests, Policies, Rules []Policy
	Checked
}

// Checked says what a declaration promises, or what is wrong with it. Both are nil before
// it was looked at.
type Checked struct {
	Wrong   *Wrong
	Promise *Promise
}

// A Policy is one to choose.
type Policy struct{ Name, Title string }

// A Promise is what a declaration promises.
type Promise struct {
	Guarantee string
	Price     string // of a unit, and of each of its decisions
	Queue     string // what is done with rewards that are late
	First     string // a proposal for the first batch, or empty
	Extreme   string // what is to be thought of with a budget that few want, or empty
	// Warnings are what had better be otherwise, in words.
	Warnings []string
}

// A Field is one of a form, as it is drawn.
type Field struct {
	Name, Label, Hint, Value string
	Mode                     string // of the keyboard that is shown, or empty
	Lines                    int    // 0: one, that has no end
	Wrong                    string // what is wrong with it, or empty
}

func (n NewForm) field(name, label, hint string) Field {
	out := Field{Name: name, Label: label, Hint: hint, Value: n.Fields[name]}
	if n.Wrong != nil && n.Wrong.Field == name {
		out.Wrong = n.Wrong.Detail
	}
	return out
}

// newFields are those of the form, and the keys of the declaration whose errors are theirs.
var newFields = []struct{ name, key string }{
	{"name", "name"}, {"description", "description"}, {"values", "arms.value"}, {"arms", "arms"},
	{"policy", "policy"}, {"risk", "risk"}, {"horizon", "horizon"}, {"epsilon", "budget"}, {"unit", "unit.of"}, {"assignments", "unit.assignments"},
	{"per_person", "unit.per_person"}, {"keep", "stop.keep"}, {"low", "reward.range"}, {"high", ""}, {"default", "reward.default"}, {"window", "window"},
	{"floor", "floor"}, {"effect", "effect"}, {"rate", "rate"}, {"shares", "shares"}, {"traffic", "traffic"},
	{"public", "public"},
}

// firstFields are what the form begins with.
var firstFields = map[string]string{"policy": "dp-klucb", "epsilon": "1", "unit": "person", "assignments": "1",
	"low": "0", "high": "1", "default": "0", "window": "24h", "floor": "0.05"}

// AskNew shows the form: with ?as=text that of the text.
func (p *Pages) AskNew(w http.ResponseWriter, r *http.Request) error {
	n := NewForm{Fields: firstFields, AsText: r.URL.Query().Get("as") == "text"}
	n.Text = textOf(n.Fields)
	return p.new(w, r, http.StatusOK, n)
}

func (p *Pages) new(w http.ResponseWriter, r *http.Request, status int, n NewForm) error {
	n.Frame = p.frame(r, "New experiment")
	for _, e := range p.cfg.Catalog.For(catalog.BanditArms) {
		switch {
		case e.Name == decl.SplitPolicy:
			n.Tests = append(n.Tests, Policy{e.Name, e.Title})
		case e.Private:
			n.Policies = append(n.Policies, Policy{e.Name, e.Title})
		}
	}
	for _, e := range p.cfg.Catalog.For(catalog.BanditIdentify) {
		if e.Private {
			n.Rules = append(n.Rules, Policy{e.Name, e.Title})
		}
	}
	p.write(w, status, "new.html", n)
	return nil
}

// readNew reads the form, in either shape, and the declaration that it is.
func (p *Pages) readNew(w http.ResponseWriter, r *http.Request) (n NewForm, do string,
	x *decl.Experiment, err error) {
	names := []string{"do", "text"}
	for _, f := range newFields {
		names = append(names, f.name)
	}
	in, err := readForm(w, r, maxDeclaration, names...)
	if err != nil {
		return n, "", nil, err
	}
	n, x, err = p.declared(in)
	do = in.Get("do")
	if err != nil {
		n.Wrong = p.wrongOf(err)
		if n.Wrong == nil {
			return n, do, nil, err
		}
		return n, do, nil, nil
	}
	n.Promise, err = promiseOf(x)
	return n, do, x, err
}

// declared is the declaration of a form, and what is to be shown again of it.
func (p *Pages) declared(in url.Values) (n NewForm, x *decl.Experiment, err error) {
	n = NewForm{Fields: map[string]string{}, AsText: in.Has("text"), Text: in.Get("text")}
	for _, f := range newFields {
		n.Fields[f.name] = strings.TrimSpace(in.Get(f.name))
	}
	if !n.AsText {
		if err := checkFields(n.Fields); err != nil {
			return n, nil, err
		}
		n.Text = textOf(n.Fields)
	}
	x, err = decl.Reader{Catalog: p.cfg.Catalog}.Parse("declaration", []byte(n.Text))
	if err == nil {
		err = x.Check()
	}
	if err == nil {
		return n, x, nil
	}
	if bad := p.wrongOf(err); bad != nil && !n.AsText {
		return n, nil, &FieldError{http.StatusBadRequest, fieldOf(bad.Field), bad.Detail}
	}
	return n, nil, err
}

// checkFields refuses what would not be a number in the declaration, and a budget that the policy
// would be blamed for.
func checkFields(f map[string]string) error {
	for _, name := range []string{"risk", "horizon", "epsilon", "assignments", "per_person", "low", "high",
		"default", "floor", "effect", "rate", "traffic"} {
		x, err := strconv.ParseFloat(f[name], 64)
		if f[name] != "" && (err != nil || math.IsNaN(x) || math.IsInf(x, 0)) {
			return wrong(name, "must be a number, such as 1.5, with a point")
		}
	}
	if x, _ := strconv.ParseFloat(f["epsilon"], 64); x <= 0 {
		return wrong("epsilon", "must be above 0")
	}
	if f["public"] != "" && f["public"] != "on" {
		return wrong("public", "must be on or not there")
	}
	shares, err := linesOf(f, "shares", "share, such as red = 0.5")
	if err != nil {
		return err
	}
	for arm, text := range shares {
		if x, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return wrong("shares", "of %q must be a number, such as 0.5, with a point", arm)
		}
	}
	_, err = valuesOf(f)
	return err
}

// armsOf are the names of the arms.
func armsOf(f map[string]string) (out []string) {
	for line := range strings.Lines(f["arms"]) {
		if arm := strings.TrimSpace(line); arm != "" {
			out = append(out, arm)
		}
	}
	return out
}

// valuesOf are the values of arms, by their names. A value that is JSON is that, and what is not is text.
func valuesOf(f map[string]string) (map[string]any, error) {
	lines, err := linesOf(f, "values", "value, such as red = #c00")
	out := map[string]any{}
	for arm, text := range lines {
		out[arm] = valueOf(text)
	}
	return out, err
}

// linesOf are what a field says of arms, by their names: lines such as red = #c00.
func linesOf(f map[string]string, field, what string) (map[string]string, error) {
	out, arms, number := map[string]string{}, armsOf(f), 0
	for line := range strings.Lines(f[field]) {
		line = strings.TrimSpace(line)
		if number++; line == "" {
			continue
		}
		text := ""
		at := slices.IndexFunc(arms, func(a string) (ok bool) { // whose name may have = in it
			rest, ok := strings.CutPrefix(line, a)
			if ok {
				text, ok = strings.CutPrefix(strings.TrimSpace(rest), "=")
			}
			return ok
		})
		if text = strings.TrimSpace(text); at < 0 || text == "" {
			return nil, wrong(field, "line %d must be the name of an arm, =, and its %s", number, what)
		}
		if _, twice := out[arms[at]]; twice {
			return nil, wrong(field, "line %d gives a second one to an arm that has one", number)
		}
		out[arms[at]] = text
	}
	return out, nil
}

func valueOf(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if !json.Valid([]byte(text)) || d.Decode(&v) != nil {
		return text
	}
	return v
}

// fieldOf is the field of the form for a key of the declaration, whichever arm's it is.
func fieldOf(key string) string {
	if list, rest, ok := strings.Cut(key, "["); ok {
		_, rest, _ = strings.Cut(rest, "]")
		key = list + rest
	}
	at := slices.IndexFunc(newFields, func(f struct{ name, key string }) bool {
		rest, ok := strings.CutPrefix(key, f.key)
		return f.key != "" && ok && (rest == "" || rest[0] == '.')
	})
	switch {
	case at >= 0:
		return newFields[at].name
	case key == "unit":
		return "unit"
	case key == "reward":
		return "low"
	}
	return ""
}

// textOf is the declaration of fields that were checked, in YAML.
func textOf(f map[string]string) string {
	var out strings.Builder
	quoted := func(v any) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // what is JSON is YAML
		return strings.TrimSpace(b.String())
	}
	or := func(name, instead string) string {
		if f[name] == "" {
			return instead
		}
		return f[name]
	}
	add := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	add("name: %s", quoted(f["name"]))
	if f["description"] != "" {
		add("description: %s", quoted(f["description"]))
	}
	add("arms:")
	values, _ := valuesOf(f) // that were checked
	for _, arm := range armsOf(f) {
		if v, ok := values[arm]; ok {
			add("  - {name: %s, value: %s}", quoted(arm), quoted(v))
		} else {
			add("  - %s", quoted(arm))
		}
	}
	add("policy: {policy: %s}", quoted(f["policy"]))
	if shares, _ := linesOf(f, "shares", ""); len(shares) > 0 {
		add("shares:")
		for _, arm := range armsOf(f) {
			if x, ok := shares[arm]; ok {
				add("  %s: %s", quoted(arm), x)
			}
		}
	}
	for _, name := range []string{"risk", "horizon"} {
		if f[name] != "" {
			add("%s: %s", name, f[name])
		}
	}
	add("budget: {epsilon: %s}", or("epsilon", "null"))
	person := ""
	if f["per_person"] != "" {
		person = ", per_person: " + f["per_person"]
	}
	add("unit: {of: %s, assignments: %s%s}", quoted(f["unit"]), or("assignments", "1"), person)
	add("reward: {range: [%s, %s], default: %s}", or("low", "0"), or("high", "1"), or("default", "0"))
	add("window: %s", quoted(f["window"]))
	for _, name := range []string{"effect", "rate", "floor", "traffic"} {
		// The floor that the form begins with is nobody's word, and an A/B test has none.
		if first := f["policy"] == decl.SplitPolicy && name == "floor" && f[name] == firstFields[name]; f[name] != "" && !first {
			add("%s: %s", name, f[name])
		}
	}
	if f["keep"] != "" {
		add("stop: {keep: %s}", quoted(f["keep"]))
	}
	if f["public"] == "on" {
		add("public: true")
	}
	return out.String()
}

// promiseOf says what a declaration promises that Check lets pass.
func promiseOf(x *decl.Experiment) (*Promise, error) {
	guarantee, err := x.Guarantee()
	if err != nil {
		return nil, err
	}
	each, err := x.EachTotal()
	if err != nil {
		return nil, err
	}
	out := &Promise{Guarantee: guarantee, Price: fmt.Sprintf("a %[2]s %[1]v for all assignments, "+
		"%[3]v for each", x.Total(), x.Unit.Of, each), Warnings: x.Warnings()}
	if x.Picked != "" {
		out.Queue = x.Picked + ". "
	}
	if x.Contextual != nil {
		mapper, err := x.Mapper()
		if err != nil {
			return nil, err
		}
		out.Queue += fmt.Sprintf("Vectors have %d components, blocks divided by %.4g; choices go on with the last "+
			"release while rewards are awaited", mapper.Dim(), mapper.Norm())
		return out, nil
	}
	queue, err := x.Queue()
	if err != nil {
		return nil, err
	}
	out.Queue += queue
	if pure, ok := x.Total().(privacy.Pure); ok && pure.Epsilon < 0.01 {
		out.Extreme = fmt.Sprintf("At ε = %v noise covers what there is to be learned for long: "+
			"sotto plan live says how long", pure.Epsilon)
	}
	if first, ok := x.FirstBatch(); ok {
		out.First = fmt.Sprintf("%d decisions of an arm come while one waits for its window, and "+
			"its first batch "+
			"has %d: try %s: %d (sotto plan live says which loses less)", first.Proposed, first.Is, first.Param,
			first.Proposed)
	}
	return out, nil
}

// New makes an experiment of a form (do=create), says what it would promise (do=check), or has its
// text to be edited (do=text).
func (p *Pages) New(w http.ResponseWriter, r *http.Request) error {
	n, do, x, err := p.readNew(w, r)
	if err != nil {
		return err
	}
	switch {
	case do == "text":
		n.AsText, n.Checked = true, Checked{}
		return p.new(w, r, http.StatusOK, n)
	case do != "check" && do != "create":
		return wrong("do", "do must be check, create or text")
	case n.Wrong != nil:
		return p.new(w, r, http.StatusBadRequest, n)
	case do == "check":
		return p.new(w, r, http.StatusOK, n)
	case p.cfg.Demo:
		n.Promise, n.Wrong = nil, &Wrong{Detail: "this is the demonstration, which keeps " +
			"nothing: start sotto serve " +
			"without --demo for experiments of your own"}
		return p.new(w, r, http.StatusForbidden, n)
	}
	if err := p.cfg.Engine.Create(r.Context(), *x); err != nil {
		if n.Wrong = p.wrongOf(err); n.Wrong != nil {
			n.Promise = nil
			return p.new(w, r, p.statusOf(err), n)
		}
		return err
	}
	seeOther(w, "/experiments/"+x.Name)
	return nil
}

// CheckNew says of a form while it is filled in what New would, as JSON: where it is wrong, and a
// fragment, the template "checked".
func (p *Pages) CheckNew(w http.ResponseWriter, r *http.Request) error {
	n, _, _, err := p.readNew(w, r)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err := p.templates["new.html"].ExecuteTemplate(&html, "checked", n.Checked); err != nil {
		return err
	}
	out := struct {
		OK     bool   `json:"ok"`
		Field  string `json:"field,omitempty"`
		Detail string `json:"detail,omitempty"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		HTML   string `json:"html"`
		Text   string `json:"text"` // the declaration
	}{OK: n.Wrong == nil, HTML: html.String(), Text: n.Text}
	if n.Wrong != nil {
		out.Field, out.Detail, out.Line, out.Column = n.Wrong.Field, n.Wrong.Detail, n.Wrong.Line,
			n.Wrong.Column
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(out)
}
