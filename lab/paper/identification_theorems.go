package paper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// tvTime is T*_TV of Bernoulli arms by linear programming: the largest y with ω_1Δ_a ≥ y and ω_aΔ_a
// ≥ y for all a ≠ 1, the best arm, is 1/T*_TV. For the cost of moving means until arm a is as good
// as arm 1, ω_1|μ_1 − x| + ω_a|x − μ_a|, is linear in x between them, and so least at an end:
// min(ω_1, ω_a)Δ_a.
func tvTime(means []float64) (float64, error) {
	k := len(means)
	best := slices.Index(means, slices.Max(means))
	// Variables: ω (k), y, and a slack for each of 2(k−1) inequalities.
	n := k + 1 + 2*(k-1)
	a, b, c := mat.NewDense(1+2*(k-1), n, nil), make([]float64, 1+2*(k-1)), make([]float64, n)
	c[k], b[0] = -1, 1
	row := 1
	for i, m := range means {
		a.Set(0, i, 1)
		if i == best {
			continue
		}
		for _, arm := range []int{best, i} {
			a.Set(row, arm, means[best]-m)
			a.Set(row, k, -1)
			a.Set(row, k+row, -1)
			row++
		}
	}
	y, _, err := lp.Simplex(c, a, b, 1e-12, nil)
	return -1 / y, err
}

// bound5 is the right side of [Azize et al. 2023, Theorem 5] (σ = 1), over log(1/δ), at β = ½.
func bound5(means []float64, epsilon float64) (float64, error) {
	t, err := bound.GaussianBetaTime(means, 1, 0.5)
	if err != nil {
		return 0, err
	}
	wide := slices.Max(means) - slices.Min(means)
	return 4 * t.Time * (1 + math.Sqrt(1+wide*wide/(2*epsilon*epsilon))), nil
}

// bai5 are the instances of bai-theorems-*.yaml.
func bai5(name string) ([]float64, error) {
	switch name {
	case "two":
		return []float64{0.9, 0.5}, nil
	case "three":
		return []float64{0.9, 0.6, 0.4}, nil
	case "five":
		return []float64{0.95, 0.7, 0.5, 0.3, 0.1}, nil
	}
	return nil, fmt.Errorf("paper: there is no instance %q", name)
}

// attackIdentification attacks AdaP-TT by its releases, of which its plays, its answer and its
// time are functions.
func attackIdentification(fault audit.Fault) attacked {
	return attacked{policy: "adap-tt", horizon: 64, budget: privacy.Pure{Epsilon: 1}, risk: 0.1, fault: fault}
}

// plainTopTwo is the stopping time of the non-private AdaP-TT of [Azize et al. 2023, Appendix D],
// (13), (14) with s = 2, and (19) to (21), on N(μ_a, 1) rewards, at β = ½; and whether its answer
// was wrong. A phase's mean is drawn at once, since only its law counts.
func plainTopTwo(means []float64, risk float64, random *rand.Rand) (plays int, wrong bool) {
	k := len(means)
	mean, local, phase := make([]float64, k), make([]float64, k), make([]float64, k)
	total, led, own := make([]float64, k), make([]float64, k), make([]float64, k)
	for a := range k {
		mean[a], local[a], phase[a], total[a] = means[a]+random.NormFloat64(), 1, 1, 1
	}
	plays = k
	zeta := math.Pi * math.Pi / 6
	stops := func() bool {
		best := slices.Index(mean, slices.Max(mean))
		for b := range k {
			if b == best {
				continue
			}
			c := 2*identify.CG(math.Log(float64(k-1)*zeta*zeta*math.Pow(phase[best]*phase[b],
				2)/risk)/2) + 2*math.Log(4+math.Log(local[best])) + 2*math.Log(4+math.Log(local[b]))
			if d := mean[best] - mean[b]; d*d/(1/local[best]+1/local[b]) < 2*c {
				return false
			}
		}
		wrong = means[best] < slices.Max(means)
		return true
	}
	leader := func() int {
		best, index := 0, math.Inf(-1)
		for a := range k {
			if x := mean[a] + math.Sqrt(phase[a]/local[a]); x > index {
				best, index = a, x
			}
		}
		return best
	}
	for b := leader(); ; {
		led[b]++
		arm := b
		if own[b] > led[b]/2 {
			least := math.Inf(1)
			for a := range k {
				if a == b {
					continue
				}
				if x := (mean[b] - mean[a]) / math.Sqrt(1/total[b]+1/total[a]); x < least {
					arm, least = a, x
				}
			}
		} else {
			own[b]++
		}
		total[arm]++
		plays++
		if total[arm] < math.Exp2(phase[arm]) { // phase k ends when its 2^{k−1} plays have doubled
			continue
		}
		local[arm] = total[arm] / 2
		phase[arm]++
		mean[arm] = means[arm] + random.NormFloat64()/math.Sqrt(local[arm])
		if stops() {
			return plays, wrong
		}
		b = leader()
	}
}

// smallRisk is the δ at which limits are looked at.
const smallRisk = 1e-200

func computeIdentification(ctx context.Context, p Preset, n *Numbers) {
	var apart tightest
	random := rand.New(rand.NewPCG(n.seed(21603), 1))
	for k := 2; k <= 9; k++ {
		for range 8 {
			means := make([]float64, k)
			for i := range means {
				means[i] = random.Float64()
			}
			got := need(tvTime(means))
			best := slices.Max(means)
			want, least := 0.0, math.Inf(1)
			for _, m := range means {
				if m < best {
					want, least = want+1/(best-m), min(least, best-m)
				}
			}
			want += 1 / least
			apart.see(math.Abs(got/want-1)/1e-8, "%d arms, smallest gap %.3g", k, least)
		}
	}
	apart.put(n, "T*_TV, distance from the formula over 1e-8")
	games := gamesOf(p)
	n.Runs = games
	n.set("adap-tt", need(attackIdentification(audit.NoFault).found(ctx, n.seed(21601), games)))
	runs := p.size(200, 20)
	for i, name := range []string{"two", "three", "five"} {
		means := need(bai5(name))
		t := need(bound.GaussianBetaTime(means, 1, 0.5))
		random := rand.New(rand.NewPCG(n.seed(21605), uint64(i)))
		for range runs {
			try(ctx.Err())
			plays, _ := plainTopTwo(means, smallRisk, random)
			n.Values["plain "+name] = append(n.Values["plain "+name],
				float64(plays)/(4*t.Time*math.Log(1/smallRisk)))
		}
	}
}

func identificationTheorems() Figure {
	smallest := []string{"1e-200"}
	over := func(c *experiment.CellResult, cells int) (x estimate, half float64) {
		b := need(bound5(need(bai5(c.Instance)), epsilonOfCell(c)))
		x = meanOf(c.FinalStoppingTime)
		scale := 1 / (b * math.Log(1/c.Identify.Risk))
		return estimate{x.mean * scale, x.se * scale, x.runs}, x.half(cells) * scale
	}
	return Figure{
		ID: "bai-theorems", Source: "004", Where: "Theorems 3, 5 and 6 and Proposition 1, §3, §4 " +
			"and Appendices C to E", Title: "The theorems on private best-arm identification",
		About: "The characteristic time T*_TV by linear programming, attacks on AdaP-TT, and " +
			"its plays over the bound of Theorem 5 as δ goes to 0.",
		Chosen: "Instances, budgets and δ are ours. The rule is AdaP-TT with the threshold of " +
			"Theorem 4, σ = 1, log n in the leader's bonus and means clipped to [0, 1]. The " +
			"audit has two arms, 64 rounds, ε = 1 and δ = 0.1.",
		Experiments: []Experiment{
			{"1e-3", "bai-theorems-1e-3.yaml", quickHorizon(20, 0)},
			{"1e-30", "bai-theorems-1e-30.yaml", quickHorizon(20, 0)},
			{"1e-200", "bai-theorems-1e-200.yaml", quickHorizon(20, 0)},
		},
		Compute: computeIdentification,
		Claims: []Claim{
			{
				ID: "proposition-1", Text: "For Bernoulli arms T*_TV = 1/Δ_min + Σ_{a≠1} 1/Δ_a.",
				Where: "Proposition 1 in §3 and Appendix B.4",
				Statistic: "The largest relative distance of T*_TV by linear programming from " +
					"the formula, over 10⁻⁸, a bound on rounding, on 64 random instances of 2 to " +
					"9 arms: holds if at most 1",
				Decide: ratios("T*_TV, distance from the formula over 1e-8"),
			},
			{ID: "3", IfHolds: NotContradicted, Text: "For rewards in [0, 1], AdaP-TT satisfies " +
				"ε-global DP.", Where: "Theorem 3 in §4 and Appendix C.2",
				Statistic: unfoundStatistic, Decide: unfound("adap-tt"), Why: auditWhy},
			{
				ID: "5", IfHolds: NotContradicted, Text: "As δ → 0, E τ/log(1/δ) is at most " +
					"4T*_{KL,β}(μ)(1 + √(1 + Δ_max²/(2ε²))), if no two means are equal.",
				Where: "Theorem 5 in §4 and Appendix E",
				Statistic: "Mean plays at δ = 10⁻²⁰⁰ over that times log(1/δ), σ = 1 and β = ½, " +
					"for three instances and ε = 0.05, 1 and 10: holds if all are below 1",
				Decide: overCells("adap-tt", smallest, func(c *experiment.CellResult,
					m *experiment.Manifest, cells int) Finding {
					x, h := over(c, cells)
					return Below(x.mean, x.mean-h, x.mean+h, 1, x.runs, c.Label()+", δ = 10⁻²⁰⁰")
				}),
				Why: "It is a limit: at any δ what is of lower order, log log(1/δ) and the size " +
					"of the last phase, may lift plays above it.",
			},
			{
				ID: "6", IfHolds: NotContradicted, Text: "As δ → 0, E τ/log(1/δ) of the " +
					"non-private AdaP-TT is at most 4T*_{KL,β}(μ), if no two means are equal.",
				Where: "Theorem 6 in Appendix D and Appendix E.8",
				Statistic: "Mean plays at δ = 10⁻²⁰⁰ over 4T*_{KL,β} log(1/δ), β = ½, N(μ_a, 1) " +
					"rewards, (13) and (14) with s = 2, (19) to (21), for the same instances: " +
					"holds if all are below 1",
				Decide: func(e *Evidence) Finding {
					return each([]string{"two", "three", "five"}, func(name string) Finding {
						x := meanOf(rows[float64](e, "plain "+name))
						h := x.half(3)
						return Below(x.mean, x.mean-h, x.mean+h, 1, x.runs, name+" arms")
					})
				},
				Why: "It is a limit: see Theorem 5.",
			},
			{
				ID: "5-approach", Own: true, Text: "The ratio of Theorem 5 falls as δ does: what " +
					"is above the bound at a usual δ is of lower order.",
				Statistic: "The ratio at δ = 10⁻²⁰⁰ over that at 10⁻³, in each cell: holds if all are below 1",
				Decide: func(e *Evidence) Finding {
					return everywhere(placesOf(e, "1e-200", "adap-tt"), func(p place, cells int) Finding {
						a, b := cellAt(e, "1e-200", "adap-tt", p), cellAt(e, "1e-3", "adap-tt", p)
						x, _ := over(a, cells)
						y, _ := over(b, cells)
						r, lo, hi := x.over(y, cells)
						return Below(r, lo, hi, 1, x.runs, fmt.Sprintf("%s: %.3g times the bound "+
							"at 10⁻³, %.3g at 10⁻²⁰⁰", p, y.mean, x.mean))
					})
				},
			},
		},
	}
}
