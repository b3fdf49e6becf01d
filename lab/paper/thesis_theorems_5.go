package paper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// delta5 is the δ at which claims of zCDP are audited: large, so that a test needs no
// games without number.
const delta5 = 0.05

// A promised is a policy that [Azize 2024] proves to be private, and how it is audited.
type promised struct {
	claim, theorem, text string
	policy               string
	budget               privacy.Budget
	horizon              int
	models               []audit.Model // none: a policy that plays vectors
	bandit               string
}

func promisedPolicies() []promised {
	pure, zcdp := privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 0.5}
	arms, identify := catalog.BanditArms, catalog.BanditIdentify
	view, interactive := []audit.Model{audit.View}, []audit.Model{audit.View, audit.Table, audit.Interactive}
	return []promised{
		{"adap-ucb", "Theorem 5.2 in §5.2; proof in Appendix C.1.2",
			"Episodes that double and forget, with Laplace noise in each mean, are ε-View DP: " +
				"AdaP-UCB.", "adap-ucb", pure, 128, view, arms},
		{"adap-klucb", "Theorem 5.2 in §5.2; proof in Appendix C.1.2",
			"And so is AdaP-KLUCB, under Interactive DP as well.", "adap-klucb", pure, 128, interactive, arms},
		{"adac-ucb", "Theorem 5.5 in §5.3.1", "AdaC-UCB is ρ-Interactive zCDP.", "adac-ucb", zcdp,
			128, interactive, arms},
		{"adac-gope", "Theorem 5.11 in §5.3.2", "AdaC-GOPE is ρ-Interactive zCDP.", "adac-gope",
			zcdp, 1 << 15, nil, catalog.BanditLinear},
		{"adac-oful", "Theorem 5.14 in §5.3.3", "AdaC-OFUL is ρ-Interactive zCDP.", "adac-oful",
			zcdp, 16, nil, catalog.BanditContextual},
		{"adap-tt", "Theorem 5.20 in §5.4.2; proof in Appendix C.1.3",
			"AdaP-TT is ε-Interactive DP.", "adap-tt", pure, 1 << 10, interactive, identify},
		{"adap-tt-star", "Theorem 5.23 in §5.4.3; proof in Appendix C.1.3",
			"AdaP-TT* is ε-Interactive DP.", "adap-tt-star", pure, 1 << 10, interactive, identify},
	}
}

// audited is the best attack on a policy, or on a twin of it that has less noise than
// it is charged for.
func (g promised) audited(ctx context.Context, seed uint64, games, pilot int, gamma float64,
	broken bool) (audit.Finding, error) {
	key := noise.Key{Seed: seed, Experiment: "thesis-5.14 " + g.claim}
	delta := 0.0
	if _, ok := g.budget.(privacy.Pure); !ok {
		delta = delta5
	}
	e, err := catalog.Find(g.bandit, g.policy)
	if err != nil {
		return audit.Finding{}, err
	}
	if g.models == nil {
		d, err := audit.VectorSubject(e, g.horizon, g.budget, nil, broken)
		if err != nil {
			return audit.Finding{}, err
		}
		d.Delta, d.Gamma, d.Games, d.Pilot, d.Key = delta, gamma, games/2, pilot/2, key
		return d.Run(ctx)
	}
	var s audit.Subject
	if g.bandit == catalog.BanditIdentify {
		s, err = audit.IdentifySubject(e, 2, g.horizon, 0.1, g.budget, nil)
	} else {
		s, err = audit.PolicySubject(e, 2, g.horizon, g.budget, nil)
	}
	if err != nil {
		return audit.Finding{}, err
	}
	if broken {
		s = s.Broken(audit.HalfScale)
	}
	return audit.PolicyAudit{Subject: s, Adversaries: audit.Adversaries(s.Arms, s.Horizon,
		g.models...), Delta: delta, Gamma: gamma, Games: games, Pilot: pilot, Key: key}.Run(ctx)
}

// attackEpsilon is ε by the best attack, with its interval, and as it is claimed.
type attackEpsilon struct{ Low, Estimate, High, Claimed float64 }

// unrefuted holds unless the lower bound of an audit is above what was claimed: that the best
// attack stays below a claim proves nothing, and says so.
func unrefuted(name string) Check {
	return func(e *Evidence) Finding {
		x := named[attackEpsilon](e, "audit "+name)
		return Finding{
			Answer: map[bool]Answer{false: Holds, true: Fails}[x.Low > x.Claimed],
			Value:  x.Estimate / x.Claimed, Low: x.Low / x.Claimed, High: x.High / x.Claimed,
			Runs: e.Numbers.Runs,
			Detail: fmt.Sprintf("the best attack has at least ε = %.3f of %.3f that is claimed; "+
				"its errors as counted have %.3f", x.Low, x.Claimed, x.Estimate),
		}
	}
}

func privacyOfChapter5() Figure {
	f := Figure{
		ID: "thesis-5.14", Source: "000", Where: "Theorems 5.2, 5.5, 5.11, 5.14, 5.20 and 5.23, " +
			"§5.2 to §5.4", Title: "The best attacks on the policies of chapter 5",
		About: "Each policy plays games in which one reward is 0 or 1 and all others are the " +
			"adversary's; the attacker sees all releases, which is more than the plays. " +
			"Neighbours, continuations, score and threshold are searched for on games of their " +
			"own; then ε is bounded from below. " +
			"An audit refutes a claim or does not: that the best attack stays below what is " +
			"proved is no proof, and how near it comes says how much of the noise is needed.",
		Chosen: "ε = 1, ρ = ½ (at δ = 0.05, where it is the ε of the tightest conversion), two " +
			"arms, at most 128 rounds for finite arms, 16 to 32 768 elsewhere; 300 000 games " +
			"each (quick: 10 000), at 99 % over the seven.",
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			games, pilot := p.size(300_000, 10_000), p.size(2048, 256)
			n.Runs = games
			all := promisedPolicies()
			for _, g := range all {
				x, err := g.audited(ctx, n.seed(21520), games, pilot, auditGamma/float64(len(all)), false)
				if err != nil {
					try(fmt.Errorf("%s: %w", g.claim, err))
				}
				n.set("audit "+g.claim, attackEpsilon{x.Low, x.Estimate, x.High, x.Claimed})
			}
		},
	}
	for _, g := range promisedPolicies() {
		f.Claims = append(f.Claims, Claim{
			ID: g.claim, IfHolds: NotContradicted, Text: g.text, Where: g.theorem,
			Statistic: "ε of the best attack over what is claimed, by its errors as counted, and " +
				"the lower bound; fails if the bound is above 1",
			Decide: unrefuted(g.claim), Why: theoremWhy,
		})
	}
	return f
}

// beta520 is the allocation of Top Two policies in the catalog.
const beta520 = 0.5

// asymptotically judges mean stopping times over an upper bound for δ → 0 at a small δ: below it
// holds. Above it decides only if they did not come nearer from a larger δ.
func asymptotically(policy string) Check {
	return func(e *Evidence) Finding {
		small := cellsOf(e, "small", policy)
		var parts []Finding
		for _, c := range small {
			large := need(e.Cell("large", c.Instance, c.Policy, c.Budget))
			x, y := meanOf(c.FinalStoppingTime), meanOf(large.FinalStoppingTime)
			a, b := c.Identify.AsymptoticUpper, large.Identify.AsymptoticUpper
			if !(a > 0 && b > 0) {
				return need(Finding{}, fmt.Errorf("paper: no upper bound for %s", c.Label()))
			}
			h := x.half(len(small))
			f := Below(x.mean/a, (x.mean-h)/a, (x.mean+h)/a, 1, x.runs,
				fmt.Sprintf("%s: %.3f of the bound at δ = %.0g, %.3f at %.0g", c.Label(), x.mean/a,
					c.Identify.Risk, y.mean/b, large.Identify.Risk))
			if f.Answer == Fails && x.mean/a < y.mean/b {
				f.Answer = Undecided
			}
			parts = append(parts, f)
		}
		return largestOf(parts)
	}
}

// largestOf is Every, but shows the largest of those that hold: where a bound is tightest.
func largestOf(parts []Finding) Finding {
	f := Every(parts)
	if f.Answer != Holds {
		return f
	}
	for _, p := range parts {
		if p.Value > f.Value {
			f.Value, f.Low, f.High, f.Runs, f.Detail = p.Value, p.Low, p.High, p.Runs,
				fmt.Sprintf("tightest at %s; of %d cells all hold", p.Detail, len(parts))
		}
	}
	return f
}

// root1 is g₁(y) of Theorem 5.23, the largest x with x² ≤ x + y√(2x) + y²/4.
func root1(y float64) float64 {
	lo, hi := 1.0, 1+y*y+8*y
	for range 200 {
		if m := (lo + hi) / 2; m*m > m+y*math.Sqrt(2*m)+y*y/4 {
			hi = m
		} else {
			lo = m
		}
	}
	return lo
}

// valuesOfG1 are g₁ of Theorem 5.23 at 12 and at 0, and its largest fall.
type valuesOfG1 struct{ At12, At0, Fall float64 }

// upperTimes are the comments on Theorems 5.20 and 5.23 as numbers, over random instances.
func upperTimes(n *Numbers, instances int) error {
	r := rand.New(rand.NewPCG(n.seed(20520), 523))
	rises, last := 0.0, 0.0
	for i := range 121 {
		x := root1(float64(i) / 10)
		rises, last = max(rises, last-x), x
	}
	n.set("g1", valuesOfG1{root1(12), root1(0), rises})
	var sixteen, eight, limit sharpest
	for i := range instances {
		means := randomMeans(r, 2+i%5)
		if i == 0 {
			means = []float64{0.8, 0.5}
		}
		k, gap := float64(len(means)), means[0]-means[1]
		free, err := bound.GaussianTime(means, 0.5)
		if err != nil {
			return err
		}
		up, err := bound.AdaPTTUpper(means, math.Inf(1), beta520)
		if err != nil {
			return err
		}
		sixteen.take(up/free.Low, k)
		tv, err := bound.TVTime(means)
		if err != nil {
			return err
		}
		for _, share := range []float64{1, 0.1, 1e-3, 1e-6} {
			epsilon := gap / 3 * share
			t, err := bound.PrivateBetaTime(means, 0.5, beta520, epsilon)
			if err != nil {
				return err
			}
			eight.take(12*t.Time/(tv/epsilon), k, epsilon)
			if share == 1e-6 {
				if up, err = bound.AdaPTTStarUpper(means, epsilon, beta520); err != nil {
					return err
				}
				limit.take(up/(tv/epsilon), k)
			}
		}
	}
	n.Values["sixteen"], n.Values["eight"], n.Values["48"] = sixteen.numbers(), eight.numbers(), limit.numbers()
	return nil
}

func samplesOfChapter5() Figure {
	of := func(name string, most float64) Check {
		return largest(name, most*(1+1e-6), "largest for %.0f arms")
	}
	return Figure{
		ID: "thesis-5.20", Source: "000", Where: "Theorems 5.20 and 5.23, §5.4.2 and §5.4.3",
		Title: "Stopping times of AdaP-TT and AdaP-TT* as the risk goes to 0",
		About: "Both theorems bound E τ/log(1/δ) in the limit δ → 0. Mean stopping times at δ = " +
			"10⁻¹⁶ and 10⁻³⁰⁰ over that bound times log(1/δ), and the comments on the bounds as " +
			"numbers over random instances.",
		Chosen: "Three instances of Bernoulli arms with distinct means, ε = 0.05, 0.5 and 5, β = " +
			"½, thresholds as proved. A bound for δ → 0 says nothing at a given δ: below it the " +
			"claim is not contradicted; above it, it would be undecided as long as stopping " +
			"times come nearer. The smaller δ was 10⁻⁶⁴ at first, where a cell of 18 was 1 to 3 " +
			"% above its bound; 10⁻³⁰⁰ is near the smallest number of the machine.",
		Experiments: []Experiment{
			{Name: "large", File: "thesis-5.20.yaml", Quick: runs(40)},
			{Name: "small", File: "thesis-5.20-small.yaml", Quick: runs(40)},
		},
		Compute: func(ctx context.Context, p Preset, n *Numbers) {
			instances := p.size(300, 40)
			try(ctx.Err())
			try(upperTimes(n, instances))
		},
		Claims: []Claim{
			{
				ID: "adap-tt", IfHolds: NotContradicted, Text: "AdaP-TT has limsup E τ/log(1/δ) " +
					"≤ 4 T*_{KL,β}(1 + √(1 + Δ_max²/(2σ⁴ε²))), for distinct means.",
				Where: "Theorem 5.20 in §5.4.2",
				Statistic: "Mean stopping time at δ = 10⁻³⁰⁰ over the bound, each instance and " +
					"ε; holds if all are below 1", Decide: asymptotically("adap-tt"), Why: theoremWhy,
			},
			{
				ID: "adap-tt-star", IfHolds: NotContradicted, Text: "AdaP-TT* has limsup E " +
					"τ/log(1/δ) ≤ 4 T*_{KL,β} g₁(Δ_max/(σ²ε)) if Δ_max < 3ε, else 12 T*_{ε,β} " +
					"g₂/σ².", Where: "Theorem 5.23 in §5.4.3",
				Statistic: "Mean stopping time at δ = 10⁻³⁰⁰ over the bound, each instance and " +
					"ε; holds if all are below 1", Decide: asymptotically("adap-tt-star"), Why: theoremWhy,
			},
			{
				ID: "g1", Text: "g₁ is increasing on [0, 12], g₁(0) = 1 and g₁(12) ≤ 10.",
				Where: "Theorem 5.23 in §5.4.3",
				Statistic: "g₁(12) by bisection, and the largest fall of g₁ between tenths; " +
					"holds if at most 10, 0, and g₁(0) = 1",
				Decide: judged("g1", func(g valuesOfG1) (float64, bool, string) {
					return g.At12, g.At12 <= 10 && math.Abs(g.At0-1) < 1e-9 && g.Fall <= 0,
						fmt.Sprintf("g₁(0) = %.6f", g.At0)
				}), Why: theoremWhy,
			},
			{
				ID: "sixteen", IfHolds: NotContradicted, Text: "Without privacy the bound of " +
					"AdaP-TT is at most 16 times T*_KL of Gaussian arms, at β = ½.",
				Where: "comment on Theorem 5.20, §5.4.2",
				Statistic: "The bound at ε = +Inf over T*_KL, from below, largest over random " +
					"instances; holds if at most 16", Decide: of("sixteen", 16), Why: theoremWhy,
			},
			{
				ID: "eight", IfHolds: NotContradicted, Text: "If Δ_min ≥ 3ε, then 12 T*_{ε,β} is " +
					"at most 8 T*_TV/ε.", Where: "comment on Theorem 5.23, §5.4.3",
				Statistic: "12 T*_{ε,½} over T*_TV/ε, largest over random Bernoulli instances " +
					"and four ε; holds if at most 8", Decide: of("eight", 8), Why: theoremWhy,
			},
			{
				ID: "forty-eight", IfHolds: NotContradicted, Text: "As ε → 0 the bound of " +
					"AdaP-TT* is at most 48 times the lower bound T*_TV/ε.",
				Where: "comment on Theorem 5.23, §5.4.3",
				Statistic: "The bound over T*_TV/ε at ε = Δ_min/(3·10⁶), largest over random " +
					"instances; holds if at most 48", Decide: of("48", 48), Why: theoremWhy,
			},
		},
	}
}

// overUpper judges mean regrets over an upper bound at a cell's ε or ρ, all cells of a policy; it
// shows where the bound is tightest.
func overUpper(experiment, policy, name string, of func(x float64) privacy.Budget) Check {
	return func(e *Evidence) Finding {
		r := need(e.Results(experiment))
		cells := cellsOf(e, experiment, policy)
		var parts []Finding
		for _, c := range cells {
			means, ok := sweep5()[c.Instance]
			_, text, found := strings.Cut(c.Budget, "=")
			x, err := strconv.ParseFloat(text, 64)
			if !ok || !found || err != nil {
				return need(Finding{}, fmt.Errorf("paper: %s is not of the sweep", c.Label()))
			}
			b := need(upper(name, means, of(x), 3.1, float64(r.Manifest.Horizon)))
			m := meanOf(c.FinalRegret)
			h := m.half(len(cells))
			parts = append(parts, Below(m.mean/b, (m.mean-h)/b, (m.mean+h)/b, 1, m.runs,
				fmt.Sprintf("%s, %s: %.0f of %.0f", c.Instance, c.Budget, m.mean, b)))
		}
		return largestOf(parts)
	}
}

// sweep5 are the instances of thesis-c.7.yaml and thesis-5.table.yaml.
func sweep5() map[string][]float64 {
	all := map[string][]float64{}
	for _, gap := range []float64{0.003, 0.01, 0.03, 0.1, 0.3, 0.5} {
		for _, arms := range []int{2, 10} {
			means := []float64{0.5}
			for len(means) < arms {
				means = append(means, 0.5-gap)
			}
			all[fmt.Sprintf("%d arms, gap %v", arms, gap)] = means
		}
	}
	return all
}

// An entry is a row of Table 5.2: an experiment, its policy, and the expression of the table for a
// horizon and a ρ.
type entry struct {
	experiment, policy string
	of                 func(instance string, t, rho float64) float64
}

func table52() []entry {
	const d, k = 3.0, 10.0 // of the linear and contextual instances
	return []entry{
		{"finite", "adac-ucb", func(instance string, t, rho float64) float64 {
			arms := float64(len(sweep5()[instance]))
			return math.Sqrt(arms*t*math.Log(t)) + arms/math.Sqrt(rho)*math.Sqrt(math.Log(t))
		}},
		{"linear", "adac-gope", func(_ string, t, rho float64) float64 {
			return math.Sqrt(d*t*math.Log(k*t)) + d/math.Sqrt(rho)*math.Pow(math.Log(k*t), 1.5)
		}},
		{"contextual", "adac-oful", func(_ string, t, rho float64) float64 {
			return d*math.Log(t)*math.Sqrt(t) + d*d/math.Sqrt(rho)*math.Pow(math.Log(t), 2)
		}},
	}
}

// staysBelow holds if the largest ratio of regret to a row's expression is no larger at the horizon
// than decades before.
func (row entry) staysBelow(decades float64) Check {
	return func(e *Evidence) Finding {
		r := need(e.Results(row.experiment))
		cells := cellsOf(e, row.experiment, row.policy)
		end := r.Manifest.Horizon
		early := int(math.Round(float64(end) / math.Pow(10, decades)))
		var x [2]extreme
		where := ""
		for _, c := range cells {
			budget, ok := c.PrivacyBudget().(privacy.ZCDP)
			if !ok {
				return need(Finding{}, fmt.Errorf("paper: %s has no ρ", c.Label()))
			}
			for i, t := range []int{early, end} {
				m := at(r, c.Regret, t)
				b := row.of(c.Instance, float64(t), budget.Rho)
				if x[i].most(estimate{m.mean / b, m.se / b, m.runs}, 2*len(cells)) && i == 1 {
					where = fmt.Sprintf("%s, %s", c.Instance, c.Budget)
				}
			}
		}
		v, lo, hi := x[1].over(x[0])
		return Below(v, lo, hi, 1, x[1].runs, fmt.Sprintf("%.3g times the expression at T = %.0e "+
			"(%s), %.3g at %.0e", x[1].mean, float64(end), where, x[0].mean, float64(early)))
	}
}

func regretOfChapter5() Figure {
	rho := func(x float64) privacy.Budget { return privacy.ZCDP{Rho: x} }
	rows := table52()
	order := func(id, text, theorem string, decades float64, row entry) Claim {
		return Claim{
			ID: id, IfHolds: NotContradicted, Text: text, Where: theorem,
			Statistic: fmt.Sprintf("Mean regret over the table's expression without its "+
				"constants, largest over instances and ρ, at the horizon over %g decades before; "+
				"holds if below 1: an order with any constant is not outgrown", decades),
			Decide: row.staysBelow(decades), Why: "An order says nothing of any two horizons; " +
				"where the ratio still grows, they are too early. They are of one dimension, so " +
				"that of d nothing is seen: for large d the linear row falls with [Azize and " +
				"Basu 2024, Theorem 4] " +
				"(page zcdp-theorems).",
		}
	}
	return Figure{
		ID: "thesis-c.7", Source: "000", Where: "Theorem C.7, Appendix C.2.4, and Table 5.2, §5.3",
		Title: "Bounds on regret without gaps",
		About: "The regret of AdaP-UCB over the bound of Theorem C.7, and of AdaC-UCB over that " +
			"of Appendix C.2.6, over gaps, arms and budgets; and the three rows of Table 5.2, " +
			"which are orders. " +
			"Theorem C.7 splits (C.13) into a sum, which its proof gives; that (C.12) loses a " +
			"factor of up to 1.5 does not matter to it.",
		Chosen: "One arm of mean ½ and one or nine that are 0.003 to 0.5 below it, T = 10⁶ " +
			"(Table 5.2: to 10⁸), β = 3.1. Linear and contextual: ten actions in three " +
			"dimensions, as in Figure 5.5 and 5.6.",
		Voids: "Linear and contextual: " + voidLinear,
		Experiments: []Experiment{
			{Name: "free", File: "thesis-c.7.yaml", Quick: runs(20)},
			{Name: "finite", File: "thesis-5.table-finite.yaml", Quick: runs(20)},
			{Name: "linear", File: "thesis-5.table-linear.yaml", Quick: runs(40)},
			{Name: "contextual", File: "thesis-5.table-contextual.yaml", Quick: runs(25)},
		},
		Claims: []Claim{
			{
				ID: "gap-free", IfHolds: NotContradicted, Text: "The regret of AdaP-UCB is at " +
					"most 3β/(β − 3) Σ Δ + 8√(βKT log T) + 16βK log T/ε.", Where: "Theorem C.7 in Appendix C.2",
				Statistic: "Mean final regret over the bound, each instance and ε; holds if all are below 1",
				Decide: overUpper("free", "adap-ucb", "thesis-C.7", func(x float64) privacy.Budget {
					return privacy.Pure{Epsilon: x}
				}), Why: theoremWhy,
			},
			{
				ID: "gap-free-zcdp", IfHolds: NotContradicted, Text: "That of AdaC-UCB is at " +
					"most 4√(2βKT log T) + 8K√(β log T/ρ) + 3β/(β − 3) Σ Δ.",
				Where:     "Appendix C.2; Theorem 5.6 in §5.3.1",
				Statistic: "Mean final regret over the bound, each instance and ρ; holds if all are below 1",
				Decide:    overUpper("finite", "adac-ucb", "zcdp-11", rho), Why: theoremWhy,
			},
			order("table-finite", "Finite arms: O(√(KT log T)) + O(K√(log T/ρ)).",
				"Table 5.2 in §5.3.3; Theorem 5.6 in §5.3.1", 2, rows[0]),
			order("table-linear", "Linear bandits: O(√(dT log(KT))) + O((d/√ρ) log^{3/2}(KT)).",
				"Table 5.2 in §5.3.3; Theorem 5.12 in §5.3.2", 2, rows[1]),
			order("table-contextual", "Linear contextual bandits: O(d log(T)√T) + O((d²/√ρ) log²T).",
				"Table 5.2 and Theorem 5.17 in §5.3.3", 1, rows[2]),
		},
	}
}
