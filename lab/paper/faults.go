package paper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// faults are pages on what published programs do that their papers do not say: each fault is played
// by a broken twin of ours, beside what is right.
func faults() []Figure {
	return []Figure{publishedPolya(), publishedShared(), publishedProgram(), publishedMeans(),
		publishedStreams()}
}

// published is the claim that a program is as private as it is called: an audit can refute it, and
// can never show it.
func published(id, where, text, values, why string) Claim {
	return Claim{ID: id, Where: where, Text: text, Why: why, IfFails: ProgramDiffers,
		Reader: "The theorem stands, and is about the right noise. Mend the program before using " +
			"it on anybody's rewards.",
		Statistic: "The audited ε over the claimed one, and its lower end: fails if that is " +
			"above 1. An audit can contradict the claim and cannot prove it.",
		Decide: func(e *Evidence) Finding {
			x := named[overClaimed](e, values)
			return Below(x.Found, x.Low, math.Inf(1), 1, e.Numbers.Runs,
				fmt.Sprintf("claimed ε = %.3g, refuted below %.3g", x.Claimed, x.Low*x.Claimed))
		}}
}

// curvesOf003 is what the faults do to the curves of [Chowdhury and Zhou 2023]: its program's
// classes, rules and constants, played batch by batch.
const curvesOf003 = "at ε = 0.1 on 200 easy instances, T = 10⁶, Dist-DP-SE has 1.867 times the " +
	"regret of DP-SE with both faults and 1.859 times with neither; the scale alone changes its " +
	"regret by 0.4 ± 1.6 %, the shared noise that of DP-SE by " +
	"−0.1 ± 2.1 % (99 % intervals)."

// own makes a claim our own.
func own(c Claim) Claim {
	c.Own, c.IfFails, c.Reader = true, "", ""
	return c
}

// ours is the same audit of what is right: it must not be refuted.
func ours(id, values string) Claim {
	return Claim{ID: id, Text: "The same audit does not refute our own mechanism.", Own: true,
		Statistic: "The lower end of the audited ε over the claimed one: holds if at most 1.",
		Decide: func(e *Evidence) Finding {
			x := named[overClaimed](e, values)
			f := Finding{Answer: Holds, Value: x.Found, Low: x.Low, High: math.NaN(),
				Runs: e.Numbers.Runs, Detail: fmt.Sprintf("claimed ε = %.3g", x.Claimed)}
			if x.Low > 1 {
				f.Answer = Fails
			}
			return f
		}}
}

// overClaimed is audited over claimed ε, its lower end, and the claimed ε.
type overClaimed struct{ Found, Low, Claimed float64 }

// attack audits by the names of the self-audit.
func attack(ctx context.Context, p Preset, n *Numbers, of map[string]string) {
	n.Runs = p.size(200_000, 30_000)
	results := need(audit.SelfAudit{Gamma: 1 - Level, Games: n.Runs, Seed: n.seed(20001),
		Only: func(name string) bool {
			_, ok := of[name]
			return ok
		}}.Run(ctx))
	if len(results) != len(of) {
		try(fmt.Errorf("of %d audits %d were found", len(of), len(results)))
	}
	grid := report.Table{Title: "What an attack finds",
		Head: []string{"program", "claimed ε", "audited ε", "lower end", "best attack"}, Text: 1,
		Notes: []string{fmt.Sprintf("lower end: the true ε is below it with probability at most "+
			"%.2g, for all audits of the self-audit together", 1-Level)}}
	for _, r := range results {
		n.set(of[r.Name], overClaimed{r.Estimate / r.Claimed, r.Low / r.Claimed, r.Claimed})
		grid.Groups = append(grid.Groups, report.Group{Rows: [][]string{{r.Name,
			number(r.Claimed), number(r.Estimate), number(r.Low), r.Attack}}})
	}
	n.Tables = append(n.Tables, grid)
}

func number(x float64) string { return fmt.Sprintf("%.4g", x) }

// publishedPolya: [Chowdhury and Zhou 2023]'s program draws shares of a Pólya law whose Gamma scale
// is the reciprocal of the right one.
func publishedPolya() Figure {
	const n, epsilon = 4096, 0.1
	return Figure{
		ID: "faults-polya", Source: "003", Where: "§7, Dist-DP-SE, and the program published " +
			"with it", Title: "Noise with the reciprocal of its scale",
		About: "Under secure aggregation each of n users adds a difference of two Pólya(1/n, β) " +
			"draws, a Poisson number with a Gamma(1/n) mean of scale β/(1−β), so that the sum " +
			"has discrete Laplace noise. The program that was " +
			"published with [Chowdhury and Zhou 2023] (github.com/sayakrc/Differentially-Private-Bandits, " +
			"MABPrivate.py) has the scale (1−β)/β. Both are drawn here, and attacked.",
		Chosen: "The standard deviation is at ε = 0.1 and 4096 users. The attack is on a smaller " +
			"batch, where it takes fewer games; the wrong scale is worse for larger ones.",
		Voids: "The published scale voids the guarantee.",
		Compute: func(ctx context.Context, p Preset, numbers *Numbers) {
			attack(ctx, p, numbers, map[string]string{"aggregated secagg polya": "ours",
				"aggregated secagg polya, published scale": "published"})
			m := need(privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
				Noise: privacy.NoisePolya, Epsilon: epsilon, S: 1, Users: n, Invited: n, P: 1e-3}))
			s := &noise.Key{Seed: numbers.seed(20001), Experiment: "faults-polya", Role: noise.RoleNoise}.Fast(1)[0]
			b := float64(m.Num) / float64(m.Den)
			beta := math.Exp(-1 / b)
			draws := p.size(1_000_000, 100_000)
			// n shares of Poisson(Gamma(1/n)·scale) add up to Poisson(Gamma(1)·scale),
			// whatever the scale is.
			deviation := func(scale float64) (sd, lo, hi float64) {
				square := make([]float64, draws)
				for i := range square {
					plus, minus := s.Poisson(s.Exponential()*scale), s.Poisson(s.Exponential()*scale)
					x := float64(plus - minus)
					square[i] = x * x
				}
				mean, half := stats.Half(square, Level)
				return math.Sqrt(mean), math.Sqrt(max(0, mean-half)), math.Sqrt(mean + half)
			}
			grid := report.Table{Title: fmt.Sprintf("Noise in the sum of %d users at ε = %v, "+
				"precision g = %d", n, epsilon, m.G), Head: []string{"scale", "standard deviation",
				"from", "to"}, Text: 1,
				Notes: []string{fmt.Sprintf("%d draws; discrete Laplace noise of that ε has "+
					"standard deviation %.4g", draws, math.Sqrt(2*beta)/(1-beta))}}
			for _, c := range []struct {
				name  string
				scale float64
			}{{"right", beta / (1 - beta)}, {"published", (1 - beta) / beta}} {
				sd, lo, hi := deviation(c.scale)
				want := math.Sqrt(2*beta) / (1 - beta)
				numbers.set("sd "+c.name, bounds{sd / want, lo / want, hi / want})
				grid.Groups = append(grid.Groups, report.Group{Rows: [][]string{{c.name,
					number(sd), number(lo), number(hi)}}})
			}
			numbers.Tables = append(numbers.Tables, grid)
		},
		Claims: []Claim{
			published("private", "§7, Dist-DP-SE", "What the simulations of [Chowdhury and Zhou "+
				"2023] call Dist-DP-SE "+
				"is ε-DP.", "published",
				"Its noise is hundreds of times too small, so that a reward shows through. It "+
					"hardly moves the curves of §7, whose radii are those of the right noise: "+curvesOf003),
			{ID: "noise", Text: "The noise in a sum is that of the analysis.", Own: true,
				Statistic: "The standard deviation of the program's noise over that of discrete " +
					"Laplace noise: holds if between 0.9 and 1.1.",
				Why: "(1−β)/β instead of β/(1−β).",
				Decide: func(e *Evidence) Finding {
					sd := named[bounds](e, "sd published")
					return Between(sd.Value, sd.Lo, sd.Hi, 0.9, 1.1, e.Numbers.Runs,
						fmt.Sprintf("%.0f times less", 1/sd.Value))
				}},
			{ID: "noise-ours", Text: "The noise in a sum of ours is that of the analysis.",
				Own: true, Statistic: "The same of ours: holds if between 0.9 and 1.1.",
				Decide: func(e *Evidence) Finding {
					sd := named[bounds](e, "sd right")
					return Between(sd.Value, sd.Lo, sd.Hi, 0.9, 1.1, e.Numbers.Runs, "")
				}},
			ours("ours", "ours"),
		},
	}
}

// publishedShared: [Chowdhury and Zhou 2023]'s program of DP-SE adds one Laplace draw to the
// means of all arms.
func publishedShared() Figure {
	return Figure{
		ID: "faults-shared", Source: "003", Where: "§7, DP-SE, and the program published with it",
		Title: "One draw of noise for all arms",
		About: "DP-SE releases the mean of each arm with Laplace noise of its own. The program " +
			"that was published with [Chowdhury and Zhou 2023] draws one number and adds it to " +
			"all of them. It cancels " +
			"wherever arms are compared, so that " +
			"eliminations, and plays, are those of the algorithm without noise.",
		Voids: "Shared noise voids the guarantee.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			attack(ctx, p, n, map[string]string{
				"laplace": "ours", "laplace, noise shared across arms": "sums",
				"adap-klucb": "policy ours", "adap-klucb, noise shared across arms": "policy"})
		},
		Claims: []Claim{
			published("sums", "§7, DP-SE", "What the simulations of [Chowdhury and Zhou 2023] "+
				"call DP-SE is ε-DP.", "sums",
				"The difference of two sums has no noise at all. The curves hardly change with "+
					"noise of its own for each arm: "+curvesOf003),
			own(published("policy", "", "A policy whose releases share noise is ε-DP: AdaP-KLUCB "+
				"with this fault.", "policy", "Two releases in a row have the same noise, and "+
				"their difference none.")),
			ours("ours", "ours"),
			ours("policy-ours", "policy ours"),
		},
	}
}

// publishedStreams: [Azize et al. 2023]'s program gives every forked worker the same random numbers.
func publishedStreams() Figure {
	return Figure{
		ID: "faults-streams", Source: "004", Where: "Figures 1 and 2, \"over 100 runs\", and the " +
			"program published with it", Title: "The same random numbers for every worker",
		About: "The program that was published with [Azize et al. 2023] never seeds its " +
			"generator. Where a pool " +
			"of processes is made by forking, all workers begin with the generator of the " +
			"process that started them, and the k-th run of one is the k-th run of " +
			"all. Here stopping times of its AdaP-TT are drawn and put together as it does and " +
			"as 100 different runs, and 95 % intervals of their mean are made as if all runs were independent.",
		Chosen: "The repository has 10 runs by 4 workers, and beside them, as comments, 100 and " +
			"32, which we take for those of the figures. Run here, under Linux, 10 runs by 4 " +
			"workers were 3 different ones, and 100 by 32 were 4, which came 32, 32, 32 " +
			"and 4 times. Where processes are spawned instead, as Python 3.8 does on macOS and " +
			"Windows, there are no copies; the source does not say on which system it ran. Two " +
			"arms of 0.5 and 0.45, ε = 0.1, δ = 0.1 are ours.",
		Experiments: []Experiment{{Name: "times", File: "faults-streams.yaml",
			Quick: func(*experiment.Spec) {}}},
		Claims: []Claim{
			{ID: "independent", Text: "Run where processes fork, 100 runs of the program of " +
				"[Azize et al. 2023] are 100 different ones.", Own: true, Statistic: "The share of 95 % intervals over 100 runs of " +
				"the program, its workers forked, that contain the mean of all runs, by " +
				"Clopper–Pearson: holds if within 0.90 " +
				"and 1, which is ours.",
				Decide: coverage([]int{32, 32, 32, 4}),
				Why: "§5 has 100 runs, and says nothing of processes: this is ours. Of four different runs the variance of the mean is 31 times what the " +
					"interval takes it for. The figures have the standard deviation of runs, and " +
					"no interval of the mean; whether copies are in them depends on the system " +
					"they were made on, " +
					"which we do not know. Where processes fork, as on Linux, seed each run of " +
					"the program by its number before averaging."},
			{ID: "ours", Text: "With a stream of its own for each run such intervals hold.",
				Own: true, Statistic: "The same with 100 different runs.",
				Decide: coverage(slices.Repeat([]int{1}, 100))},
		},
	}
}

// coverage is how often the 95 % interval of the mean over runs, of which each comes so many times,
// contains the mean of all runs.
func coverage(copies []int) Check {
	return func(e *Evidence) Finding {
		r := need(e.Results("times"))
		all := r.Cells[0].FinalStoppingTime
		if len(all) < len(copies) {
			return need(Finding{}, fmt.Errorf("runs is %d, must be at least %d", len(all), len(copies)))
		}
		mean, _, _ := stats.Mean(all)
		var sample []float64
		groups, inside := 0, 0
		for runs := range slices.Chunk(all, len(copies)) {
			if len(runs) < len(copies) {
				break
			}
			sample = sample[:0]
			for i, times := range copies {
				sample = append(sample, slices.Repeat(runs[i:i+1], times)...)
			}
			m, half := stats.Half(sample, 0.95)
			if math.Abs(m-mean) <= half {
				inside++
			}
			groups++
		}
		lo, hi := share(inside, groups, 1)
		return Between(float64(inside)/float64(groups), lo, hi, 0.90, 1, groups,
			fmt.Sprintf("%d of %d intervals", inside, groups))
	}
}
