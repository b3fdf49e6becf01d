package paper

import (
	"context"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A programRule is AdaP-TT of [Azize et al. 2023], or something between it and the program that was
// published with it.
type programRule struct {
	name  string
	build func(arms int, budget privacy.Budget, risk float64, coins policy.Coins) (identify.Identifier, error)
}

// The names of programRules.
const (
	asPaper        = "the paper"
	paperThreshold = "the paper, threshold of the program"
	paperUnclipped = "the paper, threshold of the program, means unclipped"
	asProgram      = "the program"
	programClipped = "the program, means clipped"
)

func programRules() []programRule {
	paper := func(arms int, budget privacy.Budget, risk float64,
		more ...identify.TopTwoOption) (identify.Identifier, error) {
		return identify.NewAdaPTT(arms, budget, risk, append(more, identify.WithSigma(1))...)
	}
	return []programRule{
		{asPaper, func(arms int, budget privacy.Budget, risk float64,
			_ policy.Coins) (identify.Identifier, error) {
			return paper(arms, budget, risk)
		}},
		{paperThreshold, func(arms int, budget privacy.Budget, risk float64,
			_ policy.Coins) (identify.Identifier, error) {
			threshold, err := identify.NewPublishedThreshold(risk)
			if err != nil { // of a worker, whom nobody catches
				return nil, err
			}
			return paper(arms, budget, risk, identify.WithThreshold(threshold))
		}},
		{paperUnclipped, func(arms int, budget privacy.Budget, risk float64,
			_ policy.Coins) (identify.Identifier, error) {
			threshold, err := identify.NewPublishedThreshold(risk)
			if err != nil { // of a worker, whom nobody catches
				return nil, err
			}
			return paper(arms, budget, risk, identify.WithThreshold(threshold), identify.WithUnclippedMeans())
		}},
		{asProgram, func(arms int, budget privacy.Budget, risk float64,
			coins policy.Coins) (identify.Identifier, error) {
			return identify.NewPublishedAdaPTT(arms, budget, risk, coins)
		}},
		{programClipped, func(arms int, budget privacy.Budget, risk float64,
			coins policy.Coins) (identify.Identifier, error) {
			return identify.NewPublishedAdaPTT(arms, budget, risk, coins, identify.WithClippedMeans())
		}},
	}
}

// programRuns are runs of a rule: plays, what the rule reports of them, wrong answers, and runs
// that reached the cap.
type programRuns struct {
	plays, reported []float64
	wrong, never    int
}

func (r programRule) play(ctx context.Context, c programCell, seed uint64, most, runs int) (programRuns, error) {
	out := programRuns{plays: make([]float64, runs), reported: make([]float64, runs)}
	in, err := bandit.BernoulliInstance(c.means...)
	if err != nil {
		return out, err
	}
	budget := privacy.Pure{Epsilon: c.epsilon}
	one := func(run int) (answer int, err error) {
		key := noise.Key{Seed: seed, Experiment: c.name, Run: run, Role: noise.RoleReward}
		own := noise.Key{Seed: seed, Experiment: c.name, Cell: r.name, Run: run, Role: noise.RoleNoise}
		coins := own
		coins.Role = noise.RolePolicy
		rule, err := r.build(len(c.means), budget, programRisk, sim.NewCoins(&coins.Fast(1)[0]))
		if err != nil {
			return 0, err
		}
		var result sim.IdentifyResult
		if err := sim.Identify(ctx, sim.IdentifyConfig{Policy: rule, Instance: in, Cap: most,
			Rewards: key.Fast(len(c.means)), Noise: &own.Fast(1)[0]}, &result); err != nil {
			return 0, err
		}
		out.plays[run], out.reported[run] = float64(result.Tau), float64(result.Tau)
		if p, ok := rule.(*identify.PublishedAdaPTT); ok {
			out.reported[run] = float64(p.Ended())
		}
		return result.Answer, nil
	}
	answers := make([]int, runs)
	err = pool.Run(ctx, 0, runs, func() func(context.Context, int) error {
		return func(_ context.Context, i int) (err error) {
			answers[i], err = one(i)
			return err
		}
	})
	for _, a := range answers {
		switch {
		case a < 0:
			out.never++
		case a > 0:
			out.wrong++
		}
	}
	return out, err
}

// programRisk is high enough for wrong answers to be counted.
const programRisk = 0.1

// A programCell is an instance, whose first arm is the best, and a budget.
type programCell struct {
	name    string
	epsilon float64
	means   []float64
	hard    bool
}

func programCells() []programCell {
	return []programCell{
		{"0.6 and 0.5, ε = 0.05", 0.05, []float64{0.6, 0.5}, false},
		{"0.8 and three of 0.5, ε = 0.5", 0.5, []float64{0.8, 0.5, 0.5, 0.5}, false},
		{"0.5 and 0.45, ε = 0.01", 0.01, []float64{0.5, 0.45}, false},
		{"0.5 and four of 0.48, ε = 0.01", 0.01, []float64{0.5, 0.48, 0.48, 0.48, 0.48}, true},
		{"0.55 and nine of 0.5, ε = 0.01", 0.01,
			append([]float64{0.55}, slices.Repeat([]float64{0.5}, 9)...), true},
	}
}

// programMeans are what came of the runs of a rule on a cell: mean plays, and those that are
// reported, with their standard errors.
type programMeans struct{ Plays, PlaysSE, Reported, ReportedSE, Wrong, Unanswered, Runs float64 }

// publishedProgram: [Azize et al. 2023]'s program of AdaP-TT beside the algorithm that it stands for.
func publishedProgram() Figure {
	cells := programCells()
	key := func(c programCell, name string) string { return c.name + ": " + name }
	rate := func(of func(programCell) bool, name string) Check {
		return func(e *Evidence) Finding {
			var parts []Finding
			for _, c := range cells {
				if !of(c) {
					continue
				}
				x := named[programMeans](e, key(c, name))
				parts = append(parts, atMost(int(x.Wrong), int(x.Runs), programRisk, len(cells),
					fmt.Sprintf("%s: %.0f of %.0f wrong, %.0f without an answer", c.name, x.Wrong,
						x.Runs, x.Unanswered)))
			}
			// The worst cell of an answer speaks for it.
			slices.SortStableFunc(parts, func(a, b Finding) int {
				if a.Value > b.Value {
					return -1
				}
				return 1
			})
			return Every(parts)
		}
	}
	easy := func(c programCell) bool { return !c.hard }
	all := func(programCell) bool { return true }
	plays := func(x programMeans) estimate { return estimate{x.Plays, x.PlaysSE, int(x.Runs)} }
	reported := func(x programMeans) estimate { return estimate{x.Reported, x.ReportedSE, int(x.Runs)} }
	ratio := func(judge judgement, a, b string, over, under func(programMeans) estimate) Check {
		return func(e *Evidence) Finding {
			var parts []Finding
			for _, c := range cells {
				x := over(named[programMeans](e, key(c, a)))
				y := under(named[programMeans](e, key(c, b)))
				q := x.mean / y.mean
				// whatever their correlation
				half := stats.T(x.runs, level(len(cells))) * q * (x.se/x.mean + y.se/y.mean)
				parts = append(parts, judge(q, q-half, q+half, x.runs,
					fmt.Sprintf("%s: %.0f against %.0f", c.name, x.mean, y.mean)))
			}
			return Every(parts)
		}
	}
	return Figure{
		ID: "faults-program", Source: "004", Where: "Algorithm 2, Theorem 4, and the program " +
			"published with it", Title: "AdaP-TT of the paper, and AdaP-TT of its program",
		About: "The program that was published with [Azize et al. 2023] " +
			"(github.com/achraf-azize/DP-BAI, commit " +
			"c8d8be2) beside Algorithm 2. It stops by a shorter threshold, log(1/δ) + log(1 + " +
			"log n) + log(1 + log m) + (1/n + 1/m)(log(1/δ)/ε)²; tests the " +
			"leader of the phase, by a statistic of either sign, and answers the arm of the " +
			"highest mean; tosses a coin where the paper tracks; adds 1/(1 + √n) to the " +
			"challenger's gaps; and reports the plays of the phases that have ended. Our " +
			"twin of it was written from what it does, and has its law of stopping times: a test " +
			"compares both on runs of the program itself.",
		Chosen: "Instances, budgets and δ = 0.1 are ours: wrong answers are too rare to be " +
			"counted at the source's δ = 0.01, at which the program errs less often than δ on " +
			"the source's own instances (figure bai-2). All rules have σ = 1, " +
			"as Theorem 4. The rules called the paper's clip means to [0, 1] and have log n in " +
			"the leader's bonus, since runs of the printed rule may never stop. A run ends after 10⁹ plays.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			runs := p.size(2000, 200)
			n.Runs = runs
			grid := report.Table{Title: "Plays and wrong answers at δ = 0.1",
				Head: []string{"rule", "mean plays", "±", "as reported", "wrong",
					"without an answer", "runs"}, Text: 1, Notes: []string{"±: 99 % interval"}}
			for _, c := range cells {
				group := report.Group{Head: c.name}
				for _, rule := range programRules() {
					r := need(rule.play(ctx, c, n.seed(21504), 1_000_000_000, runs))
					m, half := stats.Half(r.plays, Level)
					_, _, se := stats.Mean(r.plays)
					reported, _, seReported := stats.Mean(r.reported)
					n.set(key(c, rule.name), programMeans{m, se, reported, seReported,
						float64(r.wrong), float64(r.never), float64(runs)})
					group.Rows = append(group.Rows, []string{rule.name, fmt.Sprintf("%.0f", m),
						fmt.Sprintf("%.0f", half), fmt.Sprintf("%.0f", reported),
						fmt.Sprint(r.wrong), fmt.Sprint(r.never), fmt.Sprint(runs)})
				}
				grid.Groups = append(grid.Groups, group)
			}
			n.Tables = []report.Table{grid}
		},
		Claims: []Claim{
			{
				ID: "correct", Text: "What the experiments of [Azize et al. 2023] play is " +
					"δ-correct, as Algorithm 2 is.",
				Where: "§5, \"to provide a δ-correct answer\", and Appendix F",
				Statistic: "Share of wrong answers of the program on each instance, " +
					"Clopper–Pearson: holds if at most δ = 0.1.",
				Decide: rate(all, asProgram), IfFails: ProgramDiffers,
				Why: "On [Azize et al. 2023]'s own instances, at its δ = 0.01, the program errs " +
					"less often than " +
					"δ, as Appendix F says (figure bai-2). Its threshold has neither the union " +
					"bound over phases and arms nor all of the noise of both arms. With two " +
					"arms, or a large gap, it errs less often than δ. With many close arms at a " +
					"small ε it takes two things together: " +
					"private means of few plays that are far outside [0, 1], and its own way to " +
					"play and to test. With means clipped to [0, 1] nearly all wrong answers are " +
					"gone, and the rule of the paper errs less often than δ either way.",
				Reader: "On the source's instances the program errs less often than δ; on close " +
					"arms at a small ε, of ours, more often. Clip private means, and take the " +
					"threshold of Theorem 4 where answers have to be right by proof.",
			},
			{
				ID: "correct-easy", Text: "It is with two arms, and with a large gap.", Own: true,
				Statistic: "The same on the first three instances.", Decide: rate(easy, asProgram),
			},
			{
				ID: "threshold", Text: "The rule of the paper, its means not clipped, errs at " +
					"most as often as δ with that threshold on all of these instances.", Own: true,
				Statistic: "Share of wrong answers of that rule on each instance: holds if at " +
					"most δ = 0.1.", Decide: rate(all, paperUnclipped),
			},
			{
				ID: "clipped", Text: "With private means clipped to [0, 1], which costs no " +
					"privacy, the program errs at most as often as δ on all of these instances.", Own: true,
				Statistic: "Share of wrong answers of the program with clipped means on each " +
					"instance: holds if at most δ = 0.1.", Decide: rate(all, programClipped),
			},
			{
				ID: "proved", Text: "AdaP-TT with the threshold of Theorem 4 is δ-correct.",
				Where: "Theorem 4", Statistic: "Share of wrong answers of the paper's rule on " +
					"each instance: holds if at most δ = 0.1.", Decide: rate(all, asPaper),
				IfHolds: NotContradicted, Why: theoremWhy,
			},
			{
				ID: "samples", Text: "AdaP-TT in the experiments of [Azize et al. 2023] is " +
					"Algorithm 2 with the " +
					"threshold of Theorem 4: no other is named.", Where: "§5 and Appendix F",
				Statistic: "Mean plays of the program over those of the paper's rule, on each " +
					"instance: holds if in 1 ± 0.1, which is ours.",
				Decide: ratio(between(0.9, 1.1), asProgram, asPaper, plays, plays), IfFails: ProgramDiffers,
				Why: "That the published program has another threshold is read off its text; how " +
					"much it matters is what is played, and nearly all of it is the threshold's. " +
					"What §5 says of its figures comes out with the program; with the proved " +
					"threshold AdaP-TT takes " +
					"more plays than DP-SE there (figures bai-1 and bai-2).",
				Reader: "Read the curves of §5 as those of the published program; the theorem is " +
					"about another rule, and what that costs is on the pages of the figures.",
			},
			{
				ID: "reported", Text: "The stopping times in the figures of [Azize et al. 2023] " +
					"count all plays.",
				Where: "Figures 1 and 2", Statistic: "Mean of what the program reports over the " +
					"mean of its plays, on each instance: holds if in 1 ± 0.02, which is ours.",
				Decide:  ratio(between(0.98, 1.02), asProgram, asProgram, reported, plays),
				IfFails: ProgramDiffers,
				Why: "It sums the plays of the phases that have ended when it stops, and " +
					"leaves out what was played in the phases of other arms that were open.",
				Reader: "Add 11 to 30 % to the stopping times of AdaP-TT in the figures; those " +
					"of DP-SE and TTUCB are complete.",
			},
		},
	}
}

// publishedMeans: the DP-SE of [Azize et al. 2023]'s program divides the sum of an epoch by
// all plays so far.
func publishedMeans() Figure {
	judge := between(0.95, 1.05)
	return Figure{
		ID: "faults-means", Source: "004", Where: "§5, DP-SE, and the program published with it",
		Title: "The sum of an epoch over all plays so far",
		About: "DP-SE [Sajed 2019, Algorithm 9], with which [Azize et al. 2023] compares " +
			"AdaP-TT, forgets the rewards of " +
			"earlier epochs. Its program forgets the sum and keeps the count: each mean is the " +
			"sum of the last epoch over all plays of the arm. So from the second epoch " +
			"on means, and gaps, are too small by the share of the last epoch, while noise and " +
			"confidence are not, and arms are dropped an epoch later where that share tips the scale.",
		Chosen: "The instances and δ of [Azize et al. 2023, Appendix F], at four of its budgets.",
		Experiments: []Experiment{{Name: "means", File: "faults-means.yaml", Quick: func(s *experiment.Spec) {
			s.Runs = 100
		}}},
		Claims: []Claim{
			{ID: "same", Text: "The DP-SE of [Azize et al. 2023]'s figures is that of [Sajed 2019].",
				Where: "§1.1, \"DP-SE [SS19] is an ε-global DP version\", and §4, \"Comparison " +
					"to DP-SE\"", Statistic: "Mean plays of the program's DP-SE " +
					"over those of [Sajed 2019]'s, paired, in each cell: holds if in 1 ± 0.05, which is ours.",
				Decide: overRows("means", dpse, dpseOf002, judge), IfFails: ProgramDiffers,
				Why: "Where the share tips the scale it costs a whole epoch, of four times " +
					"the length of the last, or of twice where noise rules.",
				Reader: "Where [Azize et al. 2023]'s figures have DP-SE far behind AdaP-TT, compare with the " +
					"DP-SE of [Sajed 2019] (figure bai-2 shows both)."},
		},
	}
}
