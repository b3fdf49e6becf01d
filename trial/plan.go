package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/privacy"
)

// A PlanConfig asks how many participants a trial to come will need. The arms are Bernoulli; either Gap is given, or Prior.
type PlanConfig struct {
	Arms int
	// Gap is by how much the best arm is better than all others, which are equal: the hardest arms with such a gap.
	Gap float64
	// Best is the best arm's mean, 0 for 1/2 + Gap/2: the means are then around 1/2, where rewards say least.
	Best float64
	// Prior is the interval from which every mean is drawn, uniformly and anew for each run. The two best arms may then be as good as equal, and such trials are very long.
	Prior *[2]float64

	Risk     float64
	Epsilons []float64
	Rule     string // a private one; "" for dp-tt
	Params   catalog.Params
	Runs     int // of each ε
	Cap      int // plays of a run; 0 for DefaultCap
	Seed     uint64
	Workers  int
	// Progress, if set, is told of each row when it is done.
	Progress func(PlanRow)
}

// A PlanRow is what a trial needs at one ε.
type PlanRow struct {
	Epsilon float64 // +Inf without privacy
	// Lower is T*(ν;ε) log(1/(3δ)): no rule that is ε-DP and δ-correct needs fewer participants in the mean. With a prior it is the mean over the runs' arms.
	Lower          float64
	Mean, SE       float64 // of participants; runs that reached the cap count with the cap, so that the mean is then too small
	Median, Q90    float64
	Max            float64
	Capped, Wrong  int // runs
	WrongLo        float64
	WrongHi        float64
	Batches        float64 // mean rounds of adaptivity
	OverNonPrivate float64 // Mean over that without privacy
}

// A Plan is the answer.
type Plan struct {
	Rule  Rule   // at the smallest ε
	Arms  string // in words
	Runs  int
	Cap   int
	Rows  []PlanRow // by ε
	Plain PlanRow   // the same rule without privacy
	// Boundary is the ε at which the lower bound begins to be that of privacy (bound.RegimeBoundary); with a prior the median over the runs' arms.
	Boundary float64
	// Free is the smallest ε from which on, up to the largest one, trials need at most Slack more participants in the mean than without privacy; 0 if there is none.
	Free float64
}

// Slack is how much longer trials may be where privacy is called free.
const Slack = 0.10

// source checks what is asked for and returns the arms.
func (c PlanConfig) source() (bandit.Source, error) {
	if c.Prior != nil {
		if c.Gap != 0 || c.Best != 0 {
			return nil, errors.New("plan: gap and best are for arms without a prior")
		}
		return bandit.NewUniformMeans(c.Arms, c.Prior[0], c.Prior[1], bandit.BernoulliFamily(), true)
	}
	if !(c.Gap > 0 && c.Gap <= 1) {
		return nil, fmt.Errorf("plan: gap is %v, must be above 0 and at most 1", c.Gap)
	}
	best := c.Best
	if best == 0 {
		best = 0.5 + c.Gap/2
	}
	if !(best >= c.Gap && best <= 1) {
		return nil, fmt.Errorf("plan: best is %v, must be from the gap, %v, to 1: the others' mean is the difference", best, c.Gap)
	}
	if c.Arms < 2 {
		return nil, fmt.Errorf("plan: arms is %d, must be at least 2: one arm alone is the best without a trial", c.Arms)
	}
	means := make([]float64, c.Arms)
	for a := range means {
		means[a] = best - c.Gap
	}
	means[0] = best
	in, err := bandit.BernoulliInstance(means...)
	return bandit.Fixed(in), err
}

// Plan simulates trials at every ε, and without privacy, on the same arms and, run by run, from the same streams of rewards.
func (c PlanConfig) Plan(ctx context.Context) (*Plan, error) {
	if c.Rule == "" {
		c.Rule = "dp-tt"
	}
	if len(c.Epsilons) == 0 {
		return nil, errors.New("plan: epsilons are missing, must be at least one")
	}
	if c.Runs < 2 {
		return nil, fmt.Errorf("plan: runs is %d, must be at least 2", c.Runs)
	}
	src, err := c.source()
	if err != nil {
		return nil, err
	}
	epsilons := slices.Clone(c.Epsilons)
	slices.Sort(epsilons)
	epsilons = slices.Compact(epsilons)
	rules := make([]Rule, 0, len(epsilons)+1)
	for _, epsilon := range epsilons {
		rule, err := NewRule(c.Rule, c.Arms, c.Risk, privacy.Pure{Epsilon: epsilon}, c.Params)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	plain, err := NewRule(c.Rule, c.Arms, c.Risk, privacy.None{}, c.Params)
	if err != nil {
		return nil, err
	}
	out := &Plan{Rule: rules[0], Runs: c.Runs, Boundary: math.NaN()}
	if c.Prior != nil {
		out.Arms = fmt.Sprintf("%d Bernoulli arms, means drawn uniformly from [%v, %v] for each run", c.Arms, c.Prior[0], c.Prior[1])
	} else {
		means := bandit.Instance(src.(bandit.Fixed)).Means()
		out.Arms = fmt.Sprintf("%d Bernoulli arms, one of mean %.4g, %d of mean %.4g", c.Arms, means[0], c.Arms-1, means[1])
	}
	var boundaries []float64
	for i, rule := range append([]Rule{plain}, rules...) {
		study, err := Simulation{Rule: rule, Source: src, Runs: c.Runs, Seed: c.Seed, Cap: c.Cap, Workers: c.Workers}.Run(ctx)
		if err != nil {
			return nil, err
		}
		out.Cap = study.Cap
		row := PlanRow{Epsilon: rule.Epsilon(), Lower: study.LowerMean, Mean: study.TauMean, SE: study.TauSE, Median: study.Tau50, Q90: study.Tau90, Max: study.TauMax,
			Capped: study.Capped, Wrong: study.Wrong, WrongLo: study.WrongLo, WrongHi: study.WrongHi, Batches: study.BatchesMean}
		if i == 0 {
			out.Plain = row
			for _, o := range study.Outcomes {
				if b, err := bound.RegimeBoundary(o.True); err == nil {
					boundaries = append(boundaries, b)
				}
				if c.Prior == nil {
					break
				}
			}
		}
		row.OverNonPrivate = row.Mean / out.Plain.Mean
		if i == 0 {
			out.Plain = row
		} else {
			out.Rows = append(out.Rows, row)
		}
		if c.Progress != nil {
			c.Progress(row)
		}
	}
	out.Boundary = interval.Quantiles(boundaries, 0.5)[0]
	for i := len(out.Rows) - 1; i >= 0 && out.Rows[i].Capped == 0 && out.Rows[i].OverNonPrivate <= 1+Slack; i-- {
		out.Free = out.Rows[i].Epsilon
	}
	return out, nil
}
