package paper

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// A place is where a cell is: an instance, and the row, which is the experiment's budget that the
// cell is compared at.
type place struct{ instance, row string }

func (p place) String() string { return p.instance + ", " + p.row }

// cellAt is the cell of a policy at a place, also where the policy has budgets of its own, or none.
func cellAt(e *Evidence, name, policy string, p place) *experiment.CellResult {
	var without *experiment.CellResult
	r := need(e.Results(name))
	for i := range r.Cells {
		c := &r.Cells[i]
		switch {
		case c.Instance != p.instance || c.Policy != policy:
		case c.Row() == p.row:
			return c
		case c.Budget == "none":
			without = c
		}
	}
	if without == nil {
		return need(without, &NotPlayedError{Name: fmt.Sprintf("%s: %s / %s", name, p, policy),
			Preset: e.Preset})
	}
	return without
}

// placesOf are the places of an experiment that has a policy, in the order of its cells.
func placesOf(e *Evidence, name, policy string) []place {
	var out []place
	for _, c := range cellsOf(e, name, policy) {
		if p := (place{c.Instance, c.Row()}); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// unpaired is the ratio of the means of a and b of different runs, with its interval by
// linearisation and the degrees of freedom of Welch and Satterthwaite. For runs that share their
// worlds it is too wide if anything.
func unpaired(a, b []float64, cells int) (r, lo, hi float64) {
	ma, _, sa := stats.Mean(a)
	mb, _, sb := stats.Mean(b)
	r = ma / mb
	va, vb := sa*sa, float64(r*r*sb*sb)
	if va+vb == 0 { // every run has the same number: there is no spread to speak of
		return r, r, r
	}
	df := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	half := stats.T(1+max(1, int(df)), level(cells)) * math.Sqrt(va+vb) / math.Abs(mb)
	return r, r - half, r + half
}

// ratioOfRatios is (a/b)/(c/d) of means over the same runs, with its interval by linearisation.
func ratioOfRatios(a, b, c, d []float64, cells int) (r, lo, hi float64) {
	ma, _, _ := stats.Mean(a)
	mb, _, _ := stats.Mean(b)
	mc, _, _ := stats.Mean(c)
	md, _, _ := stats.Mean(d)
	r = ma / mb / (mc / md)
	x := make([]float64, len(a))
	for i := range a {
		x[i] = r * (a[i]/ma - b[i]/mb - c[i]/mc + d[i]/md)
	}
	_, half := stats.Half(x, level(cells))
	return r, r - half, r + half
}

// atMost judges a rate of failures, which claims say is at most most, by the interval of
// Clopper and Pearson.
func atMost(failures, n int, most float64, cells int, detail string) Finding {
	lo, hi := share(failures, n, cells)
	f := Below(float64(failures)/float64(n), lo, hi, most, n, detail)
	if hi == most {
		f.Answer = Holds
	}
	return f
}

// share is the interval of Clopper and Pearson for a share of n.
func share(of, n, cells int) (lo, hi float64) {
	lo, hi, err := stats.ClopperPearson(of, n, level(cells))
	need(0, err)
	return lo, hi
}

// A test is a statistic of a place and what it says.
type test func(p place, cells int) Finding

// everywhere judges each place and then all of them.
func everywhere(places []place, t test) Finding {
	return each(places, func(p place) Finding { return t(p, len(places)) })
}

// finalOf are the numbers of runs that a cell is judged by.
func finalOf(c *experiment.CellResult) []float64 {
	if c.FinalStoppingTime != nil {
		return c.FinalStoppingTime
	}
	if c.FinalSamples != nil {
		return c.FinalSamples
	}
	return c.FinalRegret
}

// paired is the ratio of a policy to another at a place of one experiment, judged by f, which is
// Above or Below a threshold.
func paired(e *Evidence, name, a, b string, judge judgement) test {
	return func(p place, cells int) Finding {
		x, y := finalOf(cellAt(e, name, a, p)), finalOf(cellAt(e, name, b, p))
		r, lo, hi := Ratio(x, y, cells)
		return judge(r, lo, hi, len(x), fmt.Sprintf("%s over %s at %s", a, b, p))
	}
}

// A judgement is what an interval of a number, often of a ratio, says.
type judgement func(r, lo, hi float64, runs int, detail string) Finding

// by is what the finding's number says.
func (f Finding) by(j judgement) Finding { return j(f.Value, f.Low, f.High, f.Runs, f.Detail) }

func above(t float64) judgement {
	return func(r, lo, hi float64, runs int, detail string) Finding { return Above(r, lo, hi, t, runs, detail) }
}

func below(t float64) judgement {
	return func(r, lo, hi float64, runs int, detail string) Finding { return Below(r, lo, hi, t, runs, detail) }
}

func between(from, to float64) judgement {
	return func(r, lo, hi float64, runs int, detail string) Finding {
		return Between(r, lo, hi, from, to, runs, detail)
	}
}

// near judges a ratio that a source calls the same and gives no number for: it holds within one
// margin of 1 up or down, fails beyond a wider one, and is open in between, so that no verdict
// hangs on where a line of ours is drawn.
func near(same, other float64) judgement {
	return func(r, lo, hi float64, runs int, detail string) Finding {
		f := Between(r, lo, hi, 1/(1+other), 1+other, runs, detail)
		if f.Answer == Holds && !(lo >= 1-same && hi <= 1+same) {
			f.Answer = Undecided
		}
		return f
	}
}

// roundLine is a cell's mean with its 95 % interval against rounds.
func roundLine(r *experiment.Results, c *experiment.CellResult, each float64) report.Series {
	s := report.Series{Policy: c.Policy, Budget: c.Budget, Label: c.Policy}
	half := stats.T(r.Manifest.Runs, experiment.Level)
	for i, t := range r.Manifest.Checkpoints {
		scale := 1.0
		if each == 1 { // divided by the round
			scale = 1 / float64(t)
		}
		s.X = append(s.X, float64(t))
		s.Mean = append(s.Mean, c.Regret.Mean[i]*scale)
		if r.Manifest.Runs > 1 {
			s.Lo = append(s.Lo, (c.Regret.Mean[i]-half*c.Regret.SE[i])*scale)
			s.Hi = append(s.Hi, (c.Regret.Mean[i]+half*c.Regret.SE[i])*scale)
		}
	}
	return s
}
