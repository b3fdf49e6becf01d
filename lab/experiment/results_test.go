package experiment_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
)

func rows(t *testing.T, dir string) []experiment.Row {
	t.Helper()
	r, err := parquet.ReadFile[experiment.Row](filepath.Join(dir, "results.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// summary is the lines of summary.csv, without the numbers of the budget: those are what the
// budget's text says, in its digits.
func summary(t *testing.T, dir string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "summary.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines[0], ","); got != "experiment,instance,policy,budget,"+
		"epsilon,rho,delta,alpha,metric,t,runs,mean,se,sd,q05,q50,q95,cvar95" {
		t.Fatalf("header %s", got)
	}
	columns := slices.Clone(lines[0][4:8])
	for i, line := range lines {
		var parts []string
		for k, name := range columns {
			if x := line[4+k]; x != "" {
				parts = append(parts, name+"="+x)
			}
		}
		want := strings.Split(strings.TrimPrefix(line[3], "none"), ",")
		if want[0] == "" {
			want = nil
		}
		slices.Sort(parts)
		if slices.Sort(want); i > 0 && !slices.Equal(parts, want) {
			t.Fatalf("budget %s, and the numbers %q", line[3], parts)
		}
		lines[i] = slices.Delete(line, 4, 8)
	}
	return lines
}

// summary.csv says what the runs in results.parquet say, computed here in another way.
func TestSummaryFromParquet(t *testing.T) {
	dir := t.TempDir()
	res := play(t, small, experiment.Options{Out: dir})
	type key struct {
		instance, policy, budget, metric string
		t                                int64
	}
	values := map[key][]float64{}
	all := rows(t, dir)
	if want := 18 * 70 * 12; len(all) != want {
		t.Fatalf("%d rows, want %d", len(all), want)
	}
	for _, r := range all {
		values[key{r.Instance, r.Policy, r.Budget, "regret",
			r.T}] = append(values[key{r.Instance, r.Policy, r.Budget, "regret", r.T}], r.Regret)
		values[key{r.Instance, r.Policy, r.Budget, "plays_best",
			r.T}] = append(values[key{r.Instance, r.Policy, r.Budget, "plays_best", r.T}], r.PlaysBest)
		if r.PlaysBest < 0 || r.PlaysBest > float64(r.T) || r.Regret < 0 || r.Regret > float64(r.T) {
			t.Fatalf("impossible row %+v", r)
		}
	}
	lines := summary(t, dir)
	// TestPrice has those
	lines = slices.DeleteFunc(lines, func(line []string) bool {
		return line[4] == "difference" || line[4] == "price"
	})
	if len(lines)-1 != len(values) {
		t.Fatalf("%d lines for %d summaries", len(lines)-1, len(values))
	}
	for _, line := range lines[1:] {
		var n [8]float64
		var err error
		for i := range n {
			if n[i], err = strconv.ParseFloat(line[5+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		x := values[key{line[1], line[2], line[3], line[4], int64(n[0])}]
		if line[0] != "small" || int(n[1]) != 70 || len(x) != 70 {
			t.Fatalf("%v: %d runs", line, len(x))
		}
		sum, squares := 0.0, 0.0
		for _, v := range x {
			sum += v
		}
		mean := sum / 70
		for _, v := range x {
			squares += (v - mean) * (v - mean)
		}
		sd := math.Sqrt(squares / 69)
		slices.Sort(x)
		at := func(p float64) float64 { // type 7
			h := 69 * p
			i := int(h)
			return x[i] + (h-float64(i))*(x[min(i+1, 69)]-x[i])
		}
		for i, want := range []float64{mean, sd / math.Sqrt(70), sd, at(.05), at(.5), at(.95)} {
			if math.Abs(n[2+i]-want) > 1e-9*(1+math.Abs(want)) {
				t.Errorf("%v: column %d is %v, want %v", line[:6], 7+i, n[2+i], want)
			}
		}
	}

	// Load finds the same.
	back, err := experiment.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range back.Cells {
		if !slices.Equal(c.Regret.Mean, res.Cells[i].Regret.Mean) ||
			!slices.Equal(c.FinalRegret, res.Cells[i].FinalRegret) ||
			!slices.Equal(c.PlaysBest.Q95, res.Cells[i].PlaysBest.Q95) || c.Loss != res.Cells[i].Loss {
			t.Errorf("%s was loaded differently", c.Label())
		}
	}
}

// runsOf is the rows by cell and run, without the experiment's name.
func runsOf(t *testing.T, dir string) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	for _, r := range rows(t, dir) {
		k := fmt.Sprintf("%s|%s|%s|%d", r.Instance, r.Policy, r.Budget, r.Run)
		out[k] = append(out[k], r.Regret, r.PlaysBest)
	}
	return out
}

// A run depends on its world, its policy and its number alone: not on what else is in the
// experiment, nor on what things are called.
func TestRunsDoNotDependOnTheExperiment(t *testing.T) {
	base := t.TempDir()
	play(t, small, experiment.Options{Out: base})
	want := runsOf(t, base)
	for name, edit := range map[string]*strings.Replacer{
		"renamed experiment": strings.NewReplacer("name: small", "name: other\ndescription: text"),
		"more runs":          strings.NewReplacer("runs: 70", "runs: 90"),
		"fewer runs":         strings.NewReplacer("runs: 70", "runs: 10"),
		"more policies":      strings.NewReplacer("policies:", "policies:\n  - kl-ucb\n  - adap-klucb"),
		"more budgets":       strings.NewReplacer("budgets: [", "budgets: [{epsilon: 3}, "),
		"other order": strings.NewReplacer("  - {policy: adap-ucb}\n", "", "  - {policy: ucb}\n",
			"  - {policy: ucb}\n  - {policy: adap-ucb}\n",
			"{epsilon: 1}, {rho: 0.1}", "{rho: 0.1}, {epsilon: 1}"),
		"defaults written out": strings.NewReplacer("{policy: adap-ucb}",
			"{policy: adap-ucb, alpha: 3.1, printed_half: false}", "[0.9,", "[0.90,"),
		"more instances": strings.NewReplacer("instances:", "instances:\n  - {name: third, "+
			"bernoulli: [0.2, 0.1]}"),
	} {
		dir := t.TempDir()
		play(t, edit.Replace(small), experiment.Options{Out: dir})
		got := runsOf(t, dir)
		common := 0
		for k, x := range got {
			if y, ok := want[k]; ok {
				common++
				if !slices.Equal(x, y) {
					t.Errorf("%s: %s changed", name, k)
					break
				}
			}
		}
		if common < 18*10 {
			t.Errorf("%s: only %d runs in common", name, common)
		}
	}
	// Fewer checkpoints: the last one stays the same.
	dir := t.TempDir()
	play(t, strings.Replace(small, "checkpoints: 12", "checkpoints: [5, 3000]", 1),
		experiment.Options{Out: dir})
	for k, x := range runsOf(t, dir) {
		if y := want[k]; x[2] != y[len(y)-2] {
			t.Errorf("other checkpoints: %s changed", k)
			break
		}
	}
	// And what does decide a run changes it.
	for name, edit := range map[string][2]string{
		"seed": {"seed: 7", "seed: 8"}, "range": {"seed: 7", "seed: 7\nrange: [-1, 1]"},
		"alpha": {"{policy: adap-ucb}", "{policy: adap-ucb, alpha: 3.2}"},
	} {
		dir := t.TempDir()
		play(t, strings.Replace(small, edit[0], edit[1], 1), experiment.Options{Out: dir})
		got, equal := runsOf(t, dir), 0
		for run := range 70 {
			if k := fmt.Sprintf("redrawn|adap-ucb|rho=0.1|%d", run); slices.Equal(got[k], want[k]) {
				equal++
			}
		}
		if equal > 7 {
			t.Errorf("%s: %d of 70 runs stayed the same", name, equal)
		}
	}
}

// Policies meet the same worlds: after each arm has been played once, everybody's regret is that of
// the run's own means. And the worlds of runs differ.
func TestWorldsAreShared(t *testing.T) {
	dir := t.TempDir()
	play(t, strings.Replace(small, "checkpoints: 12", "checkpoints: [3, 3000]", 1),
		experiment.Options{Out: dir})
	first := map[int64]float64{}
	distinct := map[float64]bool{}
	for _, r := range rows(t, dir) {
		if r.Instance != "redrawn" || r.T != 3 || r.Policy == "dp-se" {
			continue // DP-SE's first epoch is longer than the arms
		}
		if x, ok := first[r.Run]; ok && x != r.Regret {
			t.Errorf("run %d: %s at %s has regret %v after three rounds, others %v", r.Run,
				r.Policy, r.Budget, r.Regret, x)
		}
		first[r.Run] = r.Regret
		distinct[r.Regret] = true
	}
	if len(distinct) != 70 {
		t.Errorf("%d different worlds in 70 runs", len(distinct))
	}
}

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	play(t, small, experiment.Options{Out: dir})
	m, err := experiment.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Finished.IsZero() || m.Started.IsZero() || m.Seed != 7 || m.Build.Go == "" ||
		m.Build.GOARCH == "" || m.Shard != nil {
		t.Errorf("%+v", m)
	}
	for _, c := range m.Cells {
		want := c.Budget
		if c.Policy != "adac-ucb" && c.Budget == "rho=0.1" {
			want = "epsilon=0.44721359" // a pure policy: √(2ρ)
		}
		if !strings.HasPrefix(c.Loss, want) && !(c.Policy == "adac-ucb" &&
			strings.HasPrefix(c.Loss, "rho=0.0999")) && c.Loss != "nothing" {
			t.Errorf("%s: loss %s", c.Label(), c.Loss)
		}
	}
	// The manifest's spec is the experiment.
	again, err := experiment.Reader{}.Parse("manifest.json", m.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := again.Resolve()
	if err != nil || p.Hash != m.SpecHash {
		t.Errorf("%v: hash %s, want %s", err, p.Hash, m.SpecHash)
	}
}

func TestOutputDirectories(t *testing.T) {
	ctx := context.Background()
	tiny := strings.NewReplacer("runs: 70", "runs: 2", "horizon: 3000", "horizon: 50").Replace(small)
	try := func(text string, o experiment.Options) error {
		_, err := experiment.Run(ctx, parse(t, text), o)
		return err
	}
	done := t.TempDir()
	if err := try(tiny, experiment.Options{Out: done}); err != nil {
		t.Fatal(err)
	}
	before := files(t, done)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(full, "thesis.tex")
	for _, c := range []struct {
		name, text string
		o          experiment.Options
		want       string
	}{
		{"nothing given", tiny, experiment.Options{}, "none is given"},
		{"finished", tiny, experiment.Options{Out: done}, "use --resume"},
		{"another experiment", strings.Replace(tiny, "small", "large", 1),
			experiment.Options{Out: done}, `another experiment, "small"`},
		{"another experiment, resumed", strings.Replace(tiny, "small", "large", 1),
			experiment.Options{Out: done, Resume: true}, `another experiment, "small"`},
		{"changed", strings.Replace(tiny, "seed: 7", "seed: 8", 1),
			experiment.Options{Out: done, Resume: true}, "of the same name"},
		{"a shard of it", tiny, experiment.Options{Out: done, ShardI: 0, ShardN: 2, Resume: true},
			"it holds all of this experiment, not shard 0/2"},
		{"somebody's files", tiny, experiment.Options{Out: full}, "not empty"},
		{"somebody's files, resumed", tiny, experiment.Options{Out: full, Resume: true}, "not empty"},
		{"a file", tiny, experiment.Options{Out: file}, "not a directory"},
		{"below a file", tiny, experiment.Options{Out: filepath.Join(file, "x")}, "not a directory"},
		{"shard 3/3", tiny, experiment.Options{Out: t.TempDir(), ShardI: 3, ShardN: 3}, "from 0 to N-1"},
		{"shard -1/3", tiny, experiment.Options{Out: t.TempDir(), ShardI: -1, ShardN: 3}, "from 0 to N-1"},
		{"workers", tiny, experiment.Options{Out: t.TempDir(), Workers: -1}, "workers is -1"},
	} {
		if err := try(c.text, c.o); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	same(t, "after refusals", before, files(t, done))
	// Finished and resumed: outputs are written again, the same.
	if err := os.Remove(filepath.Join(done, "summary.csv")); err != nil {
		t.Fatal(err)
	}
	if err := try(tiny, experiment.Options{Out: done, Resume: true}); err != nil {
		t.Fatal(err)
	}
	same(t, "resumed when finished", before, files(t, done))
	// A unit is gone.
	units, err := filepath.Glob(filepath.Join(done, "units", "*.unit"))
	if err != nil || os.Remove(units[0]) != nil {
		t.Fatal(err)
	}
	if _, err := experiment.Load(done); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "is missing") {
		t.Errorf("a unit is missing: %v", err)
	}
	if _, err := experiment.Load(full); !errors.Is(err, experiment.ErrOutput) {
		t.Errorf("no results: %v", err)
	}
}

func TestMergeRefuses(t *testing.T) {
	ctx := context.Background()
	tiny := strings.NewReplacer("runs: 70", "runs: 2", "horizon: 3000", "horizon: 50").Replace(small)
	var dirs []string
	for i := range 2 {
		dirs = append(dirs, t.TempDir())
		play(t, tiny, experiment.Options{Out: dirs[i], ShardI: i, ShardN: 2})
	}
	other := t.TempDir()
	play(t, strings.Replace(tiny, "seed: 7", "seed: 8", 1),
		experiment.Options{Out: other, ShardI: 1, ShardN: 2})
	out := filepath.Join(t.TempDir(), "out")
	refuse := func(name string, dirs []string, want string) {
		t.Helper()
		if _, err := experiment.Merge(ctx, dirs, out, false); !errors.Is(err,
			experiment.ErrShards) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: wrote something", name)
		}
	}
	refuse("nothing", nil, "none is given")
	refuse("half", dirs[:1], "9 of 18 units are missing; not given: shard 1/2; the first: fixed "+
		"/ adap-ucb / rho=0.1, runs 0 to 1")
	refuse("another experiment", []string{dirs[0], other}, "specifications differ")
	// Another build.
	path := filepath.Join(dirs[1], "manifest.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(b), `"goarch": "`, `"goarch": "not-`, 1)
	if err := os.WriteFile(path, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	refuse("another build", dirs, "--mixed")
	if _, err := experiment.Merge(ctx, dirs, out, true); err != nil {
		t.Errorf("mixed: %v", err)
	}
	if m, err := experiment.ReadManifest(out); err != nil || !m.Mixed {
		t.Errorf("a mixture is not marked: %v", err)
	}
}

// Ctrl-C in a unit that would take hours stops at once, and leaves no unit.
func TestStopInsideAUnit(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	long := strings.NewReplacer("horizon: 3000", "horizon: 1e12", "{policy: adap-ucb}",
		"{policy: dp-ucb-anytime, counter: hybrid}").Replace(small)
	// As signal.NotifyContext does it: with a cause that is no context error.
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("interrupt signal received")) })
	_, err := experiment.Run(ctx, parse(t, long), experiment.Options{Out: dir, Workers: 2})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("%v", err)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("left %d files", len(got))
	}
}

func TestCompare(t *testing.T) {
	r := play(t, small, experiment.Options{Out: t.TempDir()})
	table, err := r.Compare()
	if err != nil {
		t.Fatal(err)
	}
	best := map[string]experiment.Comparison{}
	for _, c := range table {
		if c.Best {
			best[c.Group] = c
		}
	}
	for i, c := range table {
		b := best[c.Group]
		if c.Mean < b.Mean || math.Abs(c.Difference-(c.Mean-b.Mean)) > 1e-9*b.Mean ||
			math.Abs(c.Ratio-c.Mean/b.Mean) > 1e-12 {
			t.Errorf("%s: %+v beside %+v", c.Label(), c, b)
		}
		if c.Best != math.IsNaN(c.P) || c.Significant != (c.P <= 0.05) {
			t.Errorf("%s: p = %v, significant %t", c.Label(), c.P, c.Significant)
		}
		// A pair's p-value from another formula: t = mean/se of the differences; corrected, it
		// cannot be smaller than a single test's.
		if !c.Best && c.Significant && math.Abs(c.Difference) < c.DifferenceHalf {
			t.Errorf("%s: significant after correction, yet its own interval %v ± %v holds 0",
				c.Label(), c.Difference, c.DifferenceHalf)
		}
		if last := len(r.Manifest.Checkpoints) - 1; c.Mean != r.Cells[i].Regret.Mean[last] {
			t.Errorf("%s: mean %v, summary %v", c.Label(), c.Mean, r.Cells[i].Regret.Mean[last])
		}
	}

	// One run says nothing about significance, and still makes a table and a summary.
	dir := t.TempDir()
	r = play(t, strings.Replace(small, "runs: 70", "runs: 1", 1), experiment.Options{Out: dir})
	if table, err = r.Compare(); err != nil {
		t.Fatal(err)
	}
	for _, c := range table {
		if !math.IsInf(c.Half, 1) || !math.IsNaN(c.P) || c.Significant {
			t.Errorf("one run: %+v", c)
		}
	}
	if text := files(t, dir)["summary.csv"]; strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("summary.csv of one run has a NaN")
	}
}

// Every policy of the catalog runs at every kind of budget it can meet, and no ledger charges more
// than the budget: Run checks that.
func TestEveryPolicy(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: all\nhorizon: 3000\nruns: 2\ncheckpoints: 5\ninstances: [{name: two, " +
		"bernoulli: [0.9, 0.1]}, {name: tables, laws: [\"beta(2,3)\", 0.3]}]\n" +
		"budgets: [{epsilon: 2}, {rho: 0.5}, {epsilon: 1, delta: 1e-5}, {alpha: 8, epsilon: " +
		"0.5}, none]\npolicies:\n")
	n := 0
	for _, e := range catalog.Policies() {
		text.WriteString("  - " + e.Name + "\n")
		n++
		if e.Private {
			n += len(e.Budgets) // and none
		}
	}
	r := play(t, text.String(), experiment.Options{Out: t.TempDir()})
	if len(r.Cells) != 2*n {
		t.Errorf("%d cells, want %d", len(r.Cells), 2*n)
	}
	for _, c := range r.Cells {
		if last := c.FinalRegret[0]; !(last > 0 && last < 2400) {
			t.Errorf("%s: regret %v", c.Label(), last)
		}
		if c.Private == (c.Guarantee == "") {
			t.Errorf("%s: private %t, guarantee %q", c.Label(), c.Private, c.Guarantee)
		}
	}
}

// drift is a source that no file knows.
type drift struct{}

func (drift) Instance(s *noise.Fast) (bandit.Instance, error) {
	return bandit.BernoulliInstance(0.5, 0.5+0.5*s.Float64())
}
func (drift) Redrawn() bool  { return true }
func (drift) String() string { return "drift" }

// An instance from a program plays; its file form can be read, and says why it cannot be played.
func TestSourceFromAProgram(t *testing.T) {
	spec := &experiment.Spec{Name: "own", Horizon: 100, Runs: 3,
		Instances: []experiment.Instance{{Name: "drifting", Source: drift{}}},
		Policies:  []experiment.Policy{{Policy: "ucb"}}}
	dir := t.TempDir()
	if _, err := experiment.Run(context.Background(), spec, experiment.Options{Out: dir}); err != nil {
		t.Fatal(err)
	}
	r, err := experiment.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := experiment.Reader{}.Parse("manifest.json", r.Manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Resolve(); !errors.Is(err, keyed.ErrSpec) ||
		!strings.Contains(err.Error(), `comes from a program, "drift"`) {
		t.Errorf("%v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		play(b, small, experiment.Options{Out: b.TempDir()})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if _, err := parse(b, full[:strings.Index(full, "  - name: logged")]+
			full[strings.Index(full, "policies:"):]).Resolve(); err != nil {
			b.Fatal(err)
		}
	}
}

// The numbers of a budget are numbers in every row, and of a directory that was written before
// there were such columns: its units are enough.
func TestNumbersOfBudgets(t *testing.T) {
	const text = `name: numbers
horizon: 100
runs: 3
checkpoints: [100]
instances: [{name: two, bernoulli: [0.9, 0.1]}]
policies: [adap-ucb, adac-ucb]
budgets: [{epsilon: 0.5}, {rho: 0.25}, {epsilon: 1, delta: 1e-6}, {alpha: 8, epsilon: 0.125}, none]
`
	dir := t.TempDir()
	play(t, text, experiment.Options{Out: dir})
	summary(t, dir)
	seen := map[string]bool{}
	for _, r := range rows(t, dir) {
		got := fmt.Sprintf("%v;%v;%v;%v;", r.Epsilon, r.Rho, r.Delta, r.Alpha)
		want := map[string]string{"epsilon=0.5": "0.5;0;0;0;", "rho=0.25": "0;0.25;0;0;",
			"epsilon=1,delta=1e-06": "1;0;1e-06;0;", "alpha=8,epsilon=0.125": "0.125;0;0;8;",
			"none": "0;0;0;0;"}[r.Budget]
		if seen[r.Budget] = true; got != want {
			t.Errorf("budget %s: %s", r.Budget, got)
		}
	}
	if len(seen) != 5 {
		t.Errorf("budgets %v", seen)
	}

	now := files(t, dir)
	lines := strings.Split(now["summary.csv"], "\n")
	for i, line := range lines {
		if cells := strings.Split(line, ","); len(cells) == 17 && !strings.Contains(line, `"`) {
			lines[i] = strings.Join(slices.Delete(cells, 4, 8), ",")
		}
	}
	for name, old := range map[string]string{"summary.csv": strings.Join(lines, "\n"),
		"results.parquet": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := experiment.Load(dir); err != nil {
		t.Errorf("results without the columns: %v", err)
	}
	play(t, text, experiment.Options{Out: dir, Resume: true})
	same(t, "resumed", now, files(t, dir))

	path := filepath.Join(dir, "manifest.json")
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(manifest, []byte(`"budget": "rho=0.25"`),
		[]byte(`"budget": "rho=-0.25"`)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := experiment.Load(dir); !errors.Is(err, experiment.ErrOutput) ||
		!strings.Contains(err.Error(), "rho=-0.25: ") {
		t.Errorf("a manifest with a budget that is none: %v", err)
	}
}
