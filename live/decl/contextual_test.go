package decl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

const liveFront = `name: front-page
contextual:
  context:
    device: {values: [phone, tablet, 3]}
    user.age: {range: [0, 100], clip: true}
    user.city: {cross_only: true}
  action:
    topic: {values: [news, sport]}
  id: 8
  cross:
    - {of: [device, topic]}
    - {of: [user.city, id], buckets: 16, seed: 7}
  actions: 20
  unknown: ignore
  rules:
    - {name: first, play: first, clip: 200, budget: {rho: 0.05}}
    - {name: any, play: uniform, clip: 10, budget: {rho: 0.05}}
    - {name: seven, play: {id: article-7}, clip: 200, budget: {rho: 0.1}}
policy: {policy: adac-oful, greed: 1, lambda: 30}
horizon: 100_000
budget: {rho: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 10m
floor: 0.1
`

func front(t testing.TB, text string) *Experiment {
	t.Helper()
	l, err := Reader{}.Parse("front.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestContextual(t *testing.T) {
	l := front(t, liveFront)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	want := &Contextual{Features: feature.Map{
		Context: []feature.Feature{{Name: "device", Values: []string{"phone", "tablet", "3"}},
			{Name: "user.age", Hi: 100, Clip: true}, {Name: "user.city", CrossOnly: true}},
		Action: []feature.Feature{{Name: "topic", Values: []string{"news", "sport"}}},
		ID:     feature.Feature{Buckets: 8},
		Cross: []feature.Cross{{Of: []string{"device", "topic"}},
			{Of: []string{"user.city", "id"}, Buckets: 16, Seed: 7}},
		Actions: 20, Ignore: true},
		Rules: []Rule{{Name: "first", Play: PlayFirst, Clip: 200, Budget: privacy.ZCDP{Rho: 0.05}},
			{Name: "any", Play: PlayUniform, Clip: 10, Budget: privacy.ZCDP{Rho: 0.05}},
			{Name: "seven", ID: "article-7", Clip: 200, Budget: privacy.ZCDP{Rho: 0.1}}}}
	if !reflect.DeepEqual(l.Contextual, want) {
		t.Errorf("%+v, want %+v", l.Contextual, want)
	}
	p, err := l.Mapper()
	if err != nil || p.Dim() != 1+3+1+2+8+6+16 {
		t.Errorf("%v, %v", p.Dim(), err)
	}
	if _, err := l.NewContextual(ZeroCoins{}); err != nil {
		t.Error(err)
	}
	if _, err := l.NewPolicy(ZeroCoins{}); !errors.Is(err, keyed.ErrSpec) {
		t.Errorf("a policy for arms: %v", err)
	}
	if total := l.Total().(privacy.ZCDP); math.Abs(total.Rho-1.2) > 1e-12 {
		t.Errorf("in all %v", total)
	}
	says, err := l.Guarantee()
	if err != nil || says != "what everybody sees depends on a visit's rewards by released noisy "+
		"sums alone, at "+
		"rho=1.2 for the reward of each event (rho=1 for learning, the rest for 3 rules); "+
		"contexts, features, ids of "+
		"actions and what was decided are not protected" {
		t.Errorf("%s, %v", says, err)
	}
	// Where it is not said, the bound on the model's norm is what blocks are divided by.
	radius := func(params string) float64 {
		p, err := front(t, strings.Replace(liveFront, "lambda: 30", "lambda: 30"+params, 1)).NewContextual(ZeroCoins{})
		if err != nil {
			t.Fatal(err)
		}
		_, r := p.(*linear.OFUL).Estimate()
		return r
	}
	if got := radius(""); got != radius(fmt.Sprintf(", norm: %v", p.Norm())) || got == radius(", norm: 1") {
		t.Errorf("the radius without a norm is %v", got)
	}
	// The normal form is read back to the same.
	text, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if part := `"contextual":{"context":{"device":{"values":["phone","tablet","3"]},"user.age":{"range":[0,100],` +
		`"clip":true},"user.city":{"cross_only":true}},"action":{"topic":{"values":["news","sport"]}},` +
		`"id":{"buckets":8},"cross":[{"of":["device","topic"]},{"of":["user.city","id"],"buckets":16,"seed":7}],` +
		`"actions":20,"unknown":"ignore","mode":"learn","rules":[{"name":"first","play":"first","clip":200,` +
		`"budget":{"rho":0.05}},`; !strings.Contains(string(text), part) {
		t.Errorf("%s, want %s", text, part)
	}
	again := front(t, string(text))
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	other, err := again.JSON()
	if err != nil || string(other) != string(text) {
		t.Errorf("%s, want %s: %v", other, text, err)
	}
	again.Contextual.Mode = ""
	if !reflect.DeepEqual(again.Contextual, want) {
		t.Errorf("%+v, want %+v", again.Contextual, want)
	}
}

// What is wrong with a contextual experiment is one error that names the field.
func TestContextualErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"name: front-page", "name: front-page\narms: [a, b]", "arms: is not for contextual experiments: each"},
		{"floor: 0.1", "floor: 0.1\nrisk: 0.1", "risk: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nsticky: false", "sticky: is not for contextual"},
		{"{of: visit}", "{of: person, assignments: 2}", "unit.assignments: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nmetrics: [{name: x, budget: {rho: 1}}]", "metrics: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nmissing: drop\nreports: every", "missing: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nexposure: retract", "exposure: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nfallback: a", "fallback: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nshare: 0.5", "share: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nby: {a: [b]}", "by: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nonly: {a: b}", "only: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nlayer: {name: a, from: 0, to: 1}", "layer: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nwebhook: 'https://a.example/'", "webhook: is not for contextual"},
		{"floor: 0.1", "floor: 0.1\nstop: {keep: leader}", "stop: is not for contextual experiments: it has no arm to be kept, keep is policy"},
		{"adac-oful, greed: 1, lambda: 30", "dp-klucb", `policy.policy: policy "dp-klucb"`},
		{"adac-oful, greed: 1, lambda: 30", "rs-oful", "policy: rs-oful is not private"},
		{"adac-oful, greed: 1, lambda: 30", "lin-ucb", "policy: lin-ucb protects contexts as well"},
		{"adac-oful, greed: 1, lambda: 30", "lin-priv", "policy: lin-priv cannot be played live"},
		{"lambda: 30", "lambda: -1", "policy: policy adac-oful: lambda is -1"},
		{"budget: {rho: 1}\nunit", "budget: {epsilon: 1}\nunit", "budget: "},
		{"budget: {rho: 1}\nunit", "budget: none\nunit", "budget: is none"},
		{"budget: {rho: 1}\nunit", "budget: {epsilon: 1, delta: 1e-6}\nunit",
			"contextual.rules[0].budget: is in rho, and the experiment's is"},
		{"device: {values", "device: {value",
			`contextual.context.device: unknown key "value" (did you mean "values"?)`},
		{"    device:", "    user.age: {range: [0, 1]}\n    device:", `mapping key "user.age" already defined`},
		{"topic: {", "device: {", "contextual.action.device: is the name of another feature"},
		{"[phone, tablet, 3]", "[phone, tablet, phone]",
			`contextual.context.device.values[2]: "phone" is a value before`},
		{"[phone, tablet, 3]", "[]", "contextual.context.device.values: has 0"},
		{"[phone, tablet, 3]", "[[1]]", "contextual.context.device.values[0]: is no string, number or boolean"},
		{"[0, 100]", "[100, 0]", "contextual.context.user.age.range: is [100, 0]"},
		{"[0, 100]", "[0, .nan]", "contextual.context.user.age.range: is [0, NaN]"},
		{"{cross_only: true}", "{}", "contextual.context.user.city: has no values, range or buckets"},
		{"{cross_only: true}", "{buckets: 1}", "contextual.context.user.city.buckets: is 1"},
		{"{cross_only: true}", "{buckets: 64, seed: -1}", "contextual.context.user.city.seed: "},
		{"{cross_only: true}", "4", "contextual.context.user.city: is the number 4, must be key: value pairs"},
		{"id: 8", "id: 300", "contextual: makes vectors of 329 components, must make at most 256"},
		{"id: 8", "id: 2000", "contextual.id.buckets: is 2000, must be from 2 to 1024"},
		{"id: 8", "id: {range: [0, 1]}", `contextual.id: unknown key "range"`},
		{"[device, topic]", "[device, tropic]", `contextual.cross[0].of[1]: "tropic" is no declared feature`},
		{"[device, topic]", "[device]", "contextual.cross[0].of: has 1 features"},
		{"buckets: 16", "buckets: 1", "contextual.cross[1].buckets: is 1"},
		{"actions: 20", "actions: 1001", "contextual.actions: is 1001, must be from 1 to 1000"},
		{"actions: 20", "actions: 0", "contextual.actions: "},
		{"unknown: ignore", "unknown: drop", `contextual.unknown: is "drop", must be refuse, ignore`},
		{"unknown: ignore", "mode: think", `contextual.mode: is "think"`},
		{"name: any", "name: first", `contextual.rules[1].name: "first" is the name of a rule before`},
		{"name: any", "name: Any", `contextual.rules[1].name: is "Any"`},
		{"play: uniform", "play: best", `contextual.rules[1].play: is "best", must be first, uniform, policy`},
		{", play: uniform", "", "contextual.rules[1].play: is missing"},
		{"{id: article-7}", "{id: ''}", "contextual.rules[2].play: is missing"},
		{"clip: 10", "clip: 0.5", "contextual.rules[1].clip: is 0.5, must be from 1"},
		{"clip: 10", "clip: .nan", "contextual.rules[1].clip: is NaN"},
		{"clip: 10", "clip: .inf", "contextual.rules[1].clip: is +Inf"},
		{"clip: 10, ", "", "contextual.rules[1].clip: is 0, must be from 1"},
		{", budget: {rho: 0.1}", "", "contextual.rules[2].budget: is missing, must be a budget " +
			"such as {rho: 0.05}"},
		{", budget: {rho: 0.1}", ", budget: {epsilon: 0.1}", "contextual.rules[2].budget: is epsilon=0.1"},
		{", budget: {rho: 0.1}", ", budget: {rho: 0}", "contextual.rules[2].budget: is rho=0, must be above 0"},
		{", budget: {rho: 0.1}", ", budget: {rho: .inf}", "contextual.rules[2].budget: is rho="},
		{", budget: {rho: 0.1}", ", budget: none", "contextual.rules[2].budget: is none"},
		{"floor: 0.1", "floor: 0", "contextual.rules[0].play: would be given actions that are never given"},
		{"floor: 0.1", "floor: 1", "floor: is 1"},
	} {
		text := strings.Replace(liveFront, c.old, c.new, 1)
		if text == liveFront {
			t.Errorf("%s is not in the example", c.old)
		}
		l, err := Reader{}.Parse("front.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err == nil || !errors.Is(err, keyed.ErrSpec) || !strings.Contains(err.Error(), ": "+c.want) {
			t.Errorf("%s: want %q, got %v", c.new, c.want, err)
		}
	}
	// Nothing of an action is in the vector.
	l := front(t, liveFront)
	l.Contextual.Features.Action, l.Contextual.Features.ID = nil, feature.Feature{}
	l.Contextual.Features.Cross = nil
	if err := l.Check(); err == nil || err.Error() != "contextual.action: is missing, and so are "+
		"id and crosses "+
		"with it: all actions would be the same" {
		// of a file, so the place comes before
		if err == nil || !strings.Contains(err.Error(), "contextual.action: is missing, and so are id") {
			t.Error(err)
		}
	}
	l = front(t, liveFront)
	l.Contextual.Mode = "think"
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), `contextual.mode: is "think"`) {
		t.Error(err)
	}
	l = front(t, liveFront)
	l.Contextual.Rules[0].ID = "x"
	if err := l.Check(); err == nil || !strings.Contains(err.Error(),
		"contextual.rules[0].play: is first and an id") {
		t.Error(err)
	}
}

// Without a floor a rule may be declared that plays what is given anyway, and no other.
func TestRulesWithoutFloor(t *testing.T) {
	for _, c := range []struct {
		mode, play string
		ok         bool
	}{{"learn", "policy", true}, {"learn", "first", false}, {"learn", "uniform", false},
		{"learn", "{id: a}", false},
		{"apprentice", "first", true}, {"apprentice", "policy", false}} {
		text := strings.NewReplacer("unknown: ignore", "mode: "+c.mode, "floor: 0.1",
			"floor: 0").Replace(liveFront)
		before, rest, _ := strings.Cut(text, "  rules:\n")
		_, after, _ := strings.Cut(rest, "policy:")
		text = before + "  rules: [{name: one, play: " + c.play + ", clip: 1, budget: {rho: " +
			"0.1}}]\npolicy:" + after
		if err := front(t, text).Check(); (err == nil) != c.ok {
			t.Errorf("%s in mode %s: %v", c.play, c.mode, err)
		}
	}
}

// Warnings name the number.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		replace []string
		want    []string
	}{
		{[]string{"horizon: 100_000", "horizon: 1_000_000"}, nil},
		{[]string{"horizon: 100_000\n", ""}, nil},
		{[]string{"horizon: 100_000\n", "traffic: 10\n", "  rules:", "  rules: []", "    - {name", "    # {name"},
			[]string{"contextual: vectors have 37 components, and at rho=1 the noise in an estimate is more than twice " +
				"what chance does to it until about 5e+04 decisions; a year's traffic is 3.6e+03"}},
		// clip 200, σ = 1/√0.1, ℓ ≤ 37·log₂(1+10⁵/(30·37)) = 241: 200·3.162·√241/10⁵ = 0.098
		{[]string{"[0, 1], default", "[0, 2], default"},
			[]string{"contextual.rules[0].clip: is 200, and the noise in the estimate has a " +
				"standard deviation of up to " +
				"0.2 after 1e+05 decisions, of rewards from 0 to 2",
				"contextual.rules[2].clip: is 200, and the noise in the estimate has a standard " +
					"deviation of up to 0.14"}},
		{[]string{"horizon: 100_000", "horizon: 1000", "  rules:", "  rules: []", "    - {name", "    # {name"},
			[]string{"contextual: vectors have 37 components, and at rho=1 the noise in an " +
				"estimate is more than twice " +
				"what chance does to it until about 5e+04 decisions; the horizon is 1e+03"}},
		{[]string{"horizon: 100_000", "horizon: 1_000_000\nstart: 2026-01-01T00:00:00Z\nend: " +
			"2026-01-02T00:00:00Z\n" +
			"traffic: 1000", "  rules:", "  rules: []", "    - {name", "    # {name"},
			[]string{"contextual: vectors have 37 components"}},
		{[]string{"horizon: 100_000", "horizon: 1_000_000\ntraffic: 1e9"},
			[]string{"window: in 10m0s there are 6.9e+06 decisions, of 1e+06 in all"}},
		{[]string{"horizon: 100_000", "horizon: 1_000_000", "clip: 10,", "clip: 9,",
			"clip: 200, budget: {rho: 0.1}",
			"clip: 20, budget: {rho: 0.1}"},
			[]string{"contextual.rules[1].clip: is 9, and weights go up to 10 with 20 actions",
				"contextual.rules[2].clip: is 20, and weights go up to 200 with 20 actions"}},
		{[]string{"horizon: 100_000", "horizon: 1_000_000", "[device, topic]", "[device, user.age]",
			"[user.city, id]", "[user.city, device]"},
			[]string{"contextual.cross: none joins a feature of the context with the action's"}},
	} {
		l := front(t, strings.NewReplacer(c.replace...).Replace(liveFront))
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		got := l.Warnings()
		if len(got) != len(c.want) {
			t.Errorf("%q: %q, want %q", c.replace, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%q, want %q", got[i], c.want[i])
			}
		}
	}
	if got := (&Experiment{}).Warnings(); got != nil {
		t.Error(got)
	}
}

// The number of decisions that are enough solves its equation, and grows with what it should.
func TestEnough(t *testing.T) {
	// d = 20, 5 blocks, σ = √2 (ρ = 1), λ = 1, C = 1: T = ℓ·2·20·5/4 with ℓ = 20·log₂(1+T/20).
	p := learning{dim: 20, norm: math.Sqrt(5), sigma: math.Sqrt2, lambda: 1, c: 1}
	n := p.enough()
	if want := 20 * math.Log2(1+n/20) * 50; math.Abs(n-want) > 1e-6*n || n < 5e3 || n > 15e3 {
		t.Errorf("%v, want %v", n, want)
	}
	for name, change := range map[string]func(*learning){"dim": func(p *learning) { p.dim = 40 },
		"blocks": func(p *learning) { p.norm = 3 }, "noise": func(p *learning) { p.sigma = 2 },
		"releases": func(p *learning) { p.c = 0.5 }} {
		more := p
		change(&more)
		if !(more.enough() > n) {
			t.Errorf("more %s: %v, %v", name, more.enough(), n)
		}
	}
	if p.sigma = 0; p.enough() != 20 {
		t.Errorf("without noise %v", p.enough())
	}
}

// The schema takes what the reader takes, and refuses keys of arms.
func TestContextualSchema(t *testing.T) {
	text, err := Reader{}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("live.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("live.json")
	if err != nil {
		t.Fatal(err)
	}
	normal, err := front(t, liveFront).JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []struct {
		key, value string
		ok         bool
	}{{"floor", "0.2", true}, {"arms", `["a","b"]`, false}, {"fallback", `"a"`, false}, {"risk", "0.1", false},
		{"exposure", `"activate"`, true}} {
		var all map[string]any
		if err := json.Unmarshal(normal, &all); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(more.value), &v); err != nil {
			t.Fatal(err)
		}
		all[more.key] = v
		if err := schema.Validate(all); (err == nil) != more.ok {
			t.Errorf("%s: %v", more.key, err)
		}
	}
}

// An opaque policy chooses, and does not say by what.
type opaque struct{ latePolicy }

type latePolicy interface {
	linear.Contextual
	play.ContextualPolicy
}

// What was learnt can be kept of a policy that has an estimate, and of no other.
func TestKeepPolicyNeedsModel(t *testing.T) {
	entry, err := catalog.Catalog{}.Find(catalog.BanditContextual, "adac-oful")
	if err != nil {
		t.Fatal(err)
	}
	made := entry.NewContextual
	entry.Name = "mine"
	entry.NewContextual = func(s catalog.ContextualSetting, p catalog.Params) (linear.Contextual, error) {
		q, err := made(s, p)
		if err != nil {
			return nil, err
		}
		return opaque{q.(latePolicy)}, nil
	}
	known, err := catalog.Catalog{}.With(entry)
	if err != nil {
		t.Fatal(err)
	}
	for policy, ok := range map[string]bool{"adac-oful": true, "mine": false} {
		x, err := Reader{Catalog: known}.Parse("front", []byte(strings.Replace(liveFront, "adac-oful", policy, 1)+"stop: {keep: policy}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err = x.Check(); ok != (err == nil) || !ok && !strings.Contains(err.Error(), "stop.keep: is policy, and mine has no model") {
			t.Errorf("%s: %v", policy, err)
		}
		x.Stop.Keep = ""
		if err := x.Check(); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
