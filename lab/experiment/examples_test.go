package experiment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// pythonExample needs a program, which package lab/process starts: its tests play it.
const pythonExample = "../../examples/python.yaml"

// examples are the experiments that come with the project and need nothing else.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == pythonExample })
}

// Every example is valid as it stands, and runs when it is made small: the runs are what they were,
// to the last bit. Logarithms are the architecture's, so that is held on one.
func TestExamples(t *testing.T) {
	testkit.RacedBefore(t)
	var played strings.Builder
	for _, file := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			spec := shortened(t, file)
			dir := t.TempDir()
			r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: dir})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&played, "%s: %s", filepath.Base(file), unitsOf(t, dir))
			for _, c := range r.Cells {
				if c.Stopping != nil {
					if mean := c.Samples.Mean[0]; !(mean > 100 && mean < 1e7) || c.Unfinished > 0 {
						t.Errorf("%s: %v samples, %d runs unfinished", c.Label(), mean, c.Unfinished)
					}
					continue
				}
				if c.Identify != nil {
					if mean := c.StoppingTime.Mean[0]; !(mean > 30 && mean <= 100_000) ||
						c.Identify.LowerBound == 0 || c.Unfinished < 3 && c.Failures == 3 {
						t.Errorf("%s: stopping time %v, %d capped, %d wrong", c.Label(), mean,
							c.Unfinished, c.Failures)
					}
					continue
				}
				// Means are in [−1,1] where actions have features, apart from unclipped contexts
				// of norm above 1.
				most := map[string]float64{experiment.KindRegret: 2000, experiment.KindLinear: 4000,
					experiment.KindContextual: 8000}[spec.Kind]
				if last := c.Regret.Mean[len(c.Regret.Mean)-1]; !(last > 0 && last < most) {
					t.Errorf("%s: regret %v", c.Label(), last)
				}
			}
		})
	}
	if runtime.GOARCH == "amd64" {
		golden(t, "runs.txt", played.String())
	}
}

// The quickstart, which docs/experiments.md shows, plays what it says.
func TestQuickstart(t *testing.T) {
	const file = "../../examples/quickstart.yaml"
	spec, err := experiment.Reader{}.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	want := "mu2 / dp-imed / epsilon=1\nmu2 / imed / none\nmu2 / kl-ucb / none\nmu2 / dp-ts / epsilon=1\n" +
		"mu2 / adap-klucb / epsilon=1\nmu2 / dp-se / epsilon=1\nmu2 / dp-ucb / epsilon=1\n"
	got := ""
	for _, c := range p.Cells {
		got += c.Label() + "\n"
	}
	if got != want || len(p.Warnings) != 0 {
		t.Errorf("cells:\n%swarnings: %q", got, p.Warnings)
	}
	if n := len(p.Checkpoints); n < 150 || n > 200 || p.Checkpoints[n-1] != 10_000_000 {
		t.Errorf("%d checkpoints, the last at %d", n, p.Checkpoints[n-1])
	}
}

// examples/rewards.csv is what this test writes: four versions of a page, 800 ratings each, from 0
// to 1 in quarters.
func TestRewardsCSV(t *testing.T) {
	versions := []struct {
		name   string
		weight [5]int // of the ratings 0, 0.25, …, 1, in per cent
	}{
		{"control", [5]int{15, 20, 30, 20, 15}},
		{"short", [5]int{12, 18, 30, 22, 18}},
		{"pictures", [5]int{8, 14, 26, 27, 25}},
		{"video", [5]int{25, 15, 15, 20, 25}},
	}
	r := rand.New(rand.NewPCG(1993, 4))
	var b strings.Builder
	b.WriteString("arm,reward\n")
	for range 800 {
		for _, v := range versions {
			x, rating := r.IntN(100), 0
			for x >= v.weight[rating] {
				x -= v.weight[rating]
				rating++
			}
			fmt.Fprintf(&b, "%s,%v\n", v.name, float64(rating)/4)
		}
	}
	const path = "../../examples/rewards.csv"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("examples/rewards.csv is not what this test writes")
	}
}

// examples/visits.csv is what this test writes, and has what everyday logs have: 2400 visitors of
// three versions of a form who come up to three times, sorted by whether they sent it, some of them
// to another version; columns that nobody needs; and rewards that are missing.
func TestVisitsCSV(t *testing.T) {
	versions, rates := []string{"long", "short", "wizard"}, []float64{0.15, 0.25, 0.6}
	r := rand.New(rand.NewPCG(1993, 6))
	rows := map[string][]string{}
	for visitor := range 2400 {
		version := r.IntN(3)
		for day := range 1 + r.IntN(3) {
			if r.IntN(10) == 0 {
				version = r.IntN(3)
			}
			sent := "0"
			if r.Float64() < rates[version] {
				sent = "1"
			}
			if r.IntN(20) == 0 {
				sent = ""
			}
			rows[sent] = append(rows[sent], fmt.Sprintf("%d,v%04d,%s,%s\n", day+1, visitor,
				versions[version], sent))
		}
	}
	text := "day,visitor,version,sent\n" + strings.Join(rows["1"], "") +
		strings.Join(rows["0"], "") + strings.Join(rows[""], "")
	const path = "../../examples/visits.csv"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Error("examples/visits.csv is not what this test writes")
	}
}

// examples/contexts.csv is what this test writes: 300 rounds of four articles with three features
// in the unit ball, each with the reward that it would have had, in tenths from −1 to 1.
func TestContextsCSV(t *testing.T) {
	r := rand.New(rand.NewPCG(1993, 5))
	theta := []float64{0.6, -0.3, 0.5}
	var b strings.Builder
	b.WriteString("round,x1,x2,x3,reward\n")
	for round := range 300 {
		for range 4 {
			x := make([]float64, 3)
			for {
				norm := 0.0
				for j := range x {
					x[j] = math.Round(100*(2*r.Float64()-1)) / 100
					norm += x[j] * x[j]
				}
				if norm <= 1 {
					break
				}
			}
			reward := 0.3 * (2*r.Float64() - 1)
			for j := range x {
				reward += float64(theta[j] * x[j])
			}
			fmt.Fprintf(&b, "%d,%v,%v,%v,%v\n", round+1, x[0], x[1], x[2],
				min(max(math.Round(10*reward)/10, -1), 1)+0)
		}
	}
	const path = "../../examples/contexts.csv"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("examples/contexts.csv is not what this test writes")
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	b, err := experiment.Reader{}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("sotto.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sotto.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value is a YAML file as a validator of JSON sees it.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchema(t *testing.T) {
	s := schema(t)
	for _, file := range append(examples(t), pythonExample) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value(t, string(b))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	// YAML 1.2 reads numbers with underscores as text; this library 1e-6, too, which YAML does not.
	for _, text := range []string{good, strings.NewReplacer("c2", "C2", "1e-6",
		"0.000001").Replace(full), strings.Replace(good, "1000", `"10_000"`, 1)} {
		if err := s.Validate(value(t, text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	// The parameters that the catalog knows, at their defaults, and no others.
	for _, e := range catalog.All() {
		good, first := good, "{policy: adap-ucb"
		switch e.Bandit {
		case catalog.BanditLinear:
			good, first = goodLinear, "{policy: adac-gope"
		case catalog.BanditContextual:
			good, first = goodContextual, "{policy: adac-oful"
		case catalog.BanditIdentify:
			good, first = goodIdentify, "{policy: adap-tt"
		}
		p := "{policy: " + e.Name
		for _, q := range e.Params {
			if d := q.Text(q.Default); d != "NaN" {
				p += ", " + q.Name + ": " + d
			}
		}
		if err := s.Validate(value(t, strings.Replace(good, first, p, 1))); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		if s.Validate(value(t, strings.Replace(good, first, p+", gamma: 1", 1))) == nil {
			t.Errorf("%s: an unknown parameter passed", e.Name)
		}
	}
	// What the schema cannot see: it looks at form, one field at a time.
	beyond := []string{"horizon below arms", "two instances of one name", "same instance twice",
		"means reversed", "means beyond one", "no such csv",
		"empty csv", "one csv", "csv of one arm", "csv without the column",
		"csv with a missing reward", "csv has commas", "standard with one arm", "unknown law", "range reversed",
		"runs is too large", "horizon is too large", "gaussian without sd",
		"budget twice", "budgets missing", "budget that no policy meets", "same policy twice",
		"same policy under another name", "two labels alike",
		"checkpoint beyond the horizon", "checkpoints not increasing", "checkpoints end early",
		"too many checkpoints", "change too early", "changes out of order", "change to no law",
		// Not JSON, or not what this library makes of YAML.
		"no yaml", "second document", "duplicate key", "tab", "deep", "alias", "anchor", "tag",
		"merge key", "empty file", "comments only",
		"parameter is nan", "parameter is infinite", "horizon is nan", "horizon is infinite",
		"horizon is hexadecimal", "arm is nan", "budget is nan",
		"budget is infinite", "no instances", "precision is nan",
		// One key that another one decides about.
		"noise of another trust", "noise without trust", "trust of a tree",
		"intervals of confidence nan", "intervals of infinite confidence", "intervals of a tree",
		"intervals of a question", "intervals under trust", "intervals of late rewards",
		"intervals without clipping", "intervals of arms that change",
		"trust without clipping", "noise that is never pure", "protocol without secagg",
		"corrupt without bell2020", "corrupt beyond the promise", "own budget twice"}
	for _, c := range bad {
		if !strings.Contains("|"+strings.Join(beyond, "|")+"|", "|"+c.name+"|") &&
			s.Validate(value(t, strings.Replace(good, c.from, c.to, 1))) == nil {
			t.Errorf("%s: passed the schema", c.name)
		}
	}
}

// An experiment from a program: a spec, a run, and what it found.
func ExampleRun() {
	spec := &experiment.Spec{
		Name: "first", Horizon: 10_000, Runs: 10,
		Instances: []experiment.Instance{{Name: "easy", Bernoulli: []float64{0.9, 0.1}}},
		Policies:  []experiment.Policy{{Policy: "ucb"}, {Policy: "successive-elimination"}},
	}
	out, err := os.MkdirTemp("", "sotto")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(out)
	results, err := experiment.Run(context.Background(), spec, experiment.Options{Out: out})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range results.Cells {
		fmt.Println(c.Label(), len(c.FinalRegret), "runs")
	}
	// Output:
	// easy / ucb / none 10 runs
	// easy / successive-elimination / none 10 runs
}
