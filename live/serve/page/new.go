package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
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
	Fresh  bool              // nothing was sent yet
	// Learn are the policies of who earns while learning, Decide those of who decides with a known risk;
	// Chosen: one of them is, in the place of what is recommended.
	Learn, Decide []Policy
	Chosen        bool
	Forecast      *Forecast
	Checked
	declares string // the name in the text, if it can be read
}

// Checked says what a declaration promises, or what is wrong with it. Both are nil before
// it was looked at.
type Checked struct {
	Wrong   *Wrong  // the first of Wrongs
	Wrongs  []Wrong // in the order of the form
	Promise *Promise
	Missing []string // labels of what must still be filled in
	Odds    string   // what the budget allows, if there is one
}

// A Policy is one to choose, with a sentence on what it does.
type Policy struct{ Name, Says string }

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
	First                    bool   // it is the first that is wrong
}

func (n NewForm) field(name, hint string) Field {
	out := Field{Name: name, Label: labelOf(name), Hint: hint, Value: n.Fields[name]}
	if at := n.at(name); at >= 0 {
		out.Wrong, out.First = n.Wrongs[at].Detail, at == 0
	}
	return out
}

// at is which of what is wrong is a field's, −1 if none is.
func (c Checked) at(field string) int {
	return slices.IndexFunc(c.Wrongs, func(w Wrong) bool { return w.Field == field })
}

// Has says that a field is wrong.
func (c Checked) Has(field string) bool { return c.at(field) >= 0 }

// blame says what is wrong, in the order of the form.
func (c *Checked) blame(all ...Wrong) {
	at := func(w Wrong) int {
		return slices.IndexFunc(newFields, func(f newField) bool { return f.name == w.Field })
	}
	slices.SortStableFunc(all, func(a, b Wrong) int { return cmp.Compare(at(a), at(b)) })
	if c.Wrongs = all; len(all) > 0 {
		c.Wrong = &all[0]
	}
}

type newField struct{ name, key, label string }

// newFields are those of the form, in its order, with the keys of the declaration whose errors are theirs.
var newFields = []newField{
	{"goal", "", "Goal"}, {"name", "name", "Name"}, {"description", "description", "Description"},
	{"arms", "arms", "Arms, one a line"}, {"values", "arms.value", "Values, one a line"},
	{"low", "reward.range", "Lowest"}, {"high", "", "Highest"}, {"default", "reward.default", "If none comes"},
	{"window", "window", "Window"}, {"metrics", "metrics", "More numbers, one a line"},
	{"unit", "unit.of", "A unit is a"}, {"assignments", "unit.assignments", "Assignments of a unit, at most"},
	{"per_person", "unit.per_person", "Decisions of a person, at most"}, {"epsilon", "budget", "Budget of a unit, ε"},
	{"traffic", "traffic", "Decisions a day, about"}, {"rate", "rate", "Mean reward today, about"},
	{"effect", "effect", "Smallest difference that matters"},
	{"policy", "policy", "Policy"}, {"risk", "risk", "Risk"}, {"floor", "floor", "Floor"},
	{"shares", "shares", "Shares, one a line"}, {"horizon", "horizon", "Horizon"},
	{"keep", "stop.keep", "When it has stopped, everybody gets"}, {"public", "public", "Public"},
}

func labelOf(field string) string {
	for _, f := range newFields {
		if f.name == field {
			return f.label
		}
	}
	return field
}

// needed are the fields that must be filled in, with what declares something where they are not.
var needed = []struct{ name, stand, why string }{
	{"goal", goalEarn, "say which of the two you want"},
	{"name", "x", "the experiment needs one"}, {"arms", "a\nb", "give two at least"}, {"window", "24h", "say how long a reward may take, such as 24h"},
	{"unit", "person", "say whose rewards are protected, such as person"}, {"epsilon", "1", "1 is usual"},
	{"risk", "0.05", "say how probably this policy may be wrong when it stops, such as 0.05"},
}

// needs says whether a field must be filled in: the risk for policies that stop by themselves, and the goal where no
// policy says it.
func (p *Pages) needs(field string, f map[string]string) bool {
	if field == "goal" {
		return f["policy"] == ""
	}
	return field != "risk" || f["policy"] != decl.SplitPolicy && p.decides(f["policy"])
}

// decides says whether a policy is one of who decides with a known risk.
func (p *Pages) decides(policy string) bool {
	_, decide := p.policies()
	return slices.ContainsFunc(decide, func(q Policy) bool { return q.Name == policy })
}

// The goals of an experiment.
const (
	goalEarn   = "earn"
	goalDecide = "decide"
)

// firstFields are what the form begins with. Which goal somebody has is for them to say.
var firstFields = map[string]string{"epsilon": "1", "unit": "person", "assignments": "1",
	"low": "0", "high": "1", "default": "0", "window": "24h", "floor": "0.05"}

// AskNew shows the form: with ?as=text that of the text.
func (p *Pages) AskNew(w http.ResponseWriter, r *http.Request) error {
	n := NewForm{Fields: firstFields, AsText: r.URL.Query().Get("as") == "text", Fresh: true}
	n.Text, n.Odds = textOf(n.Fields), oddsOfForm(n.Fields)
	return p.new(w, r, http.StatusOK, n)
}

func (p *Pages) new(w http.ResponseWriter, r *http.Request, status int, n NewForm) error {
	n.Frame = p.frame(r, "New experiment")
	n.Learn, n.Decide = p.policies()
	n.Chosen = n.Fields["policy"] != ""
	p.write(w, status, "new.html", n)
	return nil
}

// says is what policies do, in a sentence, in the order in which they are shown: those of who learns, and then
// those of who decides. All others follow.
var says = []Policy{
	{"dp-imed", "Gives visitors to the best arm, and tries others no more often than doubt about them asks for. Strong with much traffic."},
	{"dp-ts", "Gives each arm visitors by its chance to be the best (Thompson sampling). Strong with little traffic."},
	{"dp-klucb", "Gives visitors to the arm whose mean could still be the highest. Close to dp-imed."},
	{"dp-window-klucb", "Forgets old rewards: for arms whose worth changes over time."},
	{decl.SplitPolicy, "An A/B test: each arm keeps its share of visitors, and the page says when one is conclusively better. " +
		"At most one test in twenty names an arm that is not."},
	{catalog.DefaultRule, "Drops arms that are shown to be worse until one is left, and stops by itself. It is wrong with at most the " +
		"risk that you set."},
}

// policiesOf are the policies that a form's experiment can be played by, for each goal.
func policiesOf(known catalog.Catalog) (learn, decide []Policy) {
	plays := func(e catalog.Entry, more string) bool {
		x, err := decl.Reader{Catalog: known}.Parse("", []byte("{name: x, arms: [a, b], policy: {policy: \""+e.Name+
			"\"}, budget: {epsilon: 1}, unit: {of: person}, window: 24h"+more+"}"))
		return e.Private && err == nil && x.Check() == nil
	}
	at := func(name string) int { return slices.IndexFunc(says, func(q Policy) bool { return q.Name == name }) }
	add := func(to *[]Policy, e catalog.Entry, otherwise string) {
		said := e.Title + ". " + otherwise
		if i := at(e.Name); i >= 0 {
			said = says[i].Says
		}
		*to = append(*to, Policy{e.Name, strings.TrimSpace(said)})
	}
	for _, e := range known.For(catalog.BanditArms) {
		switch older := ""; {
		case e.Name == decl.SplitPolicy:
			add(&decide, e, "")
		case e.Name != catalog.AutoPolicy && (plays(e, "") || plays(e, ", horizon: 100000")):
			if e.Newer != "" {
				older = "An older one: we recommend " + e.Newer + "."
			}
			add(&learn, e, older)
		}
	}
	for _, e := range known.For(catalog.BanditIdentify) {
		if plays(e, ", risk: 0.05") {
			add(&decide, e, "Looks for the best arm, and stops by itself.")
		}
	}
	for _, of := range [][]Policy{learn, decide} {
		slices.SortStableFunc(of, func(a, b Policy) int { // −1, which is none of them, goes last
			return cmp.Compare(uint(at(a.Name)), uint(at(b.Name)))
		})
	}
	return learn, decide
}

// policyOf is the policy of a form: the one that is recommended for its goal, if none was chosen.
func policyOf(f map[string]string) string {
	if f["policy"] == "" && f["goal"] == goalDecide {
		return decl.SplitPolicy
	}
	return cmp.Or(f["policy"], catalog.AutoPolicy)
}

// oddsOfForm says what the budget of a form allows, with that of its metrics; empty if there is no such budget.
func oddsOfForm(f map[string]string) string {
	epsilon, err := strconv.ParseFloat(f["epsilon"], 64)
	more, bad := metricsOf(f)
	for _, m := range more {
		epsilon += m.epsilon
	}
	return oddsAt(epsilon, cmp.Or(f["unit"], "unit"), err == nil && bad == nil)
}

func oddsAt(epsilon float64, unit string, ok bool) string {
	switch {
	case !ok || !(epsilon > 0) || math.IsInf(epsilon, 1):
		return ""
	case epsilon > weakest:
		return oddsOf(epsilon, unit) + " Use 8 at most; 1 is usual."
	}
	return oddsOf(epsilon, unit)
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
	if bad := p.wrongOf(err); err != nil && bad == nil {
		return n, do, nil, err
	} else if bad != nil {
		n.blame(*bad)
	}
	if n.Wrong != nil {
		return n, do, nil, nil
	}
	n.declares = x.Name
	n.Promise, err = promiseOf(x)
	if pure, ok := x.Total().(privacy.Pure); ok && n.AsText {
		n.Odds = oddsAt(pure.Epsilon, x.Unit.Of, true)
	}
	return n, do, x, err
}

// declared is the declaration of a form, and what is to be shown again of it: all that was typed, right or wrong.
func (p *Pages) declared(in url.Values) (n NewForm, x *decl.Experiment, err error) {
	n = NewForm{Fields: map[string]string{}, AsText: in.Has("text"), Text: in.Get("text")}
	for _, f := range newFields {
		n.Fields[f.name] = strings.TrimSpace(in.Get(f.name))
	}
	if n.AsText {
		x, err = p.parse(n.Text)
		return n, x, err
	}
	n.Text, n.Odds = textOf(n.Fields), oddsOfForm(n.Fields)
	var all []Wrong
	n.Missing, all = p.missingOf(n.Fields)
	all = append(all, p.checkFields(n.Fields)...)
	for {
		if x, err = p.parse(textOf(stood(n.Fields, all))); err == nil {
			break
		}
		bad := p.wrongOf(err)
		if bad == nil {
			return n, nil, err
		}
		field := fieldOf(bad.Field)
		// What is wrong with what stands in for another field is not the form's; after another policy all may be.
		if len(all) > 0 && n.Fields[field] == "" || slices.ContainsFunc(all, func(w Wrong) bool { return w.Field == field || w.Field == "policy" }) {
			break
		}
		all = append(all, Wrong{Field: field, Detail: bad.Detail})
	}
	n.blame(all...)
	return n, x, nil
}

// parse reads a declaration, and checks it.
func (p *Pages) parse(text string) (*decl.Experiment, error) {
	x, err := decl.Reader{Catalog: p.cfg.Catalog}.Parse("declaration", []byte(text))
	if err != nil {
		return nil, err
	}
	return x, x.Check()
}

// missingOf are the labels of the fields that must be filled in and are not, and what is wrong with them.
func (p *Pages) missingOf(f map[string]string) (labels []string, all []Wrong) {
	for _, need := range needed {
		if f[need.name] == "" && p.needs(need.name, f) {
			labels = append(labels, strings.TrimSuffix(labelOf(need.name), ", one a line"))
			all = append(all, Wrong{Field: need.name, Detail: "is missing: " + need.why})
		}
	}
	return labels, all
}

// stood are fields with something in the place of those that are wrong, so that all others can be read. What goes by
// one of these goes with it.
func stood(f map[string]string, all []Wrong) map[string]string {
	out := maps.Clone(f)
	for _, w := range all {
		out[w.Field] = firstFields[w.Field]
		switch w.Field {
		case "arms":
			out["values"], out["shares"], out["keep"] = "", "", ""
		case "low", "high":
			out["low"], out["high"], out["default"], out["effect"], out["rate"] = "0", "1", "0", "", ""
		}
	}
	for _, need := range needed {
		if slices.ContainsFunc(all, func(w Wrong) bool { return w.Field == need.name }) {
			out[need.name] = need.stand
		}
	}
	return out
}

// checkFields refuses what would not be a number in the declaration, and a budget that the policy
// would be blamed for.
func (p *Pages) checkFields(f map[string]string) (all []Wrong) {
	bad := func(name, format string, args ...any) {
		if !slices.ContainsFunc(all, func(w Wrong) bool { return w.Field == name }) {
			all = append(all, Wrong{Field: name, Detail: fmt.Sprintf(format, args...)})
		}
	}
	refuse := func(err error) {
		if w := p.wrongOf(err); w != nil {
			bad(w.Field, "%s", w.Detail)
		}
	}
	for _, name := range []string{"risk", "horizon", "epsilon", "assignments", "per_person", "low", "high",
		"default", "floor", "effect", "rate", "traffic"} {
		if f[name] != "" && !isNumber(f[name]) {
			bad(name, "must be a number, such as 1.5, with a point")
		}
	}
	if x, _ := strconv.ParseFloat(f["epsilon"], 64); f["epsilon"] != "" && x <= 0 {
		bad("epsilon", "must be above 0")
	}
	if f["public"] != "" && f["public"] != "on" {
		bad("public", "must be on or not there")
	}
	learn, _ := p.policies()
	learns := slices.ContainsFunc(learn, func(q Policy) bool { return q.Name == f["policy"] })
	switch {
	case f["goal"] != "" && f["goal"] != goalEarn && f["goal"] != goalDecide:
		bad("goal", "must be %s or %s", goalEarn, goalDecide)
	case f["goal"] == goalEarn && p.decides(f["policy"]), f["goal"] == goalDecide && learns:
		bad("policy", "must be one for your goal: choose another policy, or another goal")
	}
	_, err := metricsOf(f)
	refuse(err)
	if f["arms"] == "" {
		return all
	}
	shares, err := linesOf(f, "shares", "share, such as red = 0.5")
	refuse(err)
	for _, arm := range slices.Sorted(maps.Keys(shares)) {
		if !isNumber(shares[arm]) {
			bad("shares", "of %q must be a number, such as 0.5, with a point", arm)
		}
	}
	_, err = valuesOf(f)
	refuse(err)
	return all
}

func isNumber(text string) bool {
	x, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// A metric is a number beside the reward, as it was typed.
type metric struct {
	name, low, high string
	epsilon         float64
	budget          string
}

// metricsOf are the metrics of a form: lines such as basket = 0, 200, 0.5.
func metricsOf(f map[string]string) (out []metric, err error) {
	number := 0
	for line := range strings.Lines(f["metrics"]) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, rest, _ := strings.Cut(line, "=")
		parts := strings.Split(rest, ",")
		for i, x := range parts {
			parts[i] = strings.TrimSpace(x)
		}
		if len(parts) != 3 || slices.ContainsFunc(parts, func(x string) bool { return !isNumber(x) }) {
			return nil, wrong("metrics", "line %d must be a name, =, and three numbers: from, to and ε, such as "+
				"basket = 0, 200, 0.5", number)
		}
		m := metric{name: strings.TrimSpace(name), low: parts[0], high: parts[1], budget: parts[2]}
		if m.epsilon, _ = strconv.ParseFloat(m.budget, 64); m.epsilon <= 0 {
			return nil, wrong("metrics", "line %d must have an ε above 0, its third number", number)
		}
		out = append(out, m)
	}
	return out, nil
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
	field, longest := "", 0
	for _, f := range newFields {
		rest, ok := strings.CutPrefix(key, f.key)
		if ok && len(f.key) > longest && (rest == "" || rest[0] == '.') {
			field, longest = f.name, len(f.key)
		}
	}
	switch {
	case field != "":
		return field
	case key == "unit":
		return "unit"
	case key == "reward":
		return "low"
	}
	return ""
}

// textOf is the declaration of fields, in YAML. What cannot be in it, as it is wrong or for another policy, is in it
// all the same, as text or in a comment: who goes on with the text has lost nothing.
func textOf(f map[string]string) string {
	var out strings.Builder
	quoted := func(v any) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // what is JSON is YAML
		return strings.TrimSpace(b.String())
	}
	number := func(text string) string {
		if isNumber(text) {
			return text
		}
		return quoted(text)
	}
	or := func(name, instead string) string {
		if f[name] == "" {
			return instead
		}
		return number(f[name])
	}
	add := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	unread := func(field string) {
		add("# %s, which cannot be read:", field)
		for line := range strings.Lines(f[field]) {
			add("#   %s", quoted(strings.TrimSpace(line)))
		}
	}
	add("name: %s", quoted(f["name"]))
	if f["description"] != "" {
		add("description: %s", quoted(f["description"]))
	}
	add("arms:")
	values, badValues := valuesOf(f)
	for _, arm := range armsOf(f) {
		if v, ok := values[arm]; ok {
			add("  - {name: %s, value: %s}", quoted(arm), quoted(v))
		} else {
			add("  - %s", quoted(arm))
		}
	}
	if badValues != nil {
		unread("values")
	}
	policy := policyOf(f)
	if f["goal"] == "" && f["policy"] == "" {
		add("# policy: split for an A/B test, auto to earn while learning")
	} else {
		add("policy: {policy: %s}", quoted(policy))
	}
	if shares, err := linesOf(f, "shares", ""); err != nil {
		unread("shares")
	} else if len(shares) > 0 {
		add("shares:")
		for _, arm := range armsOf(f) {
			if x, ok := shares[arm]; ok {
				add("  %s: %s", quoted(arm), number(x))
			}
		}
	}
	for _, name := range []string{"risk", "horizon"} {
		if f[name] != "" {
			add("%s: %s", name, number(f[name]))
		}
	}
	add("budget: {epsilon: %s}", or("epsilon", "null"))
	person := ""
	if f["per_person"] != "" {
		person = ", per_person: " + number(f["per_person"])
	}
	add("unit: {of: %s, assignments: %s%s}", quoted(f["unit"]), or("assignments", "1"), person)
	add("reward: {range: [%s, %s], default: %s}", or("low", "0"), or("high", "1"), or("default", "0"))
	if more, err := metricsOf(f); err != nil {
		unread("metrics")
	} else if len(more) > 0 {
		add("metrics:")
		for _, m := range more {
			without := "" // 0, where that is in the range
			low, _ := strconv.ParseFloat(m.low, 64)
			if high, _ := strconv.ParseFloat(m.high, 64); low > 0 || high < 0 {
				without = ", default: " + m.low
			}
			add("  - {name: %s, range: [%s, %s]%s, budget: {epsilon: %s}}", quoted(m.name), m.low, m.high, without, m.budget)
		}
	}
	add("window: %s", quoted(f["window"]))
	for _, name := range []string{"effect", "rate", "floor", "traffic"} {
		split := policy == decl.SplitPolicy
		// The floor that the form begins with is nobody's word, and an A/B test has none.
		if first := split && name == "floor" && f[name] == firstFields[name]; f[name] == "" || first {
			continue
		}
		// What an A/B test is planned for is what others are forecast for.
		if name == "effect" && !split || name == "rate" && !split && policy != catalog.AutoPolicy {
			add("# %s: %s (of the forecast alone)", name, number(f[name]))
			continue
		}
		add("%s: %s", name, number(f[name]))
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
	taken := do != "text" && p.taken(r.Context(), &n)
	switch {
	case do == "text":
		n.AsText, n.Checked = true, Checked{}
		return p.new(w, r, http.StatusOK, n)
	case do != "check" && do != "create":
		return wrong("do", "do must be check, create or text")
	case taken:
		return p.new(w, r, p.statusOf(serve.ErrExists), n)
	case n.Wrong != nil:
		return p.new(w, r, http.StatusBadRequest, n)
	case do == "check":
		n.Forecast = p.forecast(r.Context(), n.Fields, x)
		return p.new(w, r, http.StatusOK, n)
	case p.cfg.Demo:
		n.Promise = nil
		n.blame(Wrong{Detail: "this is the demonstration, which keeps " +
			"nothing: start sotto serve " +
			"without --demo for experiments of your own"})
		return p.new(w, r, http.StatusForbidden, n)
	}
	if err := p.cfg.Mine(w, x); err != nil {
		return err
	}
	if err := p.cfg.Engine.Create(r.Context(), *x); err != nil {
		if bad := p.wrongOf(err); bad != nil {
			n.Promise = nil
			n.blame(*bad)
			return p.new(w, r, p.statusOf(err), n)
		}
		return err
	}
	seeOther(w, "/experiments/"+x.Name)
	return nil
}

// taken says whether the name of a form is one that an experiment has, or had: who may ask sees all of these.
func (p *Pages) taken(ctx context.Context, n *NewForm) bool {
	name := n.Fields["name"]
	if n.AsText {
		name = n.declares
	}
	if n.Has("name") {
		return false // what is wrong there comes first
	}
	if names, err := p.cfg.Names(ctx); err != nil || !slices.Contains(names, name) {
		return false
	}
	n.Promise = nil
	n.blame(append(n.Wrongs, *p.wrongOf(serve.ErrExists))...)
	return true
}

// CheckNew says of a form while it is filled in what New would, as JSON: where it is wrong, and a
// fragment, the template "checked".
func (p *Pages) CheckNew(w http.ResponseWriter, r *http.Request) error {
	n, _, _, err := p.readNew(w, r)
	if err != nil {
		return err
	}
	taken := p.taken(r.Context(), &n)
	var html bytes.Buffer
	if err := p.templates["new.html"].ExecuteTemplate(&html, "checked", n.Checked); err != nil {
		return err
	}
	type fault struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	}
	out := struct {
		OK     bool   `json:"ok"`
		Field  string `json:"field,omitempty"`
		Detail string `json:"detail,omitempty"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Taken  bool   `json:"taken,omitempty"` // the name is
		// Wrong is all that is wrong, of which Field and Detail are the first.
		Wrong []fault `json:"wrong,omitempty"`
		// Missing are the labels of what must still be filled in.
		Missing []string `json:"missing,omitempty"`
		Odds    string   `json:"odds"`
		HTML    string   `json:"html"`
		Text    string   `json:"text"` // the declaration
	}{OK: n.Wrong == nil, Taken: taken, Missing: n.Missing, Odds: n.Odds, HTML: html.String(), Text: n.Text}
	for _, w := range n.Wrongs {
		out.Wrong = append(out.Wrong, fault{w.Field, w.Detail})
	}
	if n.Wrong != nil {
		out.Field, out.Detail, out.Line, out.Column = n.Wrong.Field, n.Wrong.Detail, n.Wrong.Line,
			n.Wrong.Column
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(out)
}
