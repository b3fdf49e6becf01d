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
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
)

// A PlanConfig asks how many participants a trial to come will need. The arms are Bernoulli; either
// Gap is given, or Prior.
type PlanConfig struct {
	Arms int
	// Gap is by how much the best arm is better than all others, which are equal: the hardest arms
	// with such a gap.
	Gap float64
	// Best is the best arm's mean, 0 for 1/2 + Gap/2: the means are then around 1/2, where
	// rewards say least.
	Best float64
	// Prior is the interval from which every mean is drawn, uniformly and anew for each run. The
	// two best arms may then be as good as equal, and such trials are very long.
	Prior *[2]float64

	Risk     float64
	Epsilons []float64
	Rule     string // a private one; "" for catalog.DefaultRule
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
	// Lower is T*(ν;ε) kl(δ,1−δ): no rule that is ε-DP and δ-correct needs fewer participants in
	// the mean. With a prior it is the median over the runs' arms: the mean is that of the few runs
	// whose best arms are nearly as good.
	Lower float64
	// of participants; runs that reached the cap count with the cap, so that the mean
	// is then too small
	Mean, SE       float64
	Median, Q90    float64
	Max            float64
	Capped, Wrong  int // runs
	WrongLo        float64
	WrongHi        float64
	Batches        float64 // mean rounds of adaptivity
	OverNonPrivate float64 // Mean over that of Plan.Plain; with a prior, Median over that
}

// A Plan is the answer.
type Plan struct {
	Rule Rule   // at the smallest ε
	Arms string // in words
	Runs int
	Cap  int
	Rows []PlanRow // by ε
	// Plain is the best without privacy: of the same rule and of catalog.DefaultRule, both without noise, the
	// one of fewer participants. It is that of PlainRule.
	Plain     PlanRow
	PlainRule Rule
	// Boundary is the ε at which the lower bound begins to be that of privacy
	// (bound.RegimeBoundary); with a prior the median over the runs' arms.
	Boundary float64
	Prior    bool
	// Free is the smallest ε from which on, up to the largest one, OverNonPrivate is at most 1 +
	// Slack; 0 if there is none. Where runs reached the cap a mean proves nothing.
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
		return nil, fmt.Errorf("plan: best is %v, must be from the gap, %v, to 1: the others' "+
			"mean is the difference", best, c.Gap)
	}
	if best-c.Gap == best {
		return nil, fmt.Errorf("plan: gap is %v, too small: %v less it is the same number, and "+
			"all arms would be the best", c.Gap, best)
	}
	if c.Arms < 2 {
		return nil, fmt.Errorf("plan: arms is %d, must be at least 2: one arm alone is the best "+
			"without a trial", c.Arms)
	}
	means := make([]float64, c.Arms)
	for a := range means {
		means[a] = best - c.Gap
	}
	means[0] = best
	in, err := bandit.BernoulliInstance(means...)
	return bandit.Fixed(in), err
}

// Check says what is wrong with the configuration, if anything.
func (c PlanConfig) Check() error {
	_, _, _, err := c.resolve()
	return err
}

// resolve returns the arms, and the rules: without privacy, and by ε.
func (c PlanConfig) resolve() (src bandit.Source, plain, private []Rule, err error) {
	fail := func(err error) (bandit.Source, []Rule, []Rule, error) { return nil, nil, nil, err }
	switch {
	case len(c.Epsilons) == 0:
		return fail(errors.New("plan: epsilons are missing, must be at least one"))
	case c.Runs < 2:
		return fail(fmt.Errorf("plan: runs is %d, must be at least 2", c.Runs))
	case c.Cap < 0 || c.Cap > 0 && c.Cap < c.Arms:
		return fail(fmt.Errorf("plan: cap is %d, must be at least the number of arms, %d, "+
			"or 0 for %d", c.Cap, c.Arms, DefaultCap))
	}
	if src, err = c.source(); err != nil {
		return fail(err)
	}
	name := c.Rule
	if name == "" {
		name = catalog.DefaultRule
	}
	one := func(to *[]Rule, name string, budget privacy.Budget, params catalog.Params) {
		if err == nil {
			var rule Rule
			rule, err = NewRule(name, c.Arms, c.Risk, budget, params)
			*to = append(*to, rule)
		}
	}
	epsilons := slices.Clone(c.Epsilons)
	slices.Sort(epsilons)
	for _, epsilon := range slices.Compact(epsilons) {
		one(&private, name, privacy.Pure{Epsilon: epsilon}, c.Params)
	}
	one(&plain, name, privacy.None{}, c.Params)
	if name != catalog.DefaultRule {
		one(&plain, catalog.DefaultRule, privacy.None{}, nil)
	}
	if err != nil {
		return fail(err)
	}
	return src, plain, private, nil
}

// Plan simulates trials at every ε, and without privacy, on the same arms and, run by run, from the
// same streams of rewards.
func (c PlanConfig) Plan(ctx context.Context) (*Plan, error) {
	src, plain, private, err := c.resolve()
	if err != nil {
		return nil, err
	}
	out := &Plan{Rule: private[0], Runs: c.Runs, Boundary: math.NaN(), Prior: c.Prior != nil}
	if c.Prior != nil {
		out.Arms = fmt.Sprintf("%d Bernoulli arms, means drawn uniformly from [%v, %v] for each run",
			c.Arms, c.Prior[0], c.Prior[1])
	} else {
		means := bandit.Instance(src.(bandit.Fixed)).Means()
		out.Arms = fmt.Sprintf("%d Bernoulli arms, one of mean %.4g, %d of mean %.4g", c.Arms,
			means[0], c.Arms-1, means[1])
	}
	for i, rule := range plain {
		row, study, err := c.row(ctx, src, rule)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out.Cap, out.Boundary = study.Cap, boundary(study.Outcomes, out.Prior)
		}
		if i == 0 || row.size(out.Prior) < out.Plain.size(out.Prior) {
			out.Plain, out.PlainRule = row, rule
		}
	}
	out.Plain.OverNonPrivate = 1
	c.tell(out.Plain)
	for _, rule := range private {
		row, _, err := c.row(ctx, src, rule)
		if err != nil {
			return nil, err
		}
		row.OverNonPrivate = row.size(out.Prior) / out.Plain.size(out.Prior)
		out.Rows = append(out.Rows, row)
		c.tell(row)
	}
	tolerated := 0
	if out.Prior { // a median stands as long as most runs end
		tolerated = (c.Runs - 1) / 2
	}
	for i := len(out.Rows) - 1; i >= 0 && out.Rows[i].Capped <= tolerated &&
		out.Rows[i].OverNonPrivate <= 1+Slack; i-- {
		out.Free = out.Rows[i].Epsilon
	}
	return out, nil
}

func (c PlanConfig) tell(r PlanRow) {
	if c.Progress != nil {
		c.Progress(r)
	}
}

// row simulates a rule.
func (c PlanConfig) row(ctx context.Context, src bandit.Source, rule Rule) (PlanRow, *Study, error) {
	study, err := Simulation{Rule: rule, Source: src, Runs: c.Runs, Seed: c.Seed, Cap: c.Cap,
		Workers: c.Workers}.Run(ctx)
	if err != nil {
		return PlanRow{}, nil, err
	}
	row := PlanRow{Epsilon: rule.Epsilon(), Lower: study.LowerMean, Mean: study.TauMean,
		SE: study.TauSE, Median: study.Tau50, Q90: study.Tau90, Max: study.TauMax,
		Capped: study.Capped, Wrong: study.Wrong, WrongLo: study.WrongLo,
		WrongHi: study.WrongHi, Batches: study.BatchesMean}
	if c.Prior != nil {
		row.Lower = study.Lower50
	}
	return row, study, nil
}

// size is what rows are compared by.
func (r *PlanRow) size(prior bool) float64 {
	if prior {
		return r.Median
	}
	return r.Mean
}

// boundary is the ε at which the lower bound begins to be that of privacy, of the first run's arms or, with a prior,
// the median over all runs.
func boundary(outcomes []Outcome, prior bool) float64 {
	var all []float64
	for _, o := range outcomes {
		if b, err := bound.RegimeBoundary(o.True); err == nil {
			all = append(all, b)
		}
		if !prior {
			break
		}
	}
	return stats.Quantiles(all, 0.5)[0]
}
