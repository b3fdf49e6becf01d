package paper

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/report"
)

// faults are pages on what published programs do that their papers do not say: each fault is played by a broken twin of ours, beside what is right.
func faults() []Figure {
	return []Figure{publishedPolya(), publishedShared(), publishedThreshold(), publishedProgram(), publishedStreams()}
}

// published is the claim that a program is as private as it is called: an audit can refute it, and can never show it.
func published(id, text, values, why string) Claim {
	return Claim{ID: id, Text: text, Why: why,
		Statistic: "the audited ε over the claimed one, and its lower end: fails if that is above 1. An audit can refute the claim and cannot prove it",
		Decide: func(e *Evidence) (Finding, error) {
			v, err := e.Values(values)
			if err != nil {
				return Finding{}, err
			}
			return Below(v[0], v[1], math.Inf(1), 1, e.Numbers.Runs, fmt.Sprintf("claimed ε = %.3g, refuted below %.3g", v[2], v[1]*v[2])), nil
		}}
}

// ours is the same audit of what is right: it must not be refuted.
func ours(id, values string) Claim {
	return Claim{ID: id, Text: "The same audit does not refute our own mechanism.", Where: "Sotto",
		Statistic: "the lower end of the audited ε over the claimed one: holds if at most 1",
		Decide: func(e *Evidence) (Finding, error) {
			v, err := e.Values(values)
			if err != nil {
				return Finding{}, err
			}
			f := Finding{Answer: Holds, Value: v[0], Low: v[1], High: math.NaN(), Runs: e.Numbers.Runs, Detail: fmt.Sprintf("claimed ε = %.3g", v[2])}
			if v[1] > 1 {
				f.Answer = Fails
			}
			return f, nil
		}}
}

// attack audits by the names of the self-audit, and has for each: audited over claimed ε, its lower end, the claimed ε.
func attack(ctx context.Context, p Preset, of map[string]string) (*Numbers, error) {
	self := audit.SelfAudit{Gamma: 1 - Level, Games: 200_000, Seed: 1, Only: func(name string) bool {
		_, ok := of[name]
		return ok
	}}
	if p == Quick {
		self.Games = 30_000
	}
	results, err := self.Run(ctx)
	if err != nil {
		return nil, err
	}
	if len(results) != len(of) {
		return nil, fmt.Errorf("of %d audits %d were found", len(of), len(results))
	}
	n := &Numbers{Values: map[string][]float64{}, Runs: self.Games}
	grid := report.Grid{Title: "What an attack finds", Head: []string{"program", "claimed ε", "audited ε", "lower end", "best attack"}, Text: 1,
		Notes: []string{fmt.Sprintf("lower end: the true ε is below it with probability at most %.2g, for all audits of the self-audit together", 1-Level)}}
	for _, r := range results {
		v := []float64{r.Estimate / r.Claimed, r.Low / r.Claimed, r.Claimed}
		n.Values[of[r.Name]] = v
		grid.Groups = append(grid.Groups, report.GridGroup{Rows: [][]string{{r.Name, number(r.Claimed), number(r.Estimate), number(r.Low), r.Attack}}})
	}
	n.Grids = append(n.Grids, grid)
	return n, nil
}

func number(x float64) string { return fmt.Sprintf("%.4g", x) }

// publishedPolya: 003's program draws shares of a Pólya law whose Gamma scale is the reciprocal of the right one.
func publishedPolya() Figure {
	const n, epsilon = 4096, 0.1
	return Figure{
		ID: "faults-polya", Source: "003", Where: "the published program", Title: "Noise with the reciprocal of its scale",
		About: "Under secure aggregation each of n users adds a difference of two Pólya(1/n, β) draws, a Poisson number with a Gamma(1/n) mean of scale β/(1−β), so that the sum has discrete Laplace noise. The program that was " +
			"published with 003 has the scale (1−β)/β. Both are drawn here, and attacked.",
		Chosen: "The standard deviation is at ε = 0.1 and 4096 users. The attack is on a smaller batch, where it takes fewer games; the wrong scale is worse for larger ones.",
		Voids:  "The published scale voids the guarantee.",
		Compute: func(ctx context.Context, p Preset) (*Numbers, error) {
			numbers, err := attack(ctx, p, map[string]string{"aggregated secagg polya": "ours", "aggregated secagg polya, published scale": "published"})
			if err != nil {
				return nil, err
			}
			m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, Epsilon: epsilon, S: 1, Users: n, Invited: n, P: 1e-3})
			if err != nil {
				return nil, err
			}
			s := &noise.Key{Seed: 1, Experiment: "faults-polya", Role: noise.RoleNoise}.Fast(1)[0]
			b := float64(m.Num) / float64(m.Den)
			beta := math.Exp(-1 / b)
			draws := 1_000_000
			if p == Quick {
				draws = 100_000
			}
			// n shares of Poisson(Gamma(1/n)·scale) add up to Poisson(Gamma(1)·scale), whatever the scale is.
			deviation := func(scale float64) (sd, lo, hi float64) {
				square := make([]float64, draws)
				for i := range square {
					plus, minus := s.Poisson(s.Exponential()*scale), s.Poisson(s.Exponential()*scale)
					x := float64(plus - minus)
					square[i] = x * x
				}
				mean, half := interval.Half(square, Level)
				return math.Sqrt(mean), math.Sqrt(max(0, mean-half)), math.Sqrt(mean + half)
			}
			grid := report.Grid{Title: fmt.Sprintf("Noise in the sum of %d users at ε = %v, precision g = %d", n, epsilon, m.G), Head: []string{"scale", "standard deviation", "from", "to"}, Text: 1,
				Notes: []string{fmt.Sprintf("%d draws; discrete Laplace noise of that ε has standard deviation %.4g", draws, math.Sqrt(2*beta)/(1-beta))}}
			for _, c := range []struct {
				name  string
				scale float64
			}{{"right", beta / (1 - beta)}, {"published", (1 - beta) / beta}} {
				sd, lo, hi := deviation(c.scale)
				want := math.Sqrt(2*beta) / (1 - beta)
				numbers.Values["sd "+c.name] = []float64{sd / want, lo / want, hi / want}
				grid.Groups = append(grid.Groups, report.GridGroup{Rows: [][]string{{c.name, number(sd), number(lo), number(hi)}}})
			}
			numbers.Grids = append(numbers.Grids, grid)
			return numbers, nil
		},
		Claims: []Claim{
			published("private", "The published program of Dist-DP-SE is ε-DP at the ε it is called with.", "published",
				"Its noise is hundreds of times too small, so that a reward shows through. Curves made with it are not those of a private algorithm."),
			{ID: "noise", Text: "The noise in a sum of the published program is that of the analysis.", Statistic: "the standard deviation of the noise over that of discrete Laplace noise: holds if between 0.9 and 1.1",
				Why: "(1−β)/β instead of β/(1−β).",
				Decide: func(e *Evidence) (Finding, error) {
					v, err := e.Values("sd published")
					if err != nil {
						return Finding{}, err
					}
					return Between(v[0], v[1], v[2], 0.9, 1.1, e.Numbers.Runs, fmt.Sprintf("%.0f times less", 1/v[0])), nil
				}},
			{ID: "noise-ours", Text: "The noise in a sum of ours is that of the analysis.", Where: "Sotto", Statistic: "the same of ours: holds if between 0.9 and 1.1",
				Decide: func(e *Evidence) (Finding, error) {
					v, err := e.Values("sd right")
					if err != nil {
						return Finding{}, err
					}
					return Between(v[0], v[1], v[2], 0.9, 1.1, e.Numbers.Runs, ""), nil
				}},
			ours("ours", "ours"),
		},
	}
}

// publishedShared: 003's program of DP-SE adds one Laplace draw to the means of all arms.
func publishedShared() Figure {
	return Figure{
		ID: "faults-shared", Source: "003", Where: "the published program", Title: "One draw of noise for all arms",
		About: "DP-SE releases the mean of each arm with Laplace noise of its own. The program that was published with 003 draws one number and adds it to all of them. It cancels wherever arms are compared, so that " +
			"eliminations, and plays, are those of the algorithm without noise.",
		Voids: "Shared noise voids the guarantee.",
		Compute: func(ctx context.Context, p Preset) (*Numbers, error) {
			return attack(ctx, p, map[string]string{
				"laplace": "ours", "laplace, noise shared across arms": "sums", "adap-klucb": "policy ours", "adap-klucb, noise shared across arms": "policy"})
		},
		Claims: []Claim{
			published("sums", "Sums of several arms with one draw of Laplace noise of the right scale are ε-DP.", "sums", "The difference of two sums has no noise at all."),
			published("policy", "A policy whose releases share noise is ε-DP: AdaP-KLUCB with this fault.", "policy", "Two releases in a row have the same noise, and their difference none."),
			ours("ours", "ours"),
			ours("policy-ours", "policy ours"),
		},
	}
}

// publishedThreshold: 004's program stops by a threshold that is not the paper's.
func publishedThreshold() Figure {
	return Figure{
		ID: "faults-threshold", Source: "004", Where: "the published program", Title: "A stopping threshold without a proof",
		About: "AdaP-TT stops when its statistic is above a threshold that is proved to be δ-correct (000 Lemma 5.18). The program that was published with 004 stops by a shorter one: log(1/δ) + log(1 + log n) + log(1 + log m) + (1/n + 1/m)(log(1/δ)/ε)². " +
			"At δ = 0.1, with arms that are close and a small ε, its answers are wrong more often than δ. The runs of this page stop by either, all else being equal.",
		Chosen: "Instances, budgets and δ are ours: 004 plays δ = 0.01 on instances with larger gaps, where the program errs less often than δ. The published program also tosses a coin where the paper tracks, has no positive part in its " +
			"statistic, and answers its leader instead of the empirical best arm; figure faults-program plays these.",
		Experiments: []Experiment{{Name: "threshold", File: "faults-threshold.yaml", Quick: func(s *experiment.Spec) { s.Runs = 1000 }}},
		Claims: []Claim{
			{ID: "published", Text: "The published program is δ-correct: wrong with probability at most δ.", Why: "The threshold leaves out the union bounds over phases and arms, and most of the noise of both arms: at small ε the private means are still far off when it is met.",
				Statistic: "the rate of wrong answers, by Clopper–Pearson over all cells: fails if one is above δ = 0.1, holds if all are below", Decide: errorRate("published")},
			{ID: "proved", Text: "AdaP-TT with the proved threshold is δ-correct.", Where: "000 Lemma 5.18", Statistic: "the same of the proved threshold; runs at the cap gave no answer", Decide: errorRate("proved")},
			{ID: "shorter", Text: "The published threshold stops sooner than the proved one.", Statistic: "mean plays under the published threshold over those under the proved one, paired, runs at the cap counted as so many: holds if below 1",
				Decide: func(e *Evidence) (Finding, error) {
					r, err := e.Results("threshold")
					if err != nil {
						return Finding{}, err
					}
					var parts []Finding
					for i := range r.Cells {
						if c := &r.Cells[i]; c.Policy == "published" {
							other, err := e.Cell("threshold", c.Instance, "proved", c.Budget)
							if err != nil {
								return Finding{}, err
							}
							q, lo, hi := Ratio(c.FinalStoppingTime, other.FinalStoppingTime, len(r.Cells)/2)
							parts = append(parts, Below(q, lo, hi, 1, len(c.FinalStoppingTime), c.Instance+", "+c.Budget))
						}
					}
					return Every(parts), nil
				}},
		},
	}
}

// errorRate decides whether wrong answers are at most as frequent as the risk allows, in every cell of a policy.
func errorRate(policy string) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		r, err := e.Results("threshold")
		if err != nil {
			return Finding{}, err
		}
		var parts []Finding
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Policy != policy {
				continue
			}
			n := len(c.FinalStoppingTime)
			lo, hi, err := interval.ClopperPearson(c.Failures, n, level(len(r.Cells)/2))
			if err != nil {
				return Finding{}, err
			}
			parts = append(parts, Below(float64(c.Failures)/float64(n), lo, hi, c.Identify.Risk, n, fmt.Sprintf("%s, %s: %d of %d wrong, %d without an answer", c.Instance, c.Budget, c.Failures, n, c.Unfinished)))
		}
		// The worst cell of a verdict speaks for it.
		slices.SortStableFunc(parts, func(a, b Finding) int { return cmp.Compare(b.Value, a.Value) })
		return Every(parts), nil
	}
}

// publishedStreams: 004's program gives every worker the same random numbers.
func publishedStreams() Figure {
	const workers = 10
	return Figure{
		ID: "faults-streams", Source: "004", Where: "the published program", Title: "The same random numbers for every worker",
		About: fmt.Sprintf("The program that was published with 004 starts its workers with equal generators, so that runs of one worker come back in all others. 100 runs by %d workers are then %d runs, each ten times. Here stopping times "+
			"of AdaP-TT are drawn and put together in both ways, and 95 %% intervals of their mean are made as if all runs were independent.", workers, 100/workers),
		Chosen:      "The number of workers is ours, 10. Stopping times are those of AdaP-TT with the published threshold on the first instance of faults-threshold at ε = 0.1.",
		Experiments: []Experiment{{Name: "times", File: "faults-streams.yaml", Quick: func(*experiment.Spec) {}}},
		Claims: []Claim{
			{ID: "independent", Text: "95 % intervals over 100 runs of the published program contain the mean in 95 % of repetitions.", Statistic: "the share of intervals that contain the mean of all runs, by Clopper–Pearson: holds if within 0.90 and 1",
				Why: "With ten copies of ten runs the variance of the mean is ten times what the interval takes it for.", Decide: coverage(workers)},
			{ID: "ours", Text: "With a stream of its own for each run they do.", Where: "Sotto", Statistic: "the same with 100 different runs", Decide: coverage(1)},
		},
	}
}

// coverage is how often the 95 % interval of the mean over 100 runs, of which each comes so many times, contains the mean of all runs.
func coverage(copies int) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		r, err := e.Results("times")
		if err != nil {
			return Finding{}, err
		}
		all := r.Cells[0].FinalStoppingTime
		if len(all) < 100 {
			return Finding{}, fmt.Errorf("want at least 100 runs, have %d", len(all))
		}
		mean, _, _ := interval.Mean(all)
		different := 100 / copies
		sample := make([]float64, 0, 100)
		groups, inside := 0, 0
		for from := 0; from+different <= len(all); from += different {
			sample = sample[:0]
			for range copies {
				sample = append(sample, all[from:from+different]...)
			}
			m, half := interval.Half(sample, 0.95)
			if math.Abs(m-mean) <= half {
				inside++
			}
			groups++
		}
		lo, hi, err := interval.ClopperPearson(inside, groups, Level)
		if err != nil {
			return Finding{}, err
		}
		return Between(float64(inside)/float64(groups), lo, hi, 0.90, 1, groups, fmt.Sprintf("%d of %d intervals", inside, groups)), nil
	}
}
