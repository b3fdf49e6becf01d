package paper

import (
	"github.com/sotto-dp/sotto/lab/experiment"
	"strings"
	"testing"
)

// stops is evidence of one instance at two budgets: stopping times of each policy that are about so
// many, and wrong answers.
func stops(wrong int, by map[string][2]float64) *Evidence {
	r := &experiment.Results{}
	for policy, means := range by {
		for i, budget := range []string{"epsilon=0.1", "epsilon=10"} {
			times := make([]float64, 1000)
			for j := range times {
				times[j] = means[i] * (1 + float64(j%7)/1000)
			}
			c := cellOf(policy, wrong, times)
			c.Budget, c.Identify.Risk = budget, 0.01
			r.Cells = append(r.Cells, c)
		}
	}
	return &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{"stopping": r}}
}

// What [Azize et al. 2023] claims of its program comes out each way.
func TestClaimsOf004ComeOutEachWay(t *testing.T) {
	all := func(high, low float64) map[string][2]float64 {
		m := map[string][2]float64{adaptt: {high, low}, adapttPlays: {high, low}, adapttProved: {high, low}}
		for _, name := range []string{dpse, dpseOf002, ttucb} {
			m[name] = [2]float64{100, 100}
		}
		return m
	}
	var bai Figure
	for _, f := range identification() {
		if f.ID == "bai-2" {
			bai = f
		}
	}
	for _, c := range []struct {
		claim     string
		high, low float64 // plays of AdaP-TT at ε = 0.1 and 10, where all others have 100
		wrong     int
		answer    Answer
		verdict   Verdict
	}{
		{"high-fewer", 50, 150, 0, Holds, Reproduces},
		{"high-fewer", 150, 150, 0, Fails, NotReproduced},
		{"fewer", 50, 150, 0, Holds, Reproduces}, // geometric mean 87
		{"fewer", 50, 250, 0, Fails, NotReproduced},
		{"low-similar", 50, 150, 0, Holds, Reproduces},
		{"low-similar", 50, 250, 0, Fails, NotReproduced},
		{"four-times", 50, 390, 0, Holds, Reproduces},
		{"four-times", 50, 410, 0, Fails, NotReproduced},
		{"regime-high", 200, 100, 0, Holds, Reproduces},
		{"regime-high", 50, 100, 0, Fails, NotReproduced},
		{"correct", 50, 100, 2, Holds, NotContradicted},
		{"correct", 50, 100, 40, Fails, NotReproduced},
		{"proved", 150, 150, 0, Holds, OurFinding},
		{"proved", 150, 50, 0, Fails, OurFinding},
		{"right-se", 150, 50, 0, Holds, OurFinding},
		{"right-se", 50, 50, 0, Fails, OurFinding},
	} {
		e := stops(c.wrong, all(c.high, c.low))
		claim := claimOf(t, bai, c.claim)
		f, v := decide(&claim, e)
		if f.Answer != c.answer || v != c.verdict {
			t.Errorf("%s at %v and %v plays, %d wrong: %s (%+v), want %s, %s", c.claim, c.high,
				c.low, c.wrong, v, f, c.answer, c.verdict)
		}
	}
}

// A claim that says several things holds if all do, and tells what came of each.
func TestClaimsOfAdaPTTStarComeOutEachWay(t *testing.T) {
	var fig Figure
	for _, f := range identification() {
		if f.ID == "thesis-5.7" {
			fig = f
		}
	}
	claim := claimOf(t, fig, "star")
	for _, c := range []struct {
		star   map[string]float64 // plays at each ε, where AdaP-TT has 100 and DP-SE 150
		answer Answer
	}{
		{map[string]float64{"0.05": 90, "0.5": 100, "1": 100, "10": 100}, Holds},
		{map[string]float64{"0.05": 190, "0.5": 100, "1": 100, "10": 100}, Fails}, // small ε
		{map[string]float64{"0.05": 90, "0.5": 50, "1": 50, "10": 50}, Fails},     // large ε
		{map[string]float64{"0.05": 90, "0.5": 145, "1": 100, "10": 100}, Fails},  // itself
	} {
		r := &experiment.Results{}
		for _, instance := range []string{"mu1", "mu2"} {
			for epsilon, plays := range c.star {
				for policy, mean := range map[string]float64{adapttStar: plays, adapttProved: 100,
					dpseOf002: 150} {
					times := make([]float64, 1000)
					for j := range times {
						times[j] = mean * (1 + float64(j%7)/1000)
					}
					x := cellOf(policy, 0, times)
					x.Instance, x.Budget = instance, "epsilon="+epsilon
					r.Cells = append(r.Cells, x)
				}
			}
		}
		f, v := decide(&claim, &Evidence{Preset: Full,
			Experiments: map[string]*experiment.Results{"stopping": r}})
		want := map[Answer]Verdict{Holds: Reproduces, Fails: NotReproduced}[c.answer]
		if f.Answer != c.answer || v != want {
			t.Errorf("%v: %s (%+v), want %s", c.star, v, f, c.answer)
		}
		for _, part := range []string{"over DP-SE: ", "over AdaP-TT at small ε: ",
			"over AdaP-TT at large ε: ", "over itself at ε = 10: "} {
			if !strings.Contains(f.Detail, part) {
				t.Errorf("%v: %q does not tell of %q", c.star, f.Detail, part)
			}
		}
	}
}

// No verdict hangs on where we draw the line of what a source calls the same.
func TestNearLeavesOpenWhatTheSourceDoes(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   Answer
	}{
		{0.92, 1.08, Holds}, {1.05, 1.15, Undecided}, {1.11, 1.26, Undecided}, {1.4, 1.6, Undecided},
		{1.58, 2.01, Fails}, {0.7, 0.8, Undecided}, {0.5, 0.6, Fails},
	} {
		if f := near(0.1, 0.5)((c.lo+c.hi)/2, c.lo, c.hi, 60, ""); f.Answer != c.want {
			t.Errorf("[%v, %v]: %s, want %s", c.lo, c.hi, f.Answer, c.want)
		}
	}
}

// A claim about a data set is not decided on the sample that stands for it.
func TestSamplesDecideNothing(t *testing.T) {
	holds := func(*Evidence) Finding { return exact(1, true, "one") }
	for sampled, want := range map[bool]Answer{false: Holds, true: Undecided} {
		f, err := onRealData("letor", holds).Of(&Evidence{Sampled: map[string]bool{"letor": sampled}})
		if err != nil || f.Answer != want {
			t.Errorf("sampled is %v: %+v, %v, want %s", sampled, f, err, want)
		}
	}
}
