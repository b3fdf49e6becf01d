package paper

import (
	"testing"

	"github.com/sotto-dp/sotto/experiment"
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

// What 004 claims of its program comes out each way.
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
		{"fewer", 50, 150, 0, Fails, Overstated},
		{"fewer", 50, 50, 0, Holds, Reproduces},
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

// A claim about a data set is not decided on the sample that stands for it.
func TestSamplesDecideNothing(t *testing.T) {
	holds := func(*Evidence) (Finding, error) { return exact(1, true, "one"), nil }
	for sampled, want := range map[bool]Answer{false: Holds, true: Undecided} {
		f, err := onRealData("letor", holds)(&Evidence{Sampled: map[string]bool{"letor": sampled}})
		if err != nil || f.Answer != want {
			t.Errorf("sampled is %v: %+v, %v, want %s", sampled, f, err, want)
		}
	}
}
