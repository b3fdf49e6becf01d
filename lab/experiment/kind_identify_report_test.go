package experiment_test

import (
	"bytes"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/experiment"
	"math"
	"strings"
	"testing"
)

const identifySpec = `{"name":"id","kind":"identify","risk":0.01,"cap":1000,"runs":400,"seed":3,"range":[0,1],` +
	`"instances":[{"name":"two","bernoulli":[0.9,0.1]}],"policies":[{"policy":"adap-tt"},{"policy":"ttucb"}],"budgets":[{"epsilon":1},{"epsilon":0.1},{"epsilon":0.5}]}`

// identified is results of a rule at some budgets and of one without privacy, with so many wrong
// answers and capped runs.
func identified(wrong, capped int, budgets ...string) *experiment.Results {
	const runs = 400
	m := &experiment.Manifest{Name: "id", Kind: experiment.KindIdentify, Spec: []byte(identifySpec),
		Horizon: 1000, Runs: runs, Seed: 3, Checkpoints: []int{1000}}
	r := &experiment.Results{Manifest: m}
	add := func(policy, budget, correct string, time, bound float64, wrong, capped int) {
		c := experiment.CellResult{CellInfo: experiment.CellInfo{Instance: "two", Policy: policy,
			Catalog: policy, Budget: budget, Arms: 2, Private: budget != "none"},
			Failures: wrong, Unfinished: capped}
		c.Identify = &experiment.IdentifyCell{Risk: 0.01, Best: []int{1}, Correct: correct,
			Time: bound / 3.5, KLTime: 4, TVTime: 2, LowerBound: bound, Boundary: 0.5}
		if policy == "adap-tt" {
			c.Identify.AsymptoticUpper = 10 * bound
		}
		for i := range runs {
			x, off := time, 0.0
			switch {
			case i < wrong:
				off = 1
			case i < wrong+capped:
				x, off = 1000, math.NaN()
			}
			c.FinalStoppingTime, c.FinalError = append(c.FinalStoppingTime, x), append(c.FinalError, off)
		}
		mean := (time*float64(runs-capped) + 1000*float64(capped)) / runs
		curve := func(x float64) experiment.Curve {
			return experiment.Curve{Mean: []float64{x}, SE: []float64{1}, SD: []float64{20},
				Q05: []float64{x}, Q50: []float64{x}, Q95: []float64{x}}
		}
		c.StoppingTime, c.Batches, c.Plays = curve(mean), curve(7.5),
			[]experiment.Curve{curve(mean / 4), curve(3 * mean / 4)}
		r.Cells = append(r.Cells, c)
		m.Cells = append(m.Cells, c.CellInfo)
	}
	for i, b := range budgets {
		add("adap-tt", b, "[Azize 2024, Lemma 5.18]", float64(100*(i+1)), 50, wrong, capped)
	}
	add("ttucb", "none", "", 60, 40, 0, 0)
	return r
}

// A report is headed by what its rules look for.
func TestIdentifyReportSaysTheGoal(t *testing.T) {
	for want, goals := range map[string][]catalog.Goal{"Plays until the best arm is named": {"", ""},
		"Plays until the top k arms are named": {catalog.GoalTop, catalog.GoalTop}, "Plays until each rule has its answer": {"", catalog.GoalTop},
		"Plays until the arms above the threshold are named": {catalog.GoalThreshold, catalog.GoalThreshold}} {
		r := identified(0, 0, "epsilon=1")
		for i := range r.Cells {
			r.Cells[i].Identify.Goal = goals[min(i, 1)]
		}
		out, err := r.Report()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := out.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, want) || goals[0] != "" && strings.Contains(got, "best arm") {
			t.Errorf("no %q in %s", want, got)
		}
	}
	p, err := parse(t, "name: goals\nkind: identify\nruns: 2\nrisk: 0.1\ncap: 1000\ninstances: [{name: two, bernoulli: [0.9, 0.1, 0.5]}]\n"+
		"policies: [{policy: dp-race, goal: top, k: 2}, {policy: dp-race, name: over, goal: threshold}, {policy: dp-race, name: one}]\n"+
		"budgets: [{epsilon: 1}]\n").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []catalog.Goal{catalog.GoalTop, catalog.GoalThreshold, ""} {
		if got := p.Manifest().Cells[i].Identify.Goal; got != want {
			t.Errorf("cell %d looks for %q, must be %q", i, got, want)
		}
	}
}

func TestIdentifyReport(t *testing.T) {
	for _, c := range []struct {
		wrong, capped int
		budgets       []string
		want, never   []string
		figures       int
	}{
		{0, 0, []string{"epsilon=1"}, []string{"two, best arm 1 of 2, T*_KL 4, T*_TV 2, regimes " +
			"meet at ε = 0.5", "0 of 400", "[0, 0.0092]", "at most δ", "lower bound", "×LB",
			"upper, δ→0", "δ-correct, as proved: adap-tt ([Azize 2024, Lemma 5.18])",
			"no proof that it is δ-correct: ttucb", "0.250  0.750", "7.5"},
			[]string{"above δ", "the share of runs that reached"}, 0},
		{20, 40, []string{"epsilon=1"}, []string{"20 of 400", "above δ", "0.1",
			"capped: the share of runs that reached the cap", "nothing of what they would have " +
				"answered"}, nil, 0},
		{2, 0, []string{"epsilon=1", "epsilon=0.1"}, []string{"undecided"}, nil, 0},
		{0, 400, []string{"epsilon=1"}, []string{"no answer"}, nil, 0},
		{0, 4, []string{"epsilon=1", "epsilon=0.1", "epsilon=0.5"}, nil, nil, 2},
	} {
		out, err := identified(c.wrong, c.capped, c.budgets...).Report()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := out.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in\n%s", want, b.String())
			}
		}
		for _, never := range c.never {
			if strings.Contains(b.String(), never) {
				t.Errorf("%q is in\n%s", never, b.String())
			}
		}
		if len(out.Figures) != c.figures {
			t.Fatalf("%d figures, want %d", len(out.Figures), c.figures)
		}
		// medians have the band of the runs, and no lower bound, which is of means
		if c.figures == 2 {
			f := out.Figures[1]
			if len(f.Series) != 2 || len(f.Marks) != 1 || f.Series[0].Mean[0] != 208 ||
				f.Series[0].Lo[0] != 208 || f.ID != "median-stopping-time-two" ||
				!strings.Contains(f.Note, "medians of 400 runs") ||
				!strings.Contains(f.Note, "ended at the cap") || f.Series[1].Label != "ttucb, no privacy" {
				t.Errorf("%+v", f)
			}
			out.Figures = out.Figures[:1]
		}
		for _, f := range out.Figures {
			if len(f.Series) != 3 || len(f.Marks) != 1 || f.Marks[0].X != 0.5 || !f.LogX || !f.LogY {
				t.Fatalf("%+v", f)
			}
			rule, open, bound := f.Series[0], f.Series[1], f.Series[2]
			for i, x := range []float64{0.1, 0.5, 1} { // by ε, whatever the order of the file
				if rule.X[i] != x || bound.X[i] != x || bound.Mean[i] != 50 {
					t.Errorf("%+v, %+v", rule, bound)
				}
			}
			if rule.Mean[0] != 208 || rule.Mean[2] != 109 || len(open.X) != 2 || open.X[0] != 0.1 ||
				open.X[1] != 1 || open.Mean[0] != 60 || len(bound.Lo) != 0 {
				t.Errorf("%+v, %+v, %+v", rule, open, bound)
			}
			for _, want := range []string{"T*(ν;ε)", "min(τ, cap)", "T*_TV/T*_KL = 0.5"} {
				if !strings.Contains(f.Note, want) {
					t.Errorf("%q is not in %q", want, f.Note)
				}
			}
			var svg bytes.Buffer
			if err := f.WriteSVG(&svg); err != nil {
				t.Fatal(err)
			}
			if strings.Count(svg.String(), `class="mark"`) != 1 ||
				!strings.Contains(svg.String(), "A vertical line at 0.5") {
				t.Error("the mark is not drawn, or not described")
			}
			f.Marks[0].X = 1.5 // outside
			svg.Reset()
			if err := f.WriteSVG(&svg); err != nil ||
				strings.Contains(svg.String(), `class="mark"`) || strings.Contains(svg.String(), "vertical") {
				t.Errorf("a mark outside is drawn, %v", err)
			}
		}
		b.Reset()
		if err := out.WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
	}
}
