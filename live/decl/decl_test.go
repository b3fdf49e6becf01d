package decl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

const liveShop = `name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c", n: [1, 2.5e3, null, true]}}, green]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 2}
reward: {range: [0, 10], default: 5}
window: 24h
floor: 0.05
start: 2026-01-31T09:00:00Z
`

// A live experiment is read from YAML and from its own normal form, with the same meaning.
func TestParse(t *testing.T) {
	l, err := Reader{}.Parse("shop.yaml", []byte(liveShop))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if l.Window != 24*time.Hour || l.Hi != 10 || l.Free || len(l.Arms) != 3 ||
		string(l.Arms[1].Value) != `{"hex":"#00c","n":[1,2.5e3,null,true]}` ||
		string(l.Arms[2].Value) != "null" {
		t.Errorf("%+v", l)
	}
	if b, err := l.EachAssignment(); err != nil || b != (privacy.Pure{Epsilon: 0.5}) {
		t.Errorf("each assignment has %v, %v", b, err)
	}
	text, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Reader{}.Parse("shop.json", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if other, err := again.JSON(); err != nil || string(other) != string(text) {
		t.Errorf("%s\n%s\n%v", text, other, err)
	}
}

// A first batch is proposed where one fills less than a window of the expected traffic.
func TestFirstBatch(t *testing.T) {
	for _, c := range []struct {
		old, new string
		want     FirstBatch
		ok       bool
	}{
		{"floor: 0.05", "", FirstBatch{}, false},
		{"floor: 0.05", "traffic: 3000", FirstBatch{"first", 32, 1000}, true},
		{"24h", "12h\ntraffic: 3000", FirstBatch{"first", 32, 500}, true},
		{"floor: 0.05", "traffic: 90", FirstBatch{"first", 32, 30}, false},
		{"dp-klucb}", "dp-klucb, first: 7}\ntraffic: 100", FirstBatch{"first", 7, 33}, true},
		{"dp-klucb}", "adap-klucb}\ntraffic: 3000", FirstBatch{}, false},
	} {
		l, err := Reader{}.Parse("shop.yaml", []byte(strings.Replace(liveShop, c.old, c.new, 1)))
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := l.FirstBatch(); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.new, got, ok, c.want, c.ok)
		}
	}
}

// Metrics are read with their prices, which a unit pays in addition.
func TestLiveMetrics(t *testing.T) {
	l, err := Reader{}.Parse("shop.yaml", []byte(strings.Replace(liveShop, "floor: 0.05",
		"metrics: [{name: basket, range: [0, 200], default: 5, budget: {epsilon: 0.5}}, "+
			"{name: visits, budget: {epsilon: 0.25}}]", 1)))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.PlayMetrics()
	if err != nil || len(all) != 2 || all[0].Mechanism != (privacy.Laplace{Scale: 4}) ||
		all[1].Mechanism != (privacy.Laplace{Scale: 8}) { // two assignments
		t.Errorf("%+v, %v", all, err)
	}
	if each, err := l.EachTotal(); l.Total() != (privacy.Pure{Epsilon: 1.75}) || err != nil ||
		each != (privacy.Pure{Epsilon: 0.875}) {
		t.Errorf("%v in all, %v each, %v", l.Total(), each, err)
	}
	if g, err := l.Guarantee(); err != nil || !strings.Contains(g, "at epsilon=1.75") {
		t.Error(g, err)
	}
	text, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Reader{}.Parse("shop.json", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if other, err := again.JSON(); err != nil || string(other) != string(text) {
		t.Errorf("%s\n%s\n%v", text, other, err)
	}
}

// How long a decision may be activated is said, or follows from the window.
func TestActivation(t *testing.T) {
	for add, want := range map[string]time.Duration{"": 0, "exposure: decide": 0, "exposure: activate": time.Hour,
		"exposure: activate\nactivate_within: 90s": 90 * time.Second,
		"exposure: activate\nwindow: 2m":           2 * time.Minute} {
		text := strings.Replace(liveShop, "floor: 0.05", add, 1)
		if strings.Contains(add, "window") {
			text = strings.Replace(text, "window: 24h\n", "", 1)
		}
		l, err := Reader{}.Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err != nil || l.Activation() != want {
			t.Errorf("%s: %v, want %v", add, err, want)
		}
	}
}

// What is wrong with a live experiment is one error that names the field.
func TestLiveErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"name: shop", "name: Shop", `name: is "Shop"`},
		{"name: shop", "nmae: shop", `unknown key "nmae" (did you mean "name"?)`},
		{"{name: red,", "{name: blue,", `arms[1].name: "blue" is the name of an arm before`},
		{"policy: dp-klucb", "policy: dp-klucbb",
			`policy.policy: policy "dp-klucbb" is unknown (did you mean "dp-klucb"?)`},
		{"policy: dp-klucb", "policy: kl-ucb", "policy: kl-ucb is not private"},
		{"policy: dp-klucb", "policy: dp-ucb", "horizon: is missing"},
		{"policy: dp-klucb", "policy: dp-ucb-anytime, counter: hybrid", "cannot be played live"},
		{"policy: dp-klucb", "policy: dp-klucb, alpha: 0.5", "alpha is 0.5, must be"},
		{"policy: dp-klucb", "policy: dp-klucb, name: ours", "policy: unknown key \"name\""},
		{"policy: dp-klucb", "policy: dp-klucb, trust: shuffle", `policy: unknown key "trust"`},
		{"{epsilon: 1}", "{epsilon: 0}", "policy: "},
		{"{epsilon: 1}", "{epsilon: .nan}", "policy: "},
		{"{epsilon: 1}", "none", "budget: is none"},
		{"{epsilon: 1}", "{epsilon: 1, delta: 1e-6}", "unit.assignments: is 2 with a budget of"},
		{"of: person, ", "", "unit.of: is missing"},
		{"assignments: 2", "assignments: 0", "unit.assignments: "},
		{"[0, 10]", "[0, .inf]", "reward.range: "},
		{"default: 5", "default: 11", "reward.default: is 11, must be a number from 0 to 10"},
		{"default: 5", "default: .nan", "reward.default: is NaN"},
		{"24h", "0s", "window: is 0s"},
		{"24h", "a day", `window: is "a day"`},
		{"24h", "9000h", "window: is 9000h0m0s"},
		{"floor: 0.05", "floor: 1", "floor: is 1, must be at least 0 and below 1"},
		{"floor: 0.05", "floor: .nan", "floor: is NaN"},
		{"floor: 0.05", "risk: 1", "policy: "},
		{"2026-01-31T09:00:00Z", "tomorrow", `start: is "tomorrow"`},
		{"floor: 0.05", "end: 2025-01-31T09:00:00Z", "end: is 2025-01-31T09:00:00Z, must be a time " +
			"after the start"},
		{"floor: 0.05", "exposure: later", `exposure: is "later", must be decide, retract, activate`},
		{"floor: 0.05", "metrics: [{name: x}]", "metrics[0].budget: is missing"},
		{"floor: 0.05", "metrics: [{name: x, budget: {rho: 1}}]", "metrics[0].budget: is rho=1, must be above 0"},
		{"floor: 0.05", "metrics: [{name: x, budget: {epsilon: 0}}]", "metrics[0].budget: is epsilon=0"},
		{"floor: 0.05", "metrics: [{name: x, budget: {epsilon: .inf}}]", "metrics[0].budget: is epsilon="},
		{"floor: 0.05", "metrics: [{name: x, budget: none}]", "metrics[0].budget: is none"},
		{"floor: 0.05", "metrics: [{name: x, budget: {epsilon: 1}, default: 2}]", "metrics[0].default: is 2"},
		{"floor: 0.05", "metrics: [{name: x, budget: {epsilon: 1}, range: [1, 0], default: 1}]", "metrics[0]."},
		{"floor: 0.05", "metrics: [{name: X, budget: {epsilon: 1}}]", `metrics[0].name: is "X"`},
		{"floor: 0.05", "metrics: [{name: x, budget: {epsilon: 1}}, {name: x, budget: {epsilon: 1}}]",
			`metrics[1].name: "x" is the name`},
		{"floor: 0.05", "traffic: 0", "traffic: is 0"},
		{"floor: 0.05", "traffic: -5", "traffic: is -5"},
		{"floor: 0.05", "traffic: .inf", "traffic: is"},
		{"floor: 0.05", "traffic: 1e13", "traffic: is 1e+13"},
		{"floor: 0.05", "missing: zero", `missing: is "zero", must be default, drop`},
		{"floor: 0.05", "reports: all", `reports: is "all", must be some, every`},
		{"floor: 0.05", "missing: drop", "missing: is drop: counts would tell whose rewards came"},
		{"floor: 0.05", "missing: drop\nreports: some", "missing: is drop: counts would tell"},
		{"dp-klucb}", "lazy-dp-ts}\nmissing: drop\nreports: every", "missing: play: *policy.LazyDPTS"},
		{"dp-klucb}", "lazy-dp-ts}\nexposure: retract", "exposure: play: *policy.LazyDPTS"},
		{"floor: 0.05", "activate_within: 1m", "activate_within: is given, and exposure is not activate"},
		{"floor: 0.05", "exposure: activate\nactivate_within: 0s", "activate_within: is 0s"},
		{"floor: 0.05", "exposure: activate\nactivate_within: 9000h", "activate_within: is 9000h0m0s"},
		{"floor: 0.05", "fallback: pink", `fallback: is "pink"`},
		{"floor: 0.05", "sticky: 1", "sticky: is the number 1"},
		{"floor: 0.05", "retention: 1", "retention: "},
		{"floor: 0.05", "retention: -1h", "retention: is -1h0m0s, must be from 1ms to 87840h0m0s"},
		{"floor: 0.05", "floor: 0.05\nstop: {keep: policy}", `stop.keep: is "policy", must be the name of an arm, or leader`},
		{"floor: 0.05", "webhook: ''", "webhook: is empty"},
		{"floor: 0.05", "webhook: shop.example", "webhook: must be an address"},
		{"floor: 0.05", "webhook: 'https://ann:pw@shop.example/'", "webhook: must be an address"},
		{"floor: 0.05", "webhook: 'https://'", "webhook: must be an address"},
		{"floor: 0.05", "webhook: 'http://shop.example/x'", `webhook: has the scheme "http", must be https`},
		{"floor: 0.05", "webhook: 'file://localhost/x'", `webhook: has the scheme "file"`},
		{"floor: 0.05", "share: 0", "share: is 0, must be above 0"},
		{"floor: 0.05", "share: 1.5", "share: is 1.5, must be above 0 and at most 1"},
		{"floor: 0.05", "share: .nan", "share: is NaN"},
		{"floor: 0.05", "only: NL", "only: "},
		{"floor: 0.05", "only: {country: []}", "only.country: has 0 values, must be from 1 to 1000"},
		{"floor: 0.05", "only: {country: [NL, [BE]]}", "only.country[1]: is no string, number or boolean"},
		{"floor: 0.05", "only: {country: null}", "only.country: is no string, number or boolean"},
		{"floor: 0.05", "only: {country: {a: b}}", "only.country: unknown key"},
		{"floor: 0.05", "layer: {name: checkout, from: 0.5, to: 0.5}", "layer.to: is 0.5, must be above from"},
		{"floor: 0.05", "layer: {name: checkout, from: 0, to: 1.5}", "layer.to: is 1.5"},
		{"floor: 0.05", "layer: {name: checkout, from: -1, to: 0.5}", "layer.from: is -1"},
		{"floor: 0.05", "layer: {name: checkout, from: .nan, to: 0.5}", "layer.from: is NaN"},
		{"floor: 0.05", "layer: {name: Checkout, from: 0, to: 0.5}", `layer.name: is "Checkout"`},
		{"floor: 0.05", "layer: {from: 0, to: 0.5}", `layer.name: is ""`},
		{"floor: 0.05", "sticky: false\nlayer: {name: a, from: 0, to: 0.5}", "layer: is of units"},
	} {
		text := strings.Replace(liveShop, c.old, c.new, 1)
		l, err := Reader{}.Parse("shop.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err == nil || !errors.Is(err, keyed.ErrSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.new, c.want, err)
		}
	}
	l := &Experiment{}
	if err := l.Check(); err == nil || err.Error() != "name: is missing" {
		t.Errorf("of a program: %v", err)
	}
}

// Whom an experiment is for has a normal form, and contexts are compared as text.
func TestAudience(t *testing.T) {
	l, err := Reader{}.Parse("shop.yaml", []byte(liveShop+`share: 0.1
only: {plan: [pro, 3, 2.50, true], country: NO}
layer: {name: checkout, from: 0, to: 0.5}
`))
	if err != nil || l.Check() != nil {
		t.Fatal(err, l.Check())
	}
	text, err := l.JSON()
	if want := `"share":0.1,"only":{"country":["NO"],"plan":["pro","3","2.5","true"]},` +
		`"layer":{"name":"checkout","from":0,"to":0.5}}`; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
	again, err := Reader{}.Parse("shop.json", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		context map[string]any
		want    bool
	}{
		{nil, false}, {map[string]any{"country": "NO"}, false},
		{map[string]any{"country": "NO", "plan": "pro", "more": "x"}, true},
		{map[string]any{"country": "NO", "plan": 3.}, true}, {map[string]any{"country": "NO", "plan": 2.5}, true},
		{map[string]any{"country": "NO", "plan": true}, true}, {map[string]any{"country": "NO", "plan": "x"}, false},
		{map[string]any{"country": "no", "plan": "pro"}, false},
		{map[string]any{"country": []any{"NO"}, "plan": "pro"}, false},
	} {
		if got := again.For(c.context); got != c.want {
			t.Errorf("%v: %v", c.context, got)
		}
	}
	if !(&Experiment{}).For(nil) {
		t.Error("an experiment for all is not")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(liveShop))
	f.Add([]byte(liveShop + "share: 0.1\nonly: {a: [b, 1]}\nlayer: {name: c, from: 0, to: 1}\n"))
	f.Add([]byte(liveFront))
	f.Add([]byte(twoServers + "grid: 1\nreport_after: 1h\n"))
	f.Add([]byte(gatheredShop + "trust: secagg\ncohort: {users: 20}\n"))
	f.Add([]byte(`{"name":"a","arms":["b","c"],"policy":"dp-se","risk":0.1,"budget":{"epsilon":1},"unit":{"of":"visit"},"window":"1s"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Reader{}.Parse("f", data)
		if err != nil || l.Check() != nil {
			return
		}
		text, err := l.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Reader{}).Parse("f", text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// Every live example can be played.
func TestLiveExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/live/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l, err := (Reader{}).Parse(file, text)
		if err == nil {
			err = l.Check()
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// On what intervals rest is said of what a declaration can make them rest on.
func TestIntervalCondition(t *testing.T) {
	for want, l := range map[string]Experiment{
		"":                               {Exposure: ExposeActivate, Missing: MissingDefault},
		" is retracted does not":         {Exposure: ExposeRetract},
		" is reported does not":          {Missing: MissingDrop},
		" is retracted or reported does": {Exposure: ExposeRetract, Missing: MissingDrop},
		" is activated does not go by its arm or its reward.": {Policy: Policy{Policy: SplitPolicy},
			Exposure: ExposeActivate},
		" is retracted does not go by its arm or": {Policy: Policy{Policy: SplitPolicy}, Exposure: ExposeRetract},
	} {
		if got := l.IntervalCondition(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A large ε says what it allows, wherever the guarantee is said, and warns.
func TestLargeEpsilon(t *testing.T) {
	for epsilon, factor := range map[float64]string{1: "", 8: "", 8.5: "e^8.5, about 4.9e+03", 20: "e^20, about 4.9e+08",
		100: "e^100, about 2.7e+43", 1000: "e^1000, about 1e+434"} {
		l := Experiment{Name: "shop", Budget: privacy.Pure{Epsilon: epsilon}, Unit: Unit{Of: "person"}}
		guarantee, err := l.Guarantee()
		warned := strings.Join(l.Warnings(), "")
		switch {
		case err != nil:
			t.Fatal(err)
		case factor == "" && (warned != "" || strings.Contains(guarantee, "odds")):
			t.Errorf("%v: %s, %s", epsilon, guarantee, warned)
		case !strings.Contains(guarantee, factor) || !strings.Contains(warned, factor):
			t.Errorf("%v: %s, %s, must say %s", epsilon, guarantee, warned, factor)
		}
	}
}
