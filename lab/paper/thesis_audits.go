package paper

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/noise"
)

func thesisAudits() []Figure {
	return []Figure{thesis21(), thesis22(), thesis312(), thesis62(), thesis64(), thesis67(),
		thesis72(), thesisC1()}
}

// significances are those at which powers are compared: fewer where games are.
func significances(p Preset) []float64 {
	if p == Quick {
		return []float64{0.1, 0.3}
	}
	return []float64{0.01, 0.03, 0.1, 0.3}
}

// bounds are a number that was found and the ends of its interval.
type bounds struct{ Value, Lo, Hi float64 }

func (b bounds) minus(x float64) bounds { return bounds{b.Value - x, b.Lo - x, b.Hi - x} }

// apart is the difference of two, whatever their correlation.
func (b bounds) apart(c bounds) bounds {
	return bounds{b.Value - c.Value, b.Lo - c.Hi, b.Hi - c.Lo}
}

func (b bounds) within(tolerance float64, runs int, detail string) Finding {
	return Between(b.Value, b.Lo, b.Hi, -tolerance, tolerance, runs, detail)
}

// Numbers of attacks.
type (
	// beside what theory says of it
	besideTheory struct {
		Found  bounds
		Theory float64
	}
	// the lower bound of an audit on μ
	muBesideTheory struct{ Found, Theory float64 }
	// a power at a significance
	powerAt struct {
		Significance float64
		Power        bounds
	}
	// the Type I error and the power at the threshold that theory gives for a significance, and
	// what theories say of the power
	testedAt struct {
		Significance   float64
		Alarms, Power  bounds
		Limit, Printed float64
	}
)

// powers keeps an attack's powers at significances. Cells is how many such attacks share the level.
func powers(n *Numbers, name string, s audit.Scores, alphas []float64, cells int) {
	var out []powerAt
	for _, alpha := range alphas {
		p := need(s.PowerAt(alpha, level(cells*len(alphas))))
		out = append(out, powerAt{alpha, bounds(p.Power)})
	}
	n.set(name, out)
}

// tested keeps the errors of an attack at the thresholds that theory gives for some significances.
// Thresholds are fixed before the games, so intervals are much narrower than those of powers.
func tested(n *Numbers, name string, s audit.Scores, alphas []float64, cells int,
	limit, printed audit.Limit) {
	var out []testedAt
	for _, alpha := range alphas {
		m := need(s.At(audit.Threshold(limit.Shift*limit.Shift, alpha), level(2*cells*len(alphas))))
		out = append(out, testedAt{alpha, bounds(m.TypeI), bounds(m.Power), limit.Power(alpha),
			printed.Power(alpha)})
	}
	n.set(name, out)
}

// rocOf is the line of an attack's empirical ROC curve, a step function, with intervals
// from the same games.
func rocOf(label string, s audit.Scores, significances []float64) report.Series {
	line := report.Series{Label: label, Step: true}
	c := need(s.Curve(significances, Level))
	for _, p := range c {
		line.X, line.Mean = append(line.X, p.Significance), append(line.Mean, p.Power.Value)
		line.Lo, line.Hi = append(line.Lo, p.Power.Lo), append(line.Hi, p.Power.Hi)
	}
	return line
}

// limitOf is the line of a limit.
func limitOf(label string, l audit.Limit, significances []float64) report.Series {
	line := report.Series{Label: label}
	for _, alpha := range significances {
		line.X, line.Mean = append(line.X, alpha), append(line.Mean, l.Power(alpha))
	}
	return line
}

// nearTheory holds if at the thresholds of theory the Type I errors and the powers are within
// tolerance of a theory.
func nearTheory(theory func(testedAt) float64, names ...string) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		for _, name := range names {
			for _, x := range rows[testedAt](e, name) {
				d := fmt.Sprintf("%s at significance %v: false alarms %.4f, power %.3f, theory %.3f",
					name, x.Significance, x.Alarms.Value, x.Power.Value, theory(x))
				parts = append(parts, x.Power.minus(theory(x)).within(tolerance, e.Numbers.Runs, d),
					x.Alarms.minus(x.Significance).within(tolerance, e.Numbers.Runs, d))
			}
		}
		return Every(parts)
	}
}

func byLimit(x testedAt) float64 { return x.Limit }

// morePower holds if each attack has more power than the next one, at the significances for
// which of is true.
func morePower(of func(alpha float64) bool, names ...string) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		for i, name := range names[1:] {
			more, less := rows[powerAt](e, names[i]), rows[powerAt](e, name)
			for j := range min(len(more), len(less)) {
				x, y, alpha := more[j].Power, less[j].Power, more[j].Significance
				if d := x.apart(y); of(alpha) {
					parts = append(parts, Above(d.Value, d.Lo, d.Hi, 0, e.Numbers.Runs,
						fmt.Sprintf("%s %.3f, %s %.3f at significance %v", names[i], x.Value, name,
							y.Value, alpha)))
				}
			}
		}
		return Every(parts)
	}
}

func anywhere(float64) bool { return true }

// targets62 are the law and the three targets of Figure 6.2: parameters uniform in [¼, ¾].
func targets62(n int, seed uint64) (p []float64, easy, medium, hard []float64) {
	src := noise.NewFast(seed, 1)
	p = make([]float64, 5*n)
	easy, medium, hard = make([]float64, len(p)), make([]float64, len(p)), make([]float64, len(p))
	for j := range p {
		p[j] = 0.25 + src.Float64()/2
		if p[j] <= 0.5 {
			easy[j] = 1
		} else {
			hard[j] = 1
		}
		if src.Bernoulli(p[j]) {
			medium[j] = 1
		}
	}
	return p, easy, medium, hard
}

// tolerance is how near "tight" is, in power: games are finite, and so are n and d.
const tolerance = 0.05

func thesis62() Figure {
	mean := []string{"easy", "medium", "hard"}
	noisy := []string{"noise 0.5", "noise 1", "noise 2"}
	sampled := []string{"rate 0.75", "rate 0.5", "rate 0.25"}
	return Figure{
		ID: "thesis-6.2", Source: "000", Where: "Figure 6.2, §6.4 to §6.6, Theorems 6.3, 6.5 and " +
			"6.6", Title: "Tracing a target in a mean: games against theory",
		About: "Membership games against the mean of n = 1000 Bernoulli points of d = 5000 " +
			"columns, plain, with Gaussian noise and sub-sampled; the power of the likelihood " +
			"ratio at each significance, and its limit. For sub-sampling there are two limits: " +
			"the one that Theorem 6.6 prints, and one in which the target is drawn once for all columns.",
		Chosen: "The source does not give the parameters p, the noise or the rates. Ours: p " +
			"uniform in [¼, ¾], noise γ = 0.5, 1, 2 and rates ρ = 0.75, 0.5, 0.25 for the medium " +
			"target. 40 000 games a line (quick: n = 100, 10 000 games). Tight means within " +
			"0.05, a margin of ours.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			points, games := p.size(1000, 100), p.size(40_000, 10_000)
			params, easy, medium, hard := targets62(points, n.seed(62))
			data := audit.Bernoulli{P: params}
			variance := data.Variance()
			n.Runs = games
			grid := audit.LogGrid(0.001, 31)
			panels := []report.Figure{
				{ID: "thesis-6.2-a", Title: "(a) Three targets", Subtitle: "the plain mean"},
				{ID: "thesis-6.2-b", Title: "(b) Noise", Subtitle: "medium target, N(0, γ²/n) " +
					"added to each column"},
				{ID: "thesis-6.2-c", Title: "(c) Sub-sampling",
					Subtitle: "medium target, the mean of ρn points"},
			}
			for i := range panels {
				panels[i].XLabel, panels[i].YLabel, panels[i].LogX = "significance", "power", true
				panels[i].Note = "Bands are 99 % intervals of each point."
			}
			play := func(panel int, name, label string, m audit.Mean, target []float64, cells int,
				limit, printed audit.Limit) {
				m.N = points
				g := audit.Game{Data: data, Mean: m, Target: target, Games: games,
					Key: noise.Key{Seed: n.seed(21062), Experiment: name}}
				g.Attacks = []audit.Attack{audit.Asymptotic{Mu: params, Var: variance,
					Noise: m.Noise, Rows: m.Rows()}}
				s := need(g.Play(ctx))
				powers(n, name, s[0], significances(p), cells)
				// Thresholds are those of a mean of Rows points without the target.
				tested(n, "theory "+name, s[0], significances(p), cells, limit,
					printed)
				at := need(s[0].At(0, level(3)))
				n.set("advantage "+name, besideTheory{bounds(at.Advantage), limit.Advantage()})
				r := need(s[0].RegionByRank(auditGamma))
				n.set("mu "+name, muBesideTheory{r.Mu(), limit.Shift})
				line := rocOf(label+", games", s[0], grid)
				panels[panel].Series = append(panels[panel].Series, line,
					limitOf(label+", limit", limit, grid))
				if printed != limit {
					panels[panel].Series = append(panels[panel].Series,
						limitOf(label+", as printed", printed, grid))
				}
			}
			leakage := func(z, noise []float64) float64 {
				return need(audit.Leakage(points, z, params, variance, noise))
			}
			for i, z := range [][]float64{easy, medium, hard} {
				m := leakage(z, nil)
				play(0, mean[i], fmt.Sprintf("%s, m* = %.2f", mean[i], m), audit.Mean{},
					z, 3, audit.Optimal(m), audit.Optimal(m))
			}
			for i, gamma := range []float64{0.5, 1, 2} {
				g := make([]float64, len(params))
				for j := range g {
					g[j] = gamma
				}
				m := leakage(medium, g)
				play(1, noisy[i], fmt.Sprintf("γ = %v, m* = %.2f", gamma, m),
					audit.Mean{Noise: g}, medium, 3, audit.Optimal(m), audit.Optimal(m))
			}
			m := leakage(medium, nil)
			for i, rho := range []float64{0.25, 0.5, 0.75} {
				play(2, sampled[2-i], fmt.Sprintf("ρ = %v", rho),
					audit.Mean{Sample: int(rho * float64(points))}, medium, 3,
					audit.Subsampled(m, rho), audit.SubsampledPrint(m, rho))
			}
			// Low significances need many games, so those are smaller.
			points, games = 100, 10*games
			if p == Quick {
				games = 20_000
			}
			params, _, _, hard = targets62(points, n.seed(62))
			data = audit.Bernoulli{P: params}
			variance = data.Variance()
			m = leakage(hard, nil)
			small := report.Figure{ID: "thesis-6.2-d", Title: "Sub-sampling and the hard target",
				Subtitle: "n = 100, d = 500", XLabel: "significance", YLabel: "power", LogX: true,
				LogY: true, Note: "Bands are 99 % intervals of each point."}
			for _, rho := range []float64{1, 0.25} {
				name := fmt.Sprintf("hard at rate %v", rho)
				rows := int(rho * float64(points))
				s := need(audit.Game{Data: data, Mean: audit.Mean{N: points, Sample: rows},
					Target: hard, Games: games, Key: noise.Key{Seed: n.seed(21062), Experiment: name},
					Attacks: []audit.Attack{audit.Asymptotic{Mu: params, Var: variance, Rows: rows}}}.Play(ctx))
				powers(n, name, s[0], []float64{0.001, 0.01, 0.1, 0.3}, 2)
				line := rocOf(fmt.Sprintf("ρ = %v, games", rho), s[0], grid)
				small.Series = append(small.Series, line,
					limitOf(fmt.Sprintf("ρ = %v, limit", rho), audit.Subsampled(m, rho), grid))
				if rho < 1 {
					small.Series = append(small.Series, limitOf(fmt.Sprintf("ρ = %v, as printed",
						rho), audit.SubsampledPrint(m, rho), grid))
				}
			}
			panels = append(panels, small)
			n.Figures = panels
		},
		Claims: []Claim{
			{
				ID: "targets", Text: "The power grows with the leakage score m* of the target, " +
					"at every significance.", Where: "Figure 6.2 (a), §6.6",
				Statistic: "Differences of power between easy and medium, and medium and hard " +
					"targets, at significance 1, 3, 10 and 30 %; holds if all are above 0",
				Decide: morePower(anywhere, mean...),
			},
			{
				ID: "noise", Text: "It falls with the noise γ², at every significance.",
				Where: "Figure 6.2 (b), §6.6",
				Statistic: "Differences of power between no noise, γ = 0.5, 1 and 2, at " +
					"significance 1, 3, 10 and 30 %; holds if all are above 0",
				Decide: morePower(anywhere, append([]string{"medium"}, noisy...)...),
			},
			{
				ID: "rates", Text: "It falls with the rate ρ of sub-sampling: uniformly, as the " +
					"section reads its figure.", Where: "Figure 6.2 (c), §6.6",
				Statistic: "Differences of power between ρ = 1, 0.75, 0.5 and 0.25, medium " +
					"target, at significance 10 and 30 %, where a figure on linear axes is " +
					"legible; holds if all are above 0",
				Decide: morePower(func(alpha float64) bool {
					return alpha >= 0.1
				}, append([]string{"medium"}, sampled...)...),
			},
			{
				ID: "rates-crossing", Own: true, Text: "At low significance sub-sampling can " +
					"make the attack stronger, as the corrected limit of Theorem 6.6 says: a " +
					"target that is drawn, with probability ρ, has a score 1/ρ times as high.",
				Statistic: "The difference of power between ρ = 0.25 and 1, hard target at n = " +
					"100, at significance 0.1 %; holds if above 0",
				Decide: morePower(func(alpha float64) bool {
					return alpha == 0.001
				}, "hard at rate 0.25", "hard at rate 1"),
			},
			{
				ID: "mean-theory", Text: "The limit of Theorem 6.3 is tight for the mean.",
				Where: "Theorem 6.3 and Corollary 6.4 in §6.4, §6.6",
				Statistic: "Power in games minus Φ(Φ⁻¹(α) + √m*), three targets, four " +
					"significances (quick: two), at the thresholds of theory, and false alarms " +
					"minus significance; holds if all are in ±0.05",
				Decide: nearTheory(byLimit, theoryOf(mean)...),
			},
			{
				ID: "leakage", Text: "A target's leakage is Φ(√m*/2) − Φ(−√m*/2).",
				Where: "Corollary 6.4, (6.2), in §6.4",
				Statistic: "Advantage at threshold 0 minus the formula, three targets; holds if " +
					"all are in ±0.05",
				Decide: besidesTheory("advantage ", "advantage", mean...),
			},
			{
				ID: "noise-theory", Text: "The limit of Theorem 6.5 is tight with noise.",
				Where: "Theorem 6.5 in §6.5.1, §6.6",
				Statistic: "Power in games minus the theorem's, three γ, four significances " +
					"(quick: two), at the thresholds of theory, and false alarms minus " +
					"significance; holds if all are in ±0.05", Decide: nearTheory(byLimit, theoryOf(noisy)...),
			},
			{
				ID: "rates-theory", Text: "Sub-sampled at rate ρ, the score of a target is " +
					"N(±ρm*/2, ρm*) in the limit, and the power of the attack Φ(Φ⁻¹(α) + " +
					"√(ρm*)), tightly.", Where: "Theorem 6.6 in §6.5.2, Table 6.1, §6.6; proof in Appendix D.3",
				Statistic: "Power in games minus Φ(Φ⁻¹(α) + √(ρm*)), three ρ, four significances " +
					"(quick: two), at the thresholds of theory, and false alarms minus " +
					"significance; holds if all are in ±0.05", Decide: nearTheory(func(x testedAt) float64 {
					return x.Printed
				}, theoryOf(sampled)...),
				IfFails: Refuted,
				Proof: "Under H₁ the target is left out of the sample with probability 1 − ρ, " +
					"and then the output has exactly the law of H₀. So every test of " +
					"significance α has power at most (1 − ρ)α + ρ. " +
					"The theorem's power goes to 1 as m* grows: at ρ = ¼, m* = 40 and α = 0.1 it " +
					"is Φ(−1.28 + √10) = 0.97, and no test has more than 0.325. " +
					"The limit is the mixture: with probability 1 − ρ the score is as under H₀, " +
					"else it is that of a mean of ρn points, whose m* is m*/ρ: power (1 − ρ)α + " +
					"ρΦ(Φ⁻¹(α) + √(m*/ρ)) (claim rates-corrected).",
				Why: "The proof sums over columns as if each drew the target by itself (its " +
					"p_{n,j}^{in,sub} are mixtures column by column). One draw decides for all " +
					"columns, so that they are not independent under H₁. The printed curve is " +
					"too low where significance is low, and too high where it is high.",
				Reader: "Replace the row \"sub-sampling\" of Table 6.1 by the mixture. Do not " +
					"read sub-sampling as n/ρ effective samples: it bounds the power at high " +
					"significance, and at low significance may raise it. Theorems 6.3, 6.5 and 6.7 stand.",
			},
			{
				ID: "rates-corrected", Own: true, Text: "With one draw for all columns, power " +
					"(1−ρ)α + ρΦ(Φ⁻¹(α) + √(m*/ρ)) is tight: the correction of Theorem 6.6.",
				Statistic: "Power in games minus that, three ρ, four significances (quick: two), " +
					"at the thresholds of theory, and false alarms minus significance; holds if " +
					"all are in ±0.05", Decide: nearTheory(byLimit, theoryOf(sampled)...),
			},
			{
				ID: "gaussian-dp", Text: "An auditor would find the mean to be √m*-Gaussian DP.",
				Where: "inherent privacy, §6.4",
				Statistic: "The audited lower bound on μ over √m*, three targets; holds if all " +
					"are in [0.9, 1.03], margins of ours",
				Decide: func(e *Evidence) Finding {
					return each(mean, func(name string) Finding {
						mu := named[muBesideTheory](e, "mu "+name)
						x := mu.Found / mu.Theory
						return Between(x, x, x, 0.9, 1.03, e.Numbers.Runs,
							fmt.Sprintf("%s: μ is at least %.3f, √m* = %.3f", name, mu.Found, mu.Theory))
					})
				},
				Why: "A lower bound from few games is low. At the scale of the paper it is near.",
			},
		},
	}
}

func theoryOf(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, "theory "+n)
	}
	return out
}

func thesis64() Figure {
	return Figure{
		ID: "thesis-6.4", Source: "000", Where: "§2.3.4, §2.3.5 and §6.4",
		Title: "The likelihood ratio, the scalar product and attacks that estimate",
		About: "What the likelihood ratio is worth beside the scalar product, for targets drawn " +
			"anew, and with means and covariances that are estimated from reference points.",
		Chosen: "n = 300 and d = 1500 for Bernoulli data (p uniform in [0.3, 0.7]); for the " +
			"scalar product normal data, n = 200, d = 1000, variances all 1 or from 0.05 to 1, a " +
			"target drawn from the data and one reference; " +
			"for the empirical attack normal data with correlation 0.8^|i−j|, d = 60, n = 12. " +
			"The source gives no numbers.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			games := p.size(40_000, 15_000)
			n.Runs = games
			grid := audit.LogGrid(0.001, 31)
			src := noise.NewFast(n.seed(64), 1)
			figures := []report.Figure{
				{ID: "thesis-6.4-average", Title: "A new target in every game",
					Subtitle: "d/n = 5, known and estimated means"},
				{ID: "thesis-6.4-scalar", Title: "Likelihood ratio and scalar product",
					Subtitle: "a fixed target"},
				{ID: "thesis-6.4-empirical", Title: "Estimated mean and covariance",
					Subtitle: "d = 60, n = 12, n₀ references"},
			}
			for i := range figures {
				figures[i].XLabel, figures[i].YLabel, figures[i].LogX, figures[i].Note = "significance",
					"power", true, "Bands are 99 % intervals of each point."
			}
			draw := func(f int, name string, s audit.Scores, cells int, theory ...audit.Limit) {
				auc := need(s.AUC(level(cells)))
				n.set(name, bounds(auc))
				line := rocOf(name, s, grid)
				figures[f].Series = append(figures[f].Series, line)
				for _, t := range theory {
					n.set(name, besideTheory{bounds(auc), 1 - normalTail(t.Shift/math.Sqrt2)})
					figures[f].Series = append(figures[f].Series, limitOf(name+", limit", t, grid))
				}
			}
			// Targets drawn anew (2.26), and with means estimated from λn references (2.27).
			points := p.size(300, 100)
			mu := make([]float64, 5*points)
			for j := range mu {
				mu[j] = 0.3 + 0.4*src.Float64()
			}
			data := audit.Bernoulli{P: mu}
			g := audit.Game{Data: data, Mean: audit.Mean{N: points},
				Attacks: []audit.Attack{audit.BernoulliLR{P: mu}}, Games: games / 2,
				Key: noise.Key{Seed: n.seed(21064), Experiment: "average"}}
			for _, lambda := range []int{1, 3} {
				refs := sample(data, lambda*points, &src)
				a := need(audit.NewBernoulliReference(refs))
				g.Attacks = append(g.Attacks, a)
			}
			s := need(g.Play(ctx))
			for i, c := range []struct {
				name  string
				limit audit.Limit
			}{{"known means", audit.Optimal(5)}, {"as many references", audit.WithReferences(5, 1)},
				{"three times the references", audit.WithReferences(5, 3)}} {
				draw(0, c.name, s[i], 3, c.limit)
			}
			// The scalar product, with variances all equal and not.
			const rows, d = 200, 1000
			for _, spread := range []bool{false, true} {
				law := audit.Normal{Mu: make([]float64, d), Var: make([]float64, d)}
				name := "equal variances"
				for j := range d {
					if law.Mu[j], law.Var[j] = src.Float64(), 1; spread {
						law.Var[j] = 0.05 * math.Pow(20, float64(j)/(d-1))
						name = "unequal variances"
					}
				}
				z := sample(law, 2, &src)
				g := audit.Game{Data: law, Mean: audit.Mean{N: rows}, Target: z[0], Games: games,
					Key: noise.Key{Seed: n.seed(21064), Experiment: name}, Attacks: []audit.Attack{
						audit.Asymptotic{Mu: law.Mu, Var: law.Var, Rows: rows},
						audit.ScalarProduct{Reference: z[1]}, audit.ScalarProduct{Reference: law.Mu},
					}}
				s := need(g.Play(ctx))
				for i, attack := range []string{"likelihood ratio", "scalar product",
					"scalar product, known mean"} {
					draw(1, attack+", "+name, s[i], 4)
				}
			}
			// The empirical attack (6.5).
			const columns, few = 60, 12
			cov := mat.NewSymDense(columns, nil)
			for i := range columns {
				for j := i; j < columns; j++ {
					cov.SetSym(i, j, math.Pow(0.8, float64(j-i)))
				}
			}
			law := need(audit.NewCorrelated(make([]float64, columns), cov))
			target := sample(law, 1, &src)[0]
			exact := need(audit.CovarianceOf(make([]float64, columns), cov, few))
			g = audit.Game{Data: law, Mean: audit.Mean{N: few}, Target: target, Games: games,
				Key: noise.Key{Seed: n.seed(21064), Experiment: "empirical"}, Attacks: []audit.Attack{exact}}
			for _, refs := range []int{6000, 300, 90} {
				a := need(audit.NewCovariance(sample(law, refs, &src), few, false))
				g.Attacks = append(g.Attacks, a)
			}
			s = need(g.Play(ctx))
			for i, name := range []string{"known covariance", "6000 references", "300 references",
				"90 references"} {
				draw(2, name, s[i], 4)
			}
			n.Figures = figures
		},
		Claims: []Claim{
			{
				ID: "average", Text: "For targets drawn from the data, the likelihood ratio's " +
					"errors obey Φ⁻¹(1−α) + Φ⁻¹(1−β) ≈ √(d/n).", Where: "§2.3.4 and §6.4",
				Statistic: "Area under the ROC curve minus that of two normal laws √5 apart; " +
					"holds if in ±0.05", Decide: nearArea("known means"),
			},
			{
				ID: "references", Text: "With means estimated from λn references, (1+λ)/λ times " +
					"as many samples are needed.", Where: "§2.3.4",
				Statistic: "Area under the ROC curve minus that of √(5λ/(1+λ)), λ = 1 and 3; " +
					"holds if both are in ±0.05", Decide: nearArea("as many references",
					"three times the references"),
			},
			{
				ID: "scalar-unequal", Text: "The likelihood ratio is a scalar product corrected " +
					"for the geometry of the data, and finds more where variances differ.", Where: "§6.4",
				Statistic: "Differences of the area under the ROC curve to the scalar product " +
					"with the known mean, and of that to the one with a single reference; holds " +
					"if both are above 0",
				Decide: moreArea("likelihood ratio, unequal variances",
					"scalar product, known mean, unequal variances", "scalar product, unequal variances"),
			},
			{
				ID: "scalar-equal", Text: "Where variances are equal, the scalar product test, " +
					"(z* − z^ref)ᵀμ̂ with one reference, has the power of the likelihood ratio.",
				Where: "connection to the scalar product attack, §6.4",
				Statistic: "Difference of the area under the ROC curve; holds if in ±0.02, a " +
					"margin of ours (0.07 was found). Beside it: the same about the known mean, (z* − μ)ᵀμ̂",
				Decide: sameArea("likelihood ratio, equal variances", "scalar product, equal variances"),
				Weaker: sameArea("likelihood ratio, equal variances", "scalar product, known "+
					"mean, equal variances"),
				Why: "About the known mean the two are one test, as the section's argument goes. " +
					"With a single reference point z* − z^ref has twice the variance of z* − μ " +
					"for the same signal: the shift is √(m*/2) and not √m*, exactly, " +
					"which is what the games find.",
				Reader: "Read μ for z^ref in the scalar product test, or expect it to need twice " +
					"the dimension.",
			},
			{
				ID: "empirical", Text: "The empirical attack loses power with fewer references.",
				Where: "(6.5) in §6.4",
				Statistic: "Differences of the area under the ROC curve between known covariance " +
					"and 300 references, and those and 90; holds if both are above 0",
				Decide: moreArea("known covariance", "300 references", "90 references"),
			},
		},
	}
}

// nearArea holds if areas under ROC curves are within tolerance of those of theory.
func nearArea(names ...string) Check {
	return besidesTheory("", "area", names...)
}

// besidesTheory holds if numbers are within tolerance of those of theory. They are kept by prefix
// and name.
func besidesTheory(prefix, what string, names ...string) Check {
	return func(e *Evidence) Finding {
		return each(names, func(name string) Finding {
			x := named[besideTheory](e, prefix+name)
			return x.Found.minus(x.Theory).within(tolerance, e.Numbers.Runs,
				fmt.Sprintf("%s: %s %.3f, theory %.3f", name, what, x.Found.Value, x.Theory))
		})
	}
}

// moreArea holds if each attack has a larger area under its ROC curve than the next one.
func moreArea(names ...string) Check {
	return func(e *Evidence) Finding {
		var parts []Finding
		for i, name := range names[1:] {
			more, less := named[bounds](e, names[i]), named[bounds](e, name)
			d := more.apart(less)
			parts = append(parts, Above(d.Value, d.Lo, d.Hi, 0, e.Numbers.Runs,
				fmt.Sprintf("%s %.3f, %s %.3f", names[i], more.Value, name, less.Value)))
		}
		return Every(parts)
	}
}

// sameness is how near areas of two attacks on the same games must be to be called the same.
const sameness = 0.02

// sameArea holds if the areas under two attacks' ROC curves are the same.
func sameArea(a, b string) Check {
	return func(e *Evidence) Finding {
		x, y := named[bounds](e, a), named[bounds](e, b)
		return x.apart(y).within(sameness, e.Numbers.Runs, fmt.Sprintf("%.3f and %.3f", x.Value, y.Value))
	}
}

// misspecified is the advantage of an attack that aims at another point: at the best threshold, by
// Theorem 6.7, by Table 6.1, of the right attack, and at threshold 0.
type misspecified struct {
	Best                    bounds
	Theorem, Table, Optimal float64
	Zero                    bounds
}

func thesis67() Figure {
	shares := []float64{0, 0.1, 0.3, 0.5, 0.8, 1}
	name := func(share float64) string { return fmt.Sprintf("share %v", share) }
	return Figure{
		ID: "thesis-6.7", Source: "000", Where: "Theorem 6.7, Table 6.1, §6.5.3",
		Title: "Attacks that aim at another point than the target",
		About: "The likelihood ratio of a point that differs from the target in a share of its " +
			"columns, against the mean of n = 1000 Bernoulli points of d = 5000 columns; its " +
			"advantage at the best threshold, Theorem 6.7's, and what the last row of Table 6.1 would give.",
		Chosen: "The source plays nothing here. The law is that of Figure 6.2, the target its " +
			"hard one; columns are flipped at random. 60 000 games (quick: n = 100, 20 000). A " +
			"share of one is the opposite point.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			points, games := p.size(1000, 100), p.size(60_000, 20_000)
			params, _, _, target := targets62(points, n.seed(62))
			data := audit.Bernoulli{P: params}
			variance := data.Variance()
			n.Runs = games
			src := noise.NewFast(n.seed(67), 1)
			m := need(audit.Leakage(points, target, params, variance, nil))
			g := audit.Game{Data: data, Mean: audit.Mean{N: points}, Target: target, Games: games,
				Key: noise.Key{Seed: n.seed(21067), Experiment: "thesis-6.7"}}
			var scal, targ []float64
			for _, share := range shares {
				z := make([]float64, len(target))
				for j := range z {
					if z[j] = target[j]; src.Float64() < share {
						z[j] = 1 - z[j]
					}
				}
				t := need(audit.Leakage(points, z, params, variance, nil))
				b := need(audit.LeakageBetween(points, z, target, params, variance, nil))
				scal, targ = append(scal, b), append(targ, t)
				g.Attacks = append(g.Attacks, audit.Misspecified{Attack: audit.Asymptotic{Mu: params,
					Var: variance, Rows: points}, Target: z})
			}
			scores := need(g.Play(ctx))
			fig := report.Figure{ID: "thesis-6.7", Title: "Advantage of a misspecified attack",
				XLabel: "share of columns that differ", YLabel: "advantage"}
			got, theory, table, zero := report.Series{Label: "games, best threshold"},
				report.Series{Label: "Theorem 6.7"}, report.Series{Label: "Table 6.1's score"},
				report.Series{Label: "games, threshold 0"}
			for i, share := range shares {
				s, sign := scores[i], 1.0
				if scal[i] < 0 {
					sign = -1
				}
				at := need(s.At(audit.BestMissing(scal[i], targ[i]), level(len(shares))))
				none := need(s.At(0, level(len(shares))))
				lo, hi := sign*at.Advantage.Lo, sign*at.Advantage.Hi
				limit := audit.Missing(scal[i], targ[i]).Advantage()
				printed := sign * audit.Optimal(math.Abs(scal[i])).Advantage()
				n.set(name(share), misspecified{bounds{sign * at.Advantage.Value, min(lo, hi),
					max(lo, hi)}, limit, printed * sign, audit.Optimal(m).Advantage(),
					bounds(none.Advantage)})
				got.X, got.Mean, got.Lo, got.Hi = append(got.X, share),
					append(got.Mean, sign*at.Advantage.Value), append(got.Lo, min(lo, hi)),
					append(got.Hi, max(lo, hi))
				theory.X, theory.Mean = append(theory.X, share), append(theory.Mean, limit)
				table.X, table.Mean = append(table.X, share), append(table.Mean, printed*sign)
				zero.X, zero.Mean = append(zero.X, share), append(zero.Mean, none.Advantage.Value)
			}
			fig.Series = []report.Series{got, theory, table, zero}
			n.Figures = []report.Figure{fig}
		},
		Claims: []Claim{
			{
				ID: "theorem", Text: "A misspecified attack has advantage Φ(|m_scal|/(2√m_targ)) " +
					"− Φ(−|m_scal|/(2√m_targ)).", Where: "Theorem 6.7 in §6.5.3",
				Statistic: "Advantage in games, at threshold (m_scal − m_targ)/2 and the sign of " +
					"m_scal, minus the formula, for shares 0 to 1; holds if all are in ±0.05",
				Decide: missing(shares, name, func(x misspecified, runs int, d string) Finding {
					return x.Best.minus(x.Theorem).within(tolerance, runs, d)
				}),
			},
			{
				ID: "table", Text: "Its leakage score is m_scal, as m* is that of the right target.",
				Where: "Table 6.1, last row, §6.6",
				Statistic: "Advantage in games minus Φ(√|m_scal|/2) − Φ(−√|m_scal|/2), for " +
					"shares 0 to 1; holds if all are in ±0.05",
				Decide: missing(shares, name, func(x misspecified, runs int, d string) Finding {
					return x.Best.minus(x.Table).within(tolerance, runs, d)
				}),
				IfFails: Misprint,
				Why: "By Theorem 6.7, which the games confirm, the shift is m_scal/√m_targ, " +
					"so that the score to put beside m* is m_scal²/m_targ. The two agree where " +
					"the point is the target.",
				Reader: "In the last row of Table 6.1 read m_scal²/m_targ for m_scal.",
			},
			{
				ID: "suboptimal", IfHolds: NotContradicted, Text: "It never has more advantage " +
					"than the right one.", Where: "§6.5.3",
				Statistic: "Advantage in games minus the optimal Φ(√m*/2) − Φ(−√m*/2); holds if " +
					"all are below 0.05, a margin of ours",
				Decide: missing(shares, name, func(x misspecified, runs int, d string) Finding {
					more := x.Best.minus(x.Optimal)
					return Below(more.Value, more.Lo, more.Hi, tolerance, runs, d)
				}),
			},
			{
				ID: "angle", Text: "It is still strong for a point like the target.", Where: "§6.5.3",
				Statistic: "Advantage in games with a tenth of the columns different over the " +
					"optimal one; holds if above one half, a threshold of ours",
				Decide: func(e *Evidence) Finding {
					x := named[misspecified](e, name(0.1))
					return Above(x.Best.Value/x.Optimal, x.Best.Lo/x.Optimal, x.Best.Hi/x.Optimal, 0.5,
						e.Numbers.Runs, fmt.Sprintf("%.3f of %.3f", x.Best.Value, x.Optimal))
				},
			},
		},
	}
}

// missing judges a misspecified attack at each share.
func missing(shares []float64, name func(float64) string,
	judge func(x misspecified, runs int, detail string) Finding) Check {
	return func(e *Evidence) Finding {
		return each(shares, func(s float64) Finding {
			x := named[misspecified](e, name(s))
			return judge(x, e.Numbers.Runs,
				fmt.Sprintf("share %v: advantage %.3f, Theorem 6.7 %.3f, Table 6.1 %.3f, at "+
					"threshold 0 %.3f", s, x.Best.Value, x.Theorem, x.Table, x.Zero.Value))
		})
	}
}

// sample draws points of a law.
func sample(d audit.Data, n int, src *noise.Fast) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, d.Dim())
		d.Draw(out[i], src)
	}
	return out
}
