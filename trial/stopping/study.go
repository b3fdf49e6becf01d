package stopping

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A StudyConfig is many runs of one rule on one law.
type StudyConfig struct {
	Rule Rule
	Law  bandit.Law
	Runs int
	Seed uint64
	Cap  int // samples of a run, 0 for none: needed where the mean is 0
	// Workers is how many runs are played at a time, 0 for one a processor. Results do
	// not depend on it.
	Workers int
}

// World names what the samples of a law are keyed by, beside the seed and the run: rules on one law
// have the same samples.
func World(law bandit.Law) string { return "stopping " + law.String() }

// An Outcome is one run of a study.
type Outcome struct {
	Samples  int
	Estimate float64 // NaN if unfinished
	Error    float64 // |estimate − μ|/|μ|; NaN if unfinished, +Inf for a wrong estimate of 0
	Finished bool
	Failed   bool         // finished, and further than α|μ| from μ
	Loss     privacy.Loss // what the run cost a sample
}

// A Study is what many runs say of a rule.
type Study struct {
	Rule     Rule
	Law      string
	Mean     float64 // μ of the law, clipped to [−R,R]
	Outcomes []Outcome

	Failures, Unfinished int
	Clipped              int // samples that were outside [−R,R], in all runs
	// FailureLo and FailureHi are the 95 % Clopper–Pearson interval of the probability of
	// failure, of all runs.
	FailureLo, FailureHi float64
	// Of the finished runs' samples: mean, its standard error, and quantiles 0.05, 0.5 and 0.95.
	SamplesMean, SamplesSE float64
	Samples05, Samples50   float64
	Samples95              float64
	ErrorMean, ErrorMax    float64
}

// Run plays every run. The streams of a run depend on the seed, the law, the rule and the
// run's number only.
func (c StudyConfig) Run(ctx context.Context) (*Study, error) {
	switch {
	case c.Law == nil:
		return nil, errors.New("stopping: law is missing")
	case c.Runs < 1:
		return nil, fmt.Errorf("stopping: runs is %d, must be at least 1", c.Runs)
	case c.Workers < 0:
		return nil, fmt.Errorf("stopping: workers is %d, must be at least 1, or 0 for one a "+
			"processor", c.Workers)
	}
	mean, err := bandit.ClippedMean(c.Law, -c.Rule.r, c.Rule.r)
	if err != nil {
		return nil, err
	}
	out := &Study{Rule: c.Rule, Law: c.Law.String(), Mean: mean, Outcomes: make([]Outcome, c.Runs)}
	var clipped atomic.Int64
	if err := pool.Run(ctx, c.Workers, c.Runs, func() func(context.Context, int) error {
		return func(ctx context.Context, i int) (err error) {
			n := 0
			out.Outcomes[i], n, err = c.Play(ctx, i, mean)
			clipped.Add(int64(n))
			return err
		}
	}); err != nil {
		return nil, err
	}
	out.Clipped = int(clipped.Load())
	return out, out.summarise()
}

// Play plays run i on a law whose mean, clipped to [−R,R], is given, and says how many samples were
// clipped. It takes no notice of Runs and Workers: the run is the same in every study.
func (c StudyConfig) Play(ctx context.Context, i int, mean float64) (o Outcome, clipped int, err error) {
	key := noise.Key{Seed: c.Seed, Experiment: World(c.Law), Run: i, Role: noise.RoleReward}
	samples := key.Fast(1)
	key.Role, key.Cell = noise.RoleNoise, c.Rule.String()
	own := key.Fast(1)
	r, err := simulate(ctx, c.Rule, c.Law, c.Cap, &samples[0], &own[0])
	var unfinished *UnfinishedError
	if errors.As(err, &unfinished) {
		return Outcome{Samples: unfinished.Samples, Estimate: math.NaN(), Error: math.NaN(),
			Loss: unfinished.Spent}, r.Clipped, nil
	}
	if err != nil {
		return Outcome{}, r.Clipped, err
	}
	d := math.Abs(r.Estimate - mean)
	o = Outcome{Samples: r.Samples, Estimate: r.Estimate, Error: d / math.Abs(mean), Finished: true,
		Failed: d > c.Rule.alpha*math.Abs(mean), Loss: r.Loss}
	if d == 0 {
		o.Error = 0
	}
	return o, r.Clipped, nil
}

func (s *Study) summarise() error {
	var samples, errs []float64
	for _, o := range s.Outcomes {
		if !o.Finished {
			s.Unfinished++
			continue
		}
		if o.Failed {
			s.Failures++
		}
		samples, errs = append(samples, float64(o.Samples)), append(errs, o.Error)
	}
	var err error
	if s.FailureLo, s.FailureHi, err = stats.ClopperPearson(s.Failures, len(s.Outcomes), 0.95); err != nil {
		return err
	}
	s.SamplesMean, _, s.SamplesSE = stats.Mean(samples)
	q := stats.Quantiles(samples, 0.05, 0.5, 0.95)
	s.Samples05, s.Samples50, s.Samples95 = q[0], q[1], q[2]
	s.ErrorMean, _, _ = stats.Mean(errs)
	s.ErrorMax = math.NaN()
	if len(errs) > 0 {
		s.ErrorMax = slices.Max(errs)
	}
	return nil
}

// WriteCSV writes a row a run:
// rule,law,alpha,beta,epsilon,range,run,samples,estimate,error,finished,failed. Error is relative;
// it and the estimate are empty where the run is unfinished. Epsilon is none without privacy.
func (s *Study) WriteCSV(w io.Writer) error {
	number := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	epsilon := "none"
	if !math.IsInf(s.Rule.epsilon, 1) {
		epsilon = number(s.Rule.epsilon)
	}
	rows := csv.NewWriter(w)
	if err := rows.Write([]string{"rule", "law", "alpha", "beta", "epsilon", "range", "run",
		"samples", "estimate", "error", "finished", "failed"}); err != nil {
		return err
	}
	for i, o := range s.Outcomes {
		if err := rows.Write([]string{s.Rule.name, s.Law, number(s.Rule.alpha), number(s.Rule.beta),
			epsilon, number(s.Rule.r), strconv.Itoa(i),
			strconv.Itoa(o.Samples), number(o.Estimate), number(o.Error),
			strconv.FormatBool(o.Finished), strconv.FormatBool(o.Failed)}); err != nil {
			return err
		}
	}
	rows.Flush()
	return rows.Error()
}
