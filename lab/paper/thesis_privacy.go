package paper

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// auditGamma is the error probability of an audit that claims are decided by: a lower bound on ε
// that is above what was claimed fails a claim at Level.
const auditGamma = 1 - Level

// Numbers of Figure 2.1 and what stands beside it.
type (
	// slack of each mechanism, and with half its noise
	slacks struct{ Laplace, Gaussian, HalfLaplace, HalfGaussian float64 }
	// of randomised response with a leak: how far its errors are from the border, its advantage
	// from the third limit, and by how much the second and the first limit are above that
	leak struct{ Apart, Advantage, Second, First float64 }
	// exact δ over the claimed one: the largest and where, the largest below ε = 1, and the first ε
	// with more than 1
	calibration struct{ Worst, Epsilon, Delta, BelowOne, FirstAbove float64 }
	groupMass   struct{ Mass, Printed, Corrected float64 }
	// ε by an audit of games: the lower bound, and by the errors as counted
	gamesEpsilon struct{ Low, Counted float64 }
)

// Numbers of Figure 2.2: ε by the audit of a tree, and a curve over T = 2³ to 2²⁰.
type (
	treeEpsilon struct {
		gamesEpsilon
		True float64
	}
	overHorizons [18]float64
)

// ofDefinition has the exact numbers of a definition of privacy: of the policy of Appendix A, δ at
// ε = 0.95, ε at δ = 0.17 and δ at ε = 0.98, and of ours δ at ε = 0.5.
type ofDefinition struct{ Delta95, Epsilon17, Delta98, Ours float64 }

// beyondOne is ε by games whose likelihood ratio is constant from a score of 1 on: one threshold,
// fixed before the games.
func beyondOne(s audit.Scores) gamesEpsilon {
	r := need(s.Region(auditGamma, 1))
	b := need(r.Epsilon(0))
	m := need(s.At(1, Level))
	return gamesEpsilon{b.Epsilon, audit.EpsilonOf(m.TypeI.Value, m.TypeII.Value, 0)}
}

// modelsApart are the largest differences of the definitions of privacy over random policies.
type modelsApart struct {
	Policies, Pure, TableView, InteractiveTable, ContinualTable float64
	Conversion                                                  float64
	// policies that have a smaller δ under Interactive than under continual release,
	// and that have not
	Less, NotLess float64
}

func normalTail(x float64) float64 { return 0.5 * math.Erfc(x/math.Sqrt2) }

func laplaceTail(x, scale float64) float64 {
	if x < 0 {
		return 1 - 0.5*math.Exp(x/scale)
	}
	return 0.5 * math.Exp(-x/scale)
}

// slack is how far the tests "above t" of a number that a target moves by one stay inside the
// region of (2.3) and (2.4): negative if one is outside.
func slack(tail func(x float64) float64, epsilon, delta float64) float64 {
	least := math.Inf(1)
	for i := -4000; i <= 4000; i++ {
		t := float64(i) / 200
		alpha, beta := tail(t), 1-tail(t-1)
		least = min(least, alpha+math.Exp(epsilon)*beta-1+delta, math.Exp(epsilon)*alpha+beta-1+delta)
	}
	return least
}

// none decides that a difference of models is 0 but for rounding.
func none(of func(modelsApart) float64) Check {
	return judged("random", func(n modelsApart) (float64, bool, string) {
		return of(n), of(n) < 1e-9, fmt.Sprintf("%.0f policies", n.Policies)
	})
}

func thesis21() Figure {
	return Figure{
		ID: "thesis-2.1", Source: "000", Where: "Figure 2.1, Theorem 2.4, §2.1 and §2.3.6",
		Title: "What differential privacy leaves of a test",
		About: "The smallest Type II error that (ε,δ)-DP allows at each Type I error, mechanisms " +
			"whose errors are known exactly, and [Azize 2024]'s limits of an adversary's " +
			"advantage and of noise. " +
			"The lines of games are audits: a count with Laplace noise, and one with half the noise it claims.",
		Chosen: "The source's drawing has no numbers; ε = 0.5, 1, 2 and δ = 0, 0.1 are ours. " +
			"Mechanisms are a count with Laplace and with Gaussian noise, and randomised " +
			"response that tells all with probability δ.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			region := report.Figure{
				ID: "thesis-2.1", Title: "Errors that differential privacy allows",
				Subtitle: "a test must stay above the line of its mechanism",
				XLabel:   "Type I error α", YLabel: "Type II error β",
			}
			for _, c := range [][2]float64{{0.5, 0}, {1, 0}, {1, 0.1}, {2, 0}} {
				s := report.Series{Label: fmt.Sprintf("limit, ε = %v, δ = %v", c[0], c[1])}
				for i := range 101 {
					alpha := float64(i) / 100
					beta := need(audit.TradeOff(c[0], c[1], alpha))
					s.X, s.Mean = append(s.X, alpha), append(s.Mean, beta)
				}
				region.Series = append(region.Series, s)
			}
			// Exact errors: Laplace and analytically calibrated Gaussian noise inside, half of
			// the noise outside.
			sigma := need(privacy.AnalyticSigma(privacy.Approx{Epsilon: 1, Delta: 0.1}))
			n.set("slack", slacks{
				slack(func(x float64) float64 { return laplaceTail(x, 1) }, 1, 0),
				slack(func(x float64) float64 { return normalTail(x / sigma) }, 1, 0.1),
				slack(func(x float64) float64 { return laplaceTail(x, 0.5) }, 1, 0),
				slack(func(x float64) float64 { return normalTail(2 * x / sigma) }, 1, 0.1),
			})
			// Randomised response with a leak has the corners (0, 1−δ), (q, q), (1−δ, 0), q =
			// (1−δ)/(1+e^ε): mixing them is the whole border.
			var apart, advantage, looser, yeom float64
			yeom = math.Inf(1)
			looser = math.Inf(1)
			for _, epsilon := range []float64{0.01, 0.1, 0.5, 1, 2, 5, 10} {
				for _, delta := range []float64{0, 1e-5, 0.01, 0.1, 0.5, 0.9} {
					q := (1 - delta) / (1 + math.Exp(epsilon))
					for i := range 1001 {
						alpha := float64(i) / 1000
						f := need(audit.TradeOff(epsilon, delta, alpha))
						beta := 0.0
						switch {
						case alpha <= q:
							beta = 1 - delta - alpha*(1-delta-q)/q
						case alpha <= 1-delta:
							beta = q * (1 - delta - alpha) / (1 - delta - q)
						}
						apart = max(apart, math.Abs(f-beta))
					}
					a := need(audit.AdvantageLimit(epsilon, delta))
					e := need(audit.AdvantageLimitErlingsson(epsilon, delta))
					advantage, looser = max(advantage, math.Abs(1-2*q-a)), min(looser, e-a)
					if delta == 0 {
						y := need(audit.AdvantageLimitYeom(epsilon))
						yeom = min(yeom, y-a)
					}
				}
			}
			n.set("border", leak{apart, advantage, looser, yeom})
			// Theorem 2.14's Gaussian noise, and the δ that it has.
			g := report.Figure{ID: "thesis-2.14", Title: "Gaussian noise of variance 2 " +
				"log(1.25/δ)/ε²", Subtitle: "Theorem 2.14: the δ it has over the δ it claims",
				XLabel: "ε", YLabel: "δ over the claimed δ", LogX: true, LogY: true}
			worst, at, atDelta := 0.0, 0.0, 0.0
			belowOne, first := 0.0, math.Inf(1)
			for _, delta := range []float64{1e-6, 1e-3, 0.05} {
				s := report.Series{Label: fmt.Sprintf("δ = %v", delta)}
				for i := range 121 {
					epsilon := 0.1 * math.Pow(1000, float64(i)/120)
					ratio := privacy.GaussianDelta(epsilon, epsilon/math.Sqrt(2*math.Log(1.25/delta))) / delta
					s.X, s.Mean = append(s.X, epsilon), append(s.Mean, ratio)
					if ratio > worst {
						worst, at, atDelta = ratio, epsilon, delta
					}
					if ratio > 1 {
						first = min(first, epsilon)
					}
					if epsilon < 1 {
						belowOne = max(belowOne, ratio)
					}
				}
				g.Series = append(g.Series, s)
			}
			n.set("gaussian", calibration{worst, at, atDelta, belowOne, first})
			// ρ-zCDP to (ε,δ), against the mechanism that is ρ-zCDP and no better.
			most := 0.0
			for _, rho := range []float64{1e-4, 0.01, 0.1, 1, 10} {
				for _, delta := range []float64{1e-9, 1e-6, 1e-3, 0.1} {
					most = max(most, privacy.GaussianEpsilon(math.Sqrt(2*rho),
						delta)/(rho+2*math.Sqrt(rho*math.Log(1/delta))))
				}
			}
			n.set("zcdp", most)
			// Groups of two: an event with probabilities 0, δ and (1+e^ε)δ under D, D′, D″.
			const epsilon, delta = 3, 0.001
			n.set("group", groupMass{(1 + math.Exp(epsilon)) * delta, 2 * math.E * delta,
				2 * math.Exp(epsilon) * delta})
			// Games.
			games := p.size(400_000, 60_000)
			n.Runs = games
			for _, c := range []struct {
				name, key string
				scale     float64
			}{{"Laplace noise for ε = 1", "sound", 1}, {"half of it", "half", 0.5}} {
				scores := need(audit.Play(ctx, games, 1, 0,
					noise.Key{Seed: n.seed(21021), Experiment: "thesis-2.1 " + c.key},
					func() func(bool, *noise.Fast, []float64) error {
						return func(in bool, src *noise.Fast, out []float64) error {
							if out[0] = src.Laplace(c.scale); in {
								out[0]++
							}
							return nil
						}
					}))
				n.set("games "+c.key, beyondOne(scores[0]))
				s := report.Series{Label: "games, " + c.name, Step: true}
				for i := range 61 {
					m := need(scores[0].At(3-float64(i)/10, Level))
					s.X, s.Mean = append(s.X, m.TypeI.Value), append(s.Mean, m.TypeII.Value)
					s.Lo, s.Hi = append(s.Lo, m.TypeII.Lo), append(s.Hi, m.TypeII.Hi)
				}
				region.Series = append(region.Series, s)
			}
			n.Figures = []report.Figure{region, g}
		},
		Claims: []Claim{
			{
				ID: "region", IfHolds: NotContradicted, Text: "Every test of an (ε,δ)-DP " +
					"mechanism has α + e^ε β ≥ 1 − δ and e^ε α + β ≥ 1 − δ.",
				Where: "Theorem 2.4 in §2.1.2; (2.28) and (2.29) in §2.3.6",
				Statistic: "The smallest slack of both over all thresholds, exact, for Laplace " +
					"noise at ε = 1 and Gaussian noise at (1, 0.1); holds if it is not negative",
				Decide: judged("slack", func(n slacks) (float64, bool, string) {
					s := min(n.Laplace, n.Gaussian)
					return s, s > -1e-12, fmt.Sprintf("slack %.2g with Laplace, %.2g with "+
						"Gaussian noise", n.Laplace, n.Gaussian)
				}),
			},
			{
				ID: "converse", Text: "Where a mechanism is not (ε,δ)-DP, some test violates them.",
				Where:     "Theorem 2.4 in §2.1.2",
				Statistic: "The same slack with half the noise; holds if it is negative for both",
				Decide: judged("slack", func(n slacks) (float64, bool, string) {
					s := max(n.HalfLaplace, n.HalfGaussian)
					return s, s < 0, fmt.Sprintf("slack %.3f with Laplace, %.3f with Gaussian noise",
						n.HalfLaplace, n.HalfGaussian)
				}),
			},
			{
				ID: "audit", Text: "So games with a mechanism bound its ε from below: half of " +
					"the Laplace noise for ε = 1 is found out.", Where: "Definition 2.35 in §2.3.7",
				Statistic: "The lower bound on ε from games at one fixed threshold; holds if it is above 1",
				Decide: func(e *Evidence) Finding {
					half := named[gamesEpsilon](e, "games half")
					f := Finding{Answer: Undecided, Value: half.Counted, Low: half.Low,
						High: math.NaN(), Runs: e.Numbers.Runs, Detail: fmt.Sprintf("true ε 2; "+
							"with all of the noise the bound is %.3f",
							named[gamesEpsilon](e, "games sound").Low)}
					if half.Low > 1 {
						f.Answer = Holds
					}
					return f
				},
			},
			{
				ID: "attained", Text: "The region is exactly what (ε,δ)-DP allows: a mechanism " +
					"has all of its border.", Where: "Figure 2.1 in §2.1.2",
				Statistic: "The largest distance between the border and the errors of randomised " +
					"response with a leak, exact, for 42 pairs (ε,δ); holds if it is 0 up to rounding",
				Decide: judged("border", func(n leak) (float64, bool, string) {
					return n.Apart, n.Apart < 1e-12, "largest distance of 42 042 points"
				}),
			},
			{
				ID: "advantage", Text: "An adversary's advantage is at most e^ε − 1, 1 − " +
					"e^{−ε}(1−δ) and (e^ε − 1 + 2δ)/(e^ε + 1), and the last is tighter than the " +
					"second.", Where: "§2.3.6",
				Statistic: "The smallest difference of the first two to the third, which " +
					"randomised response with a leak attains, for 42 pairs (ε,δ); holds if it is not negative",
				Decide: judged("border", func(n leak) (float64, bool, string) {
					m := min(n.Second, n.First)
					return m, m > -1e-12 && n.Advantage < 1e-12, fmt.Sprintf("second above the third by "+
						"%.2g at least, the first by %.2g; the third is attained up to %.1g",
						n.Second, n.First, n.Advantage)
				}),
			},
			{
				ID: "gaussian", Text: "Gaussian noise of variance 2 log(1.25/δ)/ε² is (ε,δ)-DP, " +
					"for every ε as it is printed.", Where: "Theorem 2.14 in §2.1.4",
				Statistic: "The exact δ over the claimed one, largest for ε from 0.1 to 100 and " +
					"δ = 10⁻⁶, 10⁻³, 0.05; holds if at most 1",
				Decide: judged("gaussian", func(n calibration) (float64, bool, string) {
					return n.Worst, n.Worst <= 1, fmt.Sprintf("for ε < 1 at most %.2f times; first "+
						"above 1 at ε = %.3g; %.3g times at ε = %.3g, δ = %v",
						n.BelowOne, n.FirstAbove, n.Worst, n.Epsilon, n.Delta)
				}),
				IfFails: Misprint,
				Why: "The theorem is quoted from Dwork and Roth (2014, Theorem A.1), who ask " +
					"for ε < 1; the condition was lost. With it the theorem is right, and the " +
					"thesis uses it with no larger ε.",
				Reader: "Use the formula for ε below 1, where it is safe and a little wasteful; " +
					"above, calibrate by the exact δ of Gaussian noise (Balle and Wang 2018).",
			},
			{
				ID: "zcdp", IfHolds: NotContradicted, Text: "ρ-zCDP is (ρ + 2√(ρ log(1/δ)), δ)-DP.",
				Where: "Proposition 2.6 in §2.1.2",
				Statistic: "The exact ε of Gaussian noise, which is ρ-zCDP and no better, over " +
					"the formula, largest for 20 pairs (ρ,δ); holds if at most 1",
				Decide: judged("zcdp", func(most float64) (float64, bool, string) {
					return most, most <= 1, fmt.Sprintf("at most %.3f of it", most)
				}),
			},
			{
				ID: "group", Text: "For k records, (ε,δ)-DP gives M_D(A) ≤ e^{kε} M_{D′}(A) + k " +
					"e^{k−1} δ, for every ε as it is printed.", Where: "Proposition 2.8, (2.5), in §2.1.3",
				Statistic: "M_D(A) of the event with probabilities 0, δ and (1+e^ε)δ under three " +
					"datasets in a row, which is (ε,δ)-DP, over 2eδ, that is k = 2, at ε = 3; " +
					"holds if at most 1",
				Decide: judged("group", func(n groupMass) (float64, bool, string) {
					return n.Mass / n.Printed, n.Mass <= n.Printed, fmt.Sprintf("%.4f, printed limit %.4f; "+
						"with e^{(k−1)ε} it is %.4f", n.Mass, n.Printed, n.Corrected)
				}),
				IfFails: Misprint,
				Why: "The factor is k·e^{(k−1)ε} (Vadhan 2017, Lemma 2.2; add up k steps of " +
					"(ε,δ)-DP); in our text, which is a conversion, the ε is missing from the exponent. " +
					"For ε ≤ 1 what is printed is the larger, and true. The lower bounds of " +
					"chapter 4 use the proposition with δ = 0, where there is no such term.",
				Reader: "Read e^{(k−1)ε} for e^{k−1}.",
			},
		},
	}
}

func thesis22() Figure {
	const epsilon, small = 1.0, 8
	return Figure{
		ID: "thesis-2.2", Source: "000", Where: "Figure 2.2, §2.1.5",
		Title: "The binary tree: what a count costs that is released in every round",
		About: "In how many partial sums a step is, how many make a count, and what noise " +
			"follows, exactly, for T from 8 to 2²⁰; and an audit of the tree with the noise that " +
			"the source names, at T = 8.",
		Chosen: "Logarithms are to base 2. The source's O() leaves constants open; we take them " +
			"as 1 where a claim has a number. A count's error is its standard deviation, largest over rounds.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			fig := report.Figure{ID: "thesis-2.2", Title: "Noise in a running count",
				Subtitle: "largest standard deviation over rounds, ε = 1, each mechanism at the " +
					"noise that is ε-DP", XLabel: "horizon T", YLabel: "standard deviation",
				LogX: true, LogY: true}
			tree, one, two := report.Series{Label: "binary tree"},
				report.Series{Label: "Simple I: each count anew"},
				report.Series{Label: "Simple II: each reward once"}
			grid := report.Table{Title: "Partial sums of the binary tree",
				Head: []string{"T", "log₂ T", "sums with a step, at most",
					"sums for a count, at most", "ε at scale (log₂ T)/ε"}}
			var rows [][]string
			for k := 3; k <= 20; k++ {
				horizon := 1 << k
				// A step is in one node of each of the levels 0 to k; a count t is made of as many
				// nodes as t has bits.
				in, most := k+1, 0
				for t := 1; t <= horizon; t++ {
					most = max(most, bits.OnesCount(uint(t)))
				}
				n.Values["log"] = append(n.Values["log"], float64(k))
				n.Values["in"] = append(n.Values["in"], float64(in))
				n.Values["most"] = append(n.Values["most"], float64(most))
				sd := math.Sqrt(2*float64(most)) * float64(k+1) / epsilon
				n.Values["sd"] = append(n.Values["sd"], sd)
				n.Values["sd one"] = append(n.Values["sd one"], math.Sqrt2*float64(horizon)/epsilon)
				n.Values["sd two"] = append(n.Values["sd two"], math.Sqrt(2*float64(horizon))/epsilon)
				x := float64(horizon)
				tree.X, tree.Mean = append(tree.X, x), append(tree.Mean, sd)
				one.X, one.Mean = append(one.X, x), append(one.Mean, math.Sqrt2*x)
				two.X, two.Mean = append(two.X, x), append(two.Mean, math.Sqrt(2*x))
				rows = append(rows, []string{fmt.Sprint(horizon), fmt.Sprint(k), fmt.Sprint(in),
					fmt.Sprint(most), fmt.Sprintf("%.3f", float64(k+1)/float64(k))})
			}
			grid.Groups = []report.Group{{Rows: rows}}
			fig.Series = []report.Series{tree, one, two}
			n.Figures, n.Tables = []report.Figure{fig}, []report.Table{grid}
			n.set("seven", float64(bits.OnesCount(7)))
			// The first reward of 8 is in log₂8 + 1 = 4 sums. All others are known and taken off. A
			// sum's likelihood ratio saturates, so the test is that all four are at 1 or more.
			n.Runs = 3_000_000
			if p == Quick {
				n.Runs = 300_000
			}
			levels := bits.Len(uint(small))
			for name, scale := range map[string]float64{"printed": float64(levels-1) / epsilon,
				"right": float64(levels) / epsilon} {
				scores := need(audit.Play(ctx, n.Runs, 1, 0,
					noise.Key{Seed: n.seed(21022), Experiment: "thesis-2.2 " + name},
					func() func(bool, *noise.Fast, []float64) error {
						return func(in bool, src *noise.Fast, out []float64) error {
							out[0] = math.Inf(1)
							for range levels {
								x := src.Laplace(scale)
								if in {
									x++
								}
								out[0] = min(out[0], x)
							}
							return nil
						}
					}))
				n.set("audit "+name, treeEpsilon{beyondOne(scores[0]), float64(levels) / scale})
			}
		},
		Claims: []Claim{
			{
				ID: "seven", Text: "The sum of steps 1 to 7 is that of three partial sums.",
				Statistic: "Nodes that cover [1, 7], counted; holds if 3",
				Decide: judged("seven", func(sums float64) (float64, bool, string) {
					return sums, sums == 3, "[1,4], [5,6], [7,7]"
				}),
			},
			{
				ID: "private", Text: "A step is in at most log T partial sums, so that noise of " +
					"scale log(T)/ε in each makes the tree ε-DP.", Where: "§2.1.5, (a)",
				Statistic: "ε at T = 8 for a claimed ε = 1, with logarithms to base 2, as a tree " +
					"of depth log₂T has: counted, and bounded from below by audit; fails if the " +
					"bound is above 1",
				Decide: func(e *Evidence) Finding {
					x := named[treeEpsilon](e, "audit printed")
					f := Finding{Answer: Undecided, Value: x.Counted, Low: x.Low, High: x.True,
						Runs: e.Numbers.Runs, Detail: fmt.Sprintf("step 1 is in 4 sums at T = 8, "+
							"so that ε is 4/3 = %.3f; with scale (log₂T + 1)/ε the audit has "+
							"%.3f of 1", x.True, named[treeEpsilon](e, "audit right").Low)}
					if x.Low > 1 {
						f.Answer = Fails
					}
					return f
				},
				Weaker: judged("in", func(sums overHorizons) (float64, bool, string) {
					last := sums[len(sums)-1]
					return last / 20, last <= 2*20, "O(log T): 21 sums at T = 2²⁰"
				}),
				Why: "A step is in one sum on each of log₂T + 1 levels, the leaves and the root " +
					"included. The order, which is what the chapter is about and also says, is " +
					"right; the constant in front is 1 + 1/log₂T, a fifth more at T = 32 and a " +
					"twentieth at 2²⁰. " +
					"[Sajed 2019, Theorem 3.3.1] has it right, ⌈log₂T⌉ + 1.",
				Reader: "Take noise of scale (⌈log₂T⌉ + 1)/ε in the tree, and not log(T)/ε: a " +
					"step is in one more partial sum.",
			},
			{
				ID: "counts", IfHolds: NotContradicted, Text: "Every count is the sum of O(log " +
					"T) partial sums.", Where: "§2.1.5, (b)",
				Statistic: "Most sums that a count needs, minus log₂ T, largest for T = 8 to " +
					"2²⁰; holds if at most 0",
				Decide: func(e *Evidence) Finding {
					most, log := named[overHorizons](e, "most"), named[overHorizons](e, "log")
					worst := math.Inf(-1)
					for i, sums := range most {
						worst = max(worst, sums-log[i])
					}
					return exact(worst, worst <= 0, "T − 1 needs log₂T sums, T one")
				},
			},
			{
				ID: "order", IfHolds: NotContradicted, Text: "The tree's error is of order (log " +
					"T)^1.5/ε in each round.", Where: "§2.1.5",
				Statistic: "Standard deviation over (log₂ T)^1.5/ε, largest over smallest for T " +
					"= 8 to 2²⁰; holds if at most 2, a threshold of ours",
				Decide: func(e *Evidence) Finding {
					sd, log := named[overHorizons](e, "sd"), named[overHorizons](e, "log")
					lo, hi := math.Inf(1), 0.0
					for i := range sd {
						x := sd[i] / math.Pow(log[i], 1.5)
						lo, hi = min(lo, x), max(hi, x)
					}
					return exact(hi/lo, hi/lo <= 2, fmt.Sprintf("%.2f to %.2f times (log₂T)^1.5/ε",
						lo, hi))
				},
			},
			{
				ID: "simple", Text: "Simple Mechanism II has less error than I, and for long " +
					"horizons the tree less than both.", Where: "§2.1.5",
				Statistic: "The smallest T = 2^k from 8 on from which the tree's standard " +
					"deviation is the least and II's the second; holds if there is one up to 2²⁰",
				Decide: func(e *Evidence) Finding {
					tree, two := named[overHorizons](e, "sd"), named[overHorizons](e, "sd two")
					one, from := named[overHorizons](e, "sd one"), 3
					for i := range tree {
						if !(tree[i] < two[i] && two[i] < one[i]) {
							from = i + 4
						}
					}
					return exact(math.Pow(2, float64(from)), from <= 20,
						fmt.Sprintf("before T = %d Simple II has less error than the tree", 1<<from))
				},
				Why: "The tree is not ahead at any horizon that was looked at.",
			},
		},
	}
}

// randomPolicy has random laws, some of them with certainties.
func randomPolicy(r *rand.Rand, arms, rounds int, zeros bool) audit.Finite {
	laws := map[string][]float64{}
	return audit.Finite{Arms: arms, Rounds: rounds, Rewards: 2, Law: func(history []audit.Step, p []float64) {
		key := fmt.Sprint(history)
		law, ok := laws[key]
		if !ok {
			total := 0.0
			for a := range arms {
				w := r.ExpFloat64() + 0.05
				if zeros && a > 0 && r.IntN(8) == 0 {
					w = 0
				}
				law, total = append(law, w), total+w
			}
			for a := range law {
				law[a] /= total
			}
			laws[key] = law
		}
		copy(p, law)
	}}
}

func thesis312() Figure {
	return Figure{
		ID: "thesis-3.12", Source: "000", Where: "Propositions 3.12, 3.13 and 3.15, §3.6, §3.8, " +
			"Appendix A", Title: "Four definitions of privacy for bandits, by exact enumeration",
		About: "View, Table and Interactive DP and DP under adaptive continual release, for " +
			"policies so small that all their neighbours, adversaries and outputs can be listed: " +
			"the source's own counter-example, one of ours, and random policies.",
		Chosen: "Random policies have two arms, two rewards and three rounds, laws from " +
			"exponential weights, a third of them with certainties. Adversaries are " +
			"deterministic, which is enough [Azize 2024, Remark 3.14].",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			grid := report.Table{Title: "Two policies under four definitions",
				Head: []string{"definition", "δ(0.95)", "ε at δ = 0.17", "δ(0.98)", "δ(0.5) of ours"}, Text: 1}
			strict := need(audit.Enumerate(audit.Strictness()))
			ours := need(audit.Enumerate(audit.Separation()))
			var rows [][]string
			for _, m := range audit.Models() {
				var x ofDefinition
				x.Delta95 = need(strict.Delta(m, 0.95))
				x.Epsilon17 = need(strict.Epsilon(m, 0.17))
				x.Delta98 = need(strict.Delta(m, 0.98))
				x.Ours = need(ours.Delta(m, 0.5))
				n.set(m.String(), x)
				rows = append(rows, []string{m.String(), fmt.Sprintf("%.6f", x.Delta95),
					fmt.Sprintf("%.6f", x.Epsilon17), fmt.Sprintf("%.6f", x.Delta98),
					fmt.Sprintf("%.5f", x.Ours)})
			}
			grid.Groups = []report.Group{{Rows: rows}}
			n.Tables = []report.Table{grid}
			fig := report.Figure{
				ID: "thesis-3.12", Title: "One policy under four definitions of privacy",
				Subtitle: "the counter-example to §3.8: Interactive DP is not the strongest",
				XLabel:   "ε", YLabel: "smallest δ",
				Note: "Exact, by enumeration. Where a line is lower the policy is more private " +
					"under that definition.",
			}
			for _, m := range audit.Models() {
				s := report.Series{Label: m.String()}
				for i := range 25 {
					epsilon := float64(i) / 20
					delta := need(ours.Delta(m, epsilon))
					s.X, s.Mean = append(s.X, epsilon), append(s.Mean, delta)
				}
				fig.Series = append(fig.Series, s)
			}
			n.Figures = []report.Figure{fig}
			policies := p.size(200, 30)
			r := rand.New(rand.NewPCG(n.seed(21031), 2))
			const at = 0.4
			var pure, arrows, factor, acrArrow float64
			conversion := math.Inf(-1)
			incomparable := [2]float64{}
			for i := range policies {
				try(ctx.Err())
				e := need(audit.Enumerate(randomPolicy(r, 2, 3, i%3 == 0)))
				var eps, rho, delta [4]float64
				for _, m := range audit.Models() {
					eps[m] = need(e.Epsilon(m, 0))
					rho[m] = need(e.Rho(m))
					delta[m] = need(e.Delta(m, at))
				}
				for _, m := range []audit.Model{audit.Table, audit.Continual} {
					if !(math.IsInf(eps[m], 1) && math.IsInf(eps[audit.View], 1)) {
						pure = max(pure, math.Abs(eps[m]-eps[audit.View]))
					}
				}
				worse := func(strong, weak audit.Model) float64 {
					w := delta[weak] - delta[strong]
					if !math.IsInf(rho[strong], 1) {
						w = max(w, rho[weak]-rho[strong]-1e-8)
					}
					if !math.IsInf(eps[strong], 1) {
						w = max(w, eps[weak]-eps[strong])
					}
					return w
				}
				arrows = max(arrows, worse(audit.Table, audit.View))
				factor = max(factor, worse(audit.Interactive, audit.Table))
				acrArrow = max(acrArrow, worse(audit.Continual, audit.Table))
				if delta[audit.View] > 0 {
					conversion = max(conversion, delta[audit.Table]/(8*delta[audit.View]))
				}
				if delta[audit.Interactive] < delta[audit.Continual] {
					incomparable[0]++
				} else {
					incomparable[1]++
				}
			}
			n.set("random", modelsApart{float64(policies), pure, arrows, factor, acrArrow,
				conversion, incomparable[0], incomparable[1]})
			n.Runs = policies
		},
		Claims: []Claim{
			{
				ID: "strict", Text: "Some policy is (ε,δ)-View DP and not (ε,δ)-Table DP: the " +
					"one of Appendix A, at (0.95, 0.17).", Where: "Proposition 3.12(e) in §3.6, " +
					"Appendix A; also [Azize and Basu 2024, Proposition 1(e)]",
				Statistic: "Exact δ at ε = 0.95 under View and Table; holds if 0.17 lies between",
				Decide: func(e *Evidence) Finding {
					view := named[ofDefinition](e, audit.View.String()).Delta95
					table := named[ofDefinition](e, audit.Table.String()).Delta95
					return exact(table, view <= 0.17 && table > 0.17,
						fmt.Sprintf("δ = %.6f under View, %.6f under Table", view, table))
				},
			},
			{
				ID: "smallest", Text: "The smallest ε at which that policy is (ε, 0.17)-Table DP " +
					"is 0.98.", Where: "Appendix A; also [Azize and Basu 2024, Appendix A]",
				Statistic: "The smallest ε, exact; holds if it is 0.98 to the two digits printed",
				Decide: judged(audit.Table.String(), func(n ofDefinition) (float64, bool, string) {
					return n.Epsilon17, math.Abs(n.Epsilon17-0.98) <= 0.005, fmt.Sprintf("it is %.6f; "+
						"at 0.98 itself δ is %.6f, a little above 0.17", n.Epsilon17, n.Delta98)
				}),
			},
			{
				ID: "pure", Text: "For pure DP, View, Table and adaptive continual release are " +
					"the same.", Where: "Propositions 3.12(a) and 3.15(b) in §3.6",
				Statistic: "The largest difference of exact ε between the three over random " +
					"policies; holds if 0 up to rounding",
				Decide: none(func(n modelsApart) float64 { return n.Pure }),
			},
			{
				ID: "table-view", Text: "Table DP implies View DP at the same budget, for ε, " +
					"(ε,δ) and ρ.", Where: "Proposition 3.12(b) and (c) in §3.6",
				Statistic: "The most by which ε, ρ or δ(0.4) under View is above that under " +
					"Table over random policies; holds if 0 up to rounding",
				Decide: none(func(n modelsApart) float64 { return n.TableView }),
			},
			{
				ID: "interactive-table", Text: "Interactive DP implies Table DP.",
				Where: "Proposition 3.13(a) in §3.6",
				Statistic: "The most by which ε, ρ or δ(0.4) under Table is above that under " +
					"Interactive over random policies; holds if 0 up to rounding",
				Decide: none(func(n modelsApart) float64 { return n.InteractiveTable }),
			},
			{
				ID: "continual-table", Text: "DP under adaptive continual release implies Table DP.",
				Where: "Proposition 3.15(a) in §3.6",
				Statistic: "The most by which ε, ρ or δ(0.4) under Table is above that under " +
					"continual release over random policies; holds if 0 up to rounding",
				Decide: none(func(n modelsApart) float64 { return n.ContinualTable }),
			},
			{
				ID: "conversion", Text: "(ε,δ)-View DP implies (ε, K^T δ)-Table DP.",
				Where: "Proposition 3.12(d) in §3.6",
				Statistic: "δ(0.4) under Table over K^T times that under View, largest over " +
					"random policies; holds if at most 1",
				Decide: judged("random", func(n modelsApart) (float64, bool, string) {
					return n.Conversion, n.Conversion <= 1, fmt.Sprintf("at most %.3f of it in %.0f policies; "+
						"K^(T−1) is enough, by the same proof", n.Conversion, n.Policies)
				}),
			},
			{
				ID: "interactive-continual", Text: "Interactive DP is stronger than DP under " +
					"adaptive continual release.", Where: "§3.8",
				Statistic: "Exact δ(0.5) under continual release minus that under Interactive, " +
					"of a policy of two arms and four rounds; holds if at most 0",
				Decide: func(e *Evidence) Finding {
					interactive := named[ofDefinition](e, audit.Interactive.String()).Ours
					continual := named[ofDefinition](e, audit.Continual.String()).Ours
					random := named[modelsApart](e, "random")
					return exact(continual-interactive, continual <= interactive,
						fmt.Sprintf("δ(0.5) = %.5f under Interactive, %.5f under continual release; "+
							"of %.0f random policies %.0f have less under Interactive", interactive,
							continual, random.Policies, random.Less))
				},
				IfFails: Refuted,
				Proof: "A counter-example, by enumeration. Arms 0 and 1, rewards 0 and 1, four " +
					"rounds. Arm 1 is played with probability 0.5 in round 1; 0.3 + 0.4 r₁ in " +
					"round 2, r₁ the first reward; 0.01 in round 3; in round 4 with 0.5 if the " +
					"arm of round 3 " +
					"is 1 (as the policy is told it: under Interactive DP the queried one), else " +
					"with 0.45 if r₃ = r₁, else never. At ε = 0.5 the smallest δ over all " +
					"adversaries that choose plays against a fixed table (Interactive DP) is " +
					"0.45, and over all that feed rewards and see the plays " +
					"(adaptive continual release) 0.55939: so (0.5, 0.45)-Interactive DP holds, " +
					"and (0.5, 0.45)-DP under adaptive continual release does not. Why it can: " +
					"r₁ can be told twice, by the second play and by the fourth. For r₁ = 1 against r₁ = 0, " +
					"who feeds r₃ = 0 after a second play of arm 1, and r₃ = 1 after one of arm " +
					"0, has 0.99(0.7 − 0.3·0.55 e^½) + 0.99·0.3·0.45 + 0.01(0.7 − 0.3 e^½) = " +
					"0.559. A table has one reward for arm 0 of round 3, whatever " +
					"the second play: 0.7·0.45 + 0.3·0.45 = 0.45 if it is 1, and 0.7 − 0.3·0.55 " +
					"e^½ = 0.428 if it is 0.",
				Why: "The conclusion has three arrows between four definitions; two are " +
					"propositions of §3.6, and this one is proved nowhere: §3.6 itself treats " +
					"Interactive DP as another degree of freedom, so that a sentence of the " +
					"conclusion is at fault and no theorem. Nothing later in the thesis uses it. " +
					"For pure ε-DP it is true, by Propositions 3.13(a) and 3.15(b). " +
					"It also answers the question of [Azize and Basu 2024, Remark 2], whether a " +
					"fixed table can " +
					"stand in for an adversary that adapts: not at the same (ε,δ).",
				Reader: "For (ε,δ) treat Interactive DP and adaptive continual release as two " +
					"guarantees, and prove the one you need.",
			},
		},
	}
}
