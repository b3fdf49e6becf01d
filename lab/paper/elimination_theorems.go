package paper

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Constants of the proofs of [Sajed 2019, Lemmas 5.1.2 and A.1.2]: of 1/Δ² and of 1/(εΔ).
const (
	seSquare, seLinear   = 1024, 96
	se2Square, se2Linear = 80_000, 80_000
)

// playsProved is the bound on plays of an arm in the proof of [Sajed 2019, Lemma 5.1.2] or A.1.2,
// with logarithms to base 2 in what counts epochs.
func playsProved(k, gap, epsilon, beta, square, linear float64) float64 {
	return math.Log(k*max(1, math.Log2(2/gap))/beta) * (square/(gap*gap) + linear/(epsilon*gap))
}

// epochPlays is Σ R_e of Algorithm 9 up to the epoch in which an arm of this gap is surely dropped
// while none of K arms was.
func epochPlays(k, gap, epsilon, beta float64) float64 {
	sum := 0.0
	for e := 1.0; ; e++ {
		width := math.Exp2(-e)
		sum += math.Ceil(max(32*math.Log(8*k*e*e/beta)/(width*width),
			8*math.Log(4*k*e*e/beta)/(epsilon*width)) + 1)
		if width <= gap*(1+1e-12) {
			return sum
		}
	}
}

// nasSamples is the bound on samples at the end of the proof of [Sajed 2019, Theorem 2.2.2], for
// samples in [−1, 1] and the printed H_t.
func nasSamples(alpha, beta, mu float64) float64 {
	return 12 / (alpha * alpha * mu * mu) * (math.Log(1/beta) + 4*math.Log(1/(alpha*mu)) + math.Log(324))
}

// nasLater is the probability that Algorithm 3, with its radius times scale, has not stopped after
// n samples of ±1 with mean mu, by the law of the sum.
func nasLater(alpha, beta, mu, scale float64, n int) float64 {
	up := (1 + mu) / 2
	law, next := make([]float64, 2*n+3), make([]float64, 2*n+3)
	zero, left := n+1, 1.0
	law[zero] = 1
	for t := 1; t <= n; t++ {
		h := scale * math.Sqrt(math.Log(4*float64(t)*float64(t)/beta)/float64(2*t)) * (1 + 1/alpha)
		clear(next)
		left = 0
		for s := -t; s <= t; s += 2 {
			if math.Abs(float64(s)) < h*float64(t) {
				next[zero+s] = up*law[zero+s-1] + (1-up)*law[zero+s+1]
				left += next[zero+s]
			}
		}
		law, next = next, law
	}
	return left
}

// sumsWithStep is the largest number of noisy sums of Algorithm 5 that one step is in, by running it.
func sumsWithStep(horizon int) int {
	counts := make([]int, horizon+1)
	alpha := make([][]int, bits.Len(uint(horizon))+1) // the steps in each α_j
	for t := 1; t <= horizon; t++ {
		i := bits.TrailingZeros(uint(t))
		steps := []int{t}
		for j := range i {
			steps = append(steps, alpha[j]...)
			alpha[j] = nil
		}
		alpha[i] = steps
		for _, s := range steps {
			counts[s]++
		}
	}
	most := 0
	for _, c := range counts {
		most = max(most, c)
	}
	return most
}

// starGap is the Δ* of the proof of [Sajed 2019, Theorem 5.1.4]: Δ*T/K = 2 log T (1/Δ* +
// 1/ε), with C = 1.
func starGap(k, epsilon, horizon float64) float64 {
	a, l := horizon/k, 2*math.Log(horizon)
	b := l / epsilon
	return (b + math.Sqrt(b*b+4*a*l)) / (2 * a)
}

func eliminationTheorems() Figure {
	const level = 0.05 // β of sajed-theorems-beta.yaml
	horizons := []string{"1e5", "1e7", "1e9"}
	rate := func(c *experiment.CellResult, T float64) float64 {
		gap, _ := gapOf(c)
		k := float64(c.Arms)
		return (k-1)*math.Log(T)/gap + k*math.Log(T)/epsilonOfCell(c)
	}
	free := func(c *experiment.CellResult, T float64) float64 {
		k := float64(c.Arms)
		return math.Sqrt(T*k*math.Log(T)) + k*math.Log(T)/epsilonOfCell(c)
	}
	proved := func(square, linear float64) func(c *experiment.CellResult,
		m *experiment.Manifest) (float64, error) {
		return func(c *experiment.CellResult, m *experiment.Manifest) (float64, error) {
			gap, err := gapOf(c)
			T, k := float64(m.Horizon), float64(c.Arms)
			return 1 + (k-1)*gap*playsProved(k, gap, epsilonOfCell(c), 1/T, square, linear), err
		}
	}
	// Of the proof of Theorem 5.1.4: 2Δ*T, with the constant C of the lemma, and 1 for gaps below
	// 1/T.
	star := func(constant float64) func(c *experiment.CellResult, m *experiment.Manifest) (float64, error) {
		return func(c *experiment.CellResult, m *experiment.Manifest) (float64, error) {
			T, k := float64(m.Horizon), float64(c.Arms)
			a, l := T/k, 2*constant*math.Log(T)
			b := l / epsilonOfCell(c)
			return 1 + T*(b+math.Sqrt(b*b+4*a*l))/a, nil
		}
	}
	plays := func(policy string, square, linear float64) Check {
		return func(e *Evidence) Finding {
			r := need(e.Results("beta"))
			more, runs := 0, 0
			var most tightest
			for i := range r.Cells {
				c := &r.Cells[i]
				if c.Policy != policy {
					continue
				}
				gap := need(gapOf(c))
				b := min(float64(r.Manifest.Horizon), playsProved(float64(c.Arms), gap,
					epsilonOfCell(c), level, square, linear))
				for _, x := range c.FinalRegret {
					runs++
					if x/gap > b {
						more++
					}
					most.see(x/gap/b, "%s", c.Label())
				}
			}
			if runs == 0 {
				return need(Finding{}, &NotPlayedError{Name: "beta: " + policy, Preset: e.Preset})
			}
			return atMost(more, runs, level, 1, fmt.Sprintf("%d of %d runs; most plays over the "+
				"bound are %.3g, at %s", more, runs, most.value, most.at))
		}
	}
	regret := func(id, text, where, policy string,
		limit func(c *experiment.CellResult, m *experiment.Manifest) (float64, error), of string) Claim {
		return Claim{
			ID: id, IfHolds: NotContradicted, Text: text, Where: where, Why: theoremWhy,
			Statistic: "Mean regret over " + of + ", for two and ten arms at one distance, eight " +
				"gaps from 0.8 to 0.001, ε of 0.1, 1 and 10 and T from 10⁵ to 10⁹: holds if all are below 1",
			Decide: underBound(policy, limit, horizons...),
		}
	}
	// The arms of a cell are surely dropped by T = 10⁷ under Algorithm 9.
	dropped := func(c *experiment.CellResult) string {
		gap, err := gapOf(c)
		if k := float64(c.Arms); err != nil || k*epochPlays(k, gap, epsilonOfCell(c), 1e-7) > 1e7 {
			return ""
		}
		return c.Instance + ", " + c.Row()
	}
	anyGap := func(c *experiment.CellResult) string {
		arms, _, _ := strings.Cut(c.Instance, ",")
		return arms + ", " + c.Row()
	}
	order := func(id, text, where, policy string) Claim {
		return Claim{
			ID: id, IfHolds: NotContradicted, Text: text, Where: where,
			Statistic: "Mean regret over Σ log T/Δ + K log T/ε at T = 10⁹, over the same at 10⁷, " +
				"in each of those cells where Algorithm 9 surely has dropped all arms by 10⁷: " +
				"holds if all are below 2, a threshold of ours (lengths double; T^0.2 would " +
				"show, another logarithm would not)",
			Decide: keepsOrder(policy, "1e7", "1e9", 2, rate, dropped),
		}
	}
	worstOrder := func(id, text, where, policy string) Claim {
		return Claim{
			ID: id, IfHolds: NotContradicted, Text: text, Where: where,
			Statistic: "The largest mean regret over the eight gaps over √(TK log T) + K log T/ε " +
				"at T = 10⁹, over the same at 10⁷, for each number of arms and ε: holds if all " +
				"are below 2, a threshold of ours (gaps are a factor of 2 to 5 apart)",
			Decide: keepsOrder(policy, "1e7", "1e9", 2, free, anyGap),
		}
	}
	f := Figure{
		ID: "sajed-theorems", Source: "002", Where: "chapters 2, 3 and 5, §2.1.2, §2.2.1, §3.3, " +
			"§5.1 and §A.1", Title: "The theorems on elimination, stopping rules and the tree",
		About: "Bounds of the thesis over what is played, with the constants of their proofs " +
			"and the place where they are tightest; and audits of what it calls private.",
		Chosen: "The theorems have O(); constants are those of their proofs, read with base 2 " +
			"where epochs are counted (with natural logarithms log log(2/Δ) is below zero for " +
			"large gaps). Gaps, budgets and horizons are ours. The audits have two arms, and ε = 1.",
		Experiments: []Experiment{
			{"se", "sajed-theorems-se.yaml", quickHorizon(20, 0)},
			{"1e5", "sajed-theorems-1e5.yaml", quickHorizon(30, 0)},
			{"1e7", "sajed-theorems-1e7.yaml", quickHorizon(30, 0)},
			{"1e9", "sajed-theorems-1e9.yaml", quickHorizon(30, 0)},
			{"beta", "sajed-theorems-beta.yaml", quickHorizon(30, 0)},
		},
		Compute: computeElimination,
		Show:    func(string, string) bool { return false },
		Claims: []Claim{
			{
				ID: "2.1.5", IfHolds: NotContradicted, Text: "For every t ≤ T, the regret of " +
					"successive elimination is at most min(t, O(√(Kt log T)), O(Σ log T/Δ)).",
				Where: "Theorem 2.1.5 in §2.1.2",
				Statistic: "Mean regret at each of 61 t over min(t, √(32Kt log T), Σ 32 log T/Δ) " +
					"of the proof, plus the cycle in which arms are dropped and 2/T, for two and " +
					"five arms at one distance, T = 10⁵: holds if all are below 1",
				Decide: everyRound, Why: theoremWhy,
			},
			{
				ID: "2.2.2", IfHolds: NotContradicted, Text: "With probability at least 1 − β, " +
					"NAS takes O((R/αμ)² (log 1/β + log R/(α|μ|))) samples.", Where: "Theorem 2.2.2 in §2.2.1",
				Statistic: "The probability that Algorithm 3, as it is printed, takes more than " +
					"12(R/αμ)² (log 1/β + 4 log R/(α|μ|) + log 324) samples of ±R, over β, by " +
					"recursion over the law of the sum: largest of 12 triples (α, β, μ); holds if at most 1",
				Decide: ratios("NAS, later than proved"), Why: theoremWhy,
			},
			{
				ID: "2.2.2-samples", IfHolds: NotContradicted, Text: "Once |μ| ≥ H_t(2 + 1/α), " +
					"(2.36), which is so by t* = 12(R/αμ)² (log 1/β + 4 log R/(α|μ|) + log 324), " +
					"NAS has stopped.", Where: "proof of Theorem 2.2.2 in §2.2.1",
				Statistic: "The first t from which on (2.36) holds over t*, for 60 triples (α, " +
					"β, μ): holds if at most 1", Decide: ratios("NAS, (2.36) over t*"), Why: theoremWhy,
			},
			{
				ID: "3.3.1", IfHolds: NotContradicted, Text: "The tree-based binary mechanism, " +
					"with noise of scale (⌈log₂T⌉ + 1)/ε, is ε-DP.", Where: "Theorem 3.3.1 in §3.3",
				Statistic: unfoundStatistic, Decide: unfound("tree"), Why: auditWhy,
			},
			{
				ID: "3.3.1-sums", Text: "Each σ_i is in at most ⌈log₂T⌉ + 1 of its sums.",
				Where: "proof of Theorem 3.3.1 in §3.3",
				Statistic: "Sums of Algorithm 5 with one step, counted in a run of it, over " +
					"⌈log₂T⌉ + 1: largest for T from 2 to 600; holds if at most 1",
				Decide: ratios("tree, sums with a step"), Why: theoremWhy,
			},
			{ID: "5.1.1", IfHolds: NotContradicted, Text: "DP-SE (Algorithm 9) is ε-DP.",
				Where: "Theorem 5.1.1 in §5.1", Statistic: unfoundStatistic,
				Decide: unfound("dp-se"), Why: auditWhy},
			{
				ID: "5.1.2", IfHolds: NotContradicted, Text: "With probability at least 1 − β, " +
					"DP-SE plays an arm of gap Δ at most O((log K/β + log log 1/Δ)(1/Δ² + " +
					"1/(εΔ))) times.", Where: "Lemma 5.1.2 in §5.1",
				Statistic: "Share of runs with more than log(K log₂(2/Δ)/β)(1024/Δ² + 96/(εΔ)) " +
					"plays of the worse of two arms, at β = 0.05, over eight gaps and three ε: " +
					"holds if at most β", Decide: plays("dp-se", seSquare, seLinear), Why: theoremWhy,
			},
			{
				ID: "5.1.2-constants", IfHolds: NotContradicted, Text: "The lengths R_e up to " +
					"the epoch that drops it add up to at most log(K log(2/Δ)/β)(1024/Δ² + " +
					"96/(εΔ)).", Where: "proof of Lemma 5.1.2 in §5.1",
				Statistic: "Σ R_e over that, with log₂(2/Δ), for gaps from 1 to 10⁻⁴, K from 2 " +
					"to 1000, β from ½ to 10⁻⁹ and ε from 0.001 to 100: holds if at most 1",
				Decide: ratios("DP-SE, epochs over the lemma"), Why: theoremWhy,
			},
			regret("5.1.3", "For sufficiently large T and β = 1/T, the regret of DP-SE is O(Σ "+
				"log T/Δ + K log T/ε).", "Theorem 5.1.3 in §5.1", "dp-se",
				proved(seSquare, seLinear), "1 + Σ log(TK log₂(2/Δ))(1024/Δ + 96/ε)"),
			order("5.1.3-order", "The regret of DP-SE is of the order Σ log T/Δ + K log T/ε as T "+
				"grows.", "Theorem 5.1.3 in §5.1", "dp-se"),
			regret("5.1.4", "With β = 1/T, the regret of DP-SE is O(√(TK log T) + K log T/ε), "+
				"whatever the gaps are.", "Theorem 5.1.4 in §5.1", "dp-se", star(seSquare),
				"1 + 2Δ*T with the lemma's C = 1024"),
			worstOrder("5.1.4-order", "The regret of DP-SE is of the order √(TK log T) + K log "+
				"T/ε at most as T grows.", "Theorem 5.1.4 in §5.1", "dp-se"),
			{
				ID: "5.1.4-gap", Text: "The gap at which arms cost most is Δ* = Θ(max{√(K log " +
					"T)/T, K log T/(εT)}), as our text of it has.", Where: "proof of Theorem 5.1.4 in §5.1",
				Statistic: "The solution of Δ*T/K = 2 log T (1/Δ* + 1/ε), C = 1, over the " +
					"printed form at K = 10 and ε = 1: that ratio at T = 10¹² over the same at " +
					"10⁴; holds if between ½ and 2, bounds of ours. Beside it: the same for √(K log T/T)",
				Decide: judged("star", func(n starGrowth) (float64, bool, string) {
					return n.Printed, n.Printed >= 0.5 && n.Printed <= 2, fmt.Sprintf("for max{√(K "+
						"log T/T), K log T/(εT)} it is %.3g", n.Repaired)
				}),
				IfFails: Misprint,
				Why: "The T belongs under the root: by the equation above it, Δ*² ≈ 2CK log " +
					"T/T where ε is large. Only then is Δ*T of the order √(TK log T), as the " +
					"theorem says; our text is a conversion.",
				Reader: "Read Δ* = Θ(max{√(K log T/T), K log T/(εT)}).",
			},
			{ID: "a.1.1", IfHolds: NotContradicted, Text: "DP-SE 2 (Algorithm 10) is ε-DP.",
				Where: "Theorem A.1.1 in §A.1", Statistic: unfoundStatistic,
				Decide: unfound("dp-se-2"), Why: auditWhy},
			{
				ID: "a.1.2", IfHolds: NotContradicted, Text: "With probability at least 1 − β, " +
					"DP-SE 2 plays an arm of gap Δ at most O((log K/β + log log 1/Δ)(1/Δ² + " +
					"1/(εΔ))) times.", Where: "Lemma A.1.2 in §A.1",
				Statistic: "Share of runs with more than log(K log₂(2/Δ)/β)(80 000/Δ² + 80 " +
					"000/(εΔ)) plays of the worse of two arms, at β = 0.05, over eight gaps and " +
					"three ε: holds if at most β", Decide: plays("dp-se-2", se2Square, se2Linear),
				Why: theoremWhy,
			},
			regret("a.1.3", "For sufficiently large T and β = 1/T, the regret of DP-SE 2 is O(Σ "+
				"log T/Δ + K log T/ε).", "Corollary A.1.3 in §A.1", "dp-se-2",
				proved(se2Square, se2Linear), "1 + Σ log(TK log₂(2/Δ))(80 000/Δ + 80 000/ε)"),
			order("a.1.3-order", "The regret of DP-SE 2 is of the order Σ log T/Δ + K log T/ε as "+
				"T grows.", "Corollary A.1.3 in §A.1", "dp-se-2"),
			regret("a.1.4", "With β = 1/T, the regret of DP-SE 2 is O(√(TK log T) + K log T/ε), "+
				"whatever the gaps are.", "Theorem A.1.4 in §A.1", "dp-se-2", star(se2Square),
				"1 + 2Δ*T with the lemma's C = 80 000"),
			worstOrder("a.1.4-order", "The regret of DP-SE 2 is of the order √(TK log T) + K log "+
				"T/ε at most as T grows.", "Theorem A.1.4 in §A.1", "dp-se-2"),
		},
	}
	return f
}

// everyRound judges the mean regret of successive elimination at every checkpoint.
func everyRound(e *Evidence) Finding {
	return overCells("successive-elimination", []string{"se"},
		func(c *experiment.CellResult, m *experiment.Manifest, cells int) Finding {
			gap := need(gapOf(c))
			T, k := float64(m.Horizon), float64(c.Arms)
			var worst Finding
			for i, round := range m.Checkpoints {
				t := float64(round)
				b := min(t, math.Sqrt(32*k*t*math.Log(T))+k*gap+2/T, (k-1)*(32*math.Log(T)/gap+gap)+2/T)
				x := estimate{c.Regret.Mean[i], c.Regret.SE[i], m.Runs}
				h := x.half(cells * len(m.Checkpoints))
				f := Below(x.mean/b, (x.mean-h)/b, (x.mean+h)/b, 1, m.Runs,
					fmt.Sprintf("%s at t = %d", c.Instance, round))
				if i == 0 || f.Value > worst.Value {
					worst = f
				}
			}
			return worst
		})(e)
}

func computeElimination(ctx context.Context, p Preset, n *Numbers) {
	var later, solved tightest
	for _, alpha := range []float64{0.5, 0.7, 0.95} {
		for _, mu := range []float64{0.5, 0.9} {
			for _, beta := range []float64{0.5, 0.01} {
				try(ctx.Err())
				later.see(nasLater(alpha, beta, mu, 1, int(nasSamples(alpha, beta, mu)))/beta,
					"α = %v, β = %v, μ = %vR", alpha, beta, mu)
			}
		}
	}
	later.put(n, "NAS, later than proved")
	for _, alpha := range []float64{0.01, 0.1, 0.5, 0.9, 0.999} {
		for _, mu := range []float64{0.001, 0.1, 0.5, 1} {
			for _, beta := range []float64{0.999, 0.05, 1e-9} {
				// H_t(2 + 1/α) falls from t = e/2·√β on, so from 2.
				lo, hi := 2.0, 1e18
				for hi-lo > 1 {
					t := math.Floor((lo + hi) / 2)
					if mu >= (2+1/alpha)*math.Sqrt(math.Log(4*t*t/beta)/(2*t)) {
						hi = t
					} else {
						lo = t
					}
					if hi-lo <= 1e-12*hi {
						break
					}
				}
				solved.see(hi/nasSamples(alpha, beta, mu), "α = %v, β = %v, μ = %vR", alpha, beta, mu)
			}
		}
	}
	solved.put(n, "NAS, (2.36) over t*")
	var sums tightest
	for t := 2; t <= 600; t++ {
		sums.see(float64(sumsWithStep(t))/float64(bits.Len(uint(t-1))+1), "T = %d", t)
	}
	sums.put(n, "tree, sums with a step")
	var epochs tightest
	for _, k := range []float64{2, 10, 1000} {
		for _, beta := range []float64{0.5, 0.05, 1e-9} {
			for _, epsilon := range []float64{0.001, 0.1, 1, 100} {
				for i := range 401 {
					gap := math.Pow(10, -float64(i)/100)
					epochs.see(epochPlays(k, gap, epsilon, beta)/playsProved(k, gap, epsilon, beta,
						seSquare, seLinear), "K = %v, β = %v, ε = %v, Δ = %.4g", k, beta, epsilon, gap)
				}
			}
		}
	}
	epochs.put(n, "DP-SE, epochs over the lemma")
	printed := func(T float64) float64 { return max(math.Sqrt(10*math.Log(T))/T, 10*math.Log(T)/T) }
	repaired := func(T float64) float64 { return max(math.Sqrt(10*math.Log(T)/T), 10*math.Log(T)/T) }
	a, b := starGap(10, 1, 1e12), starGap(10, 1, 1e4)
	n.set("star", starGrowth{a / printed(1e12) / (b / printed(1e4)),
		a / repaired(1e12) / (b / repaired(1e4))})

	games := gamesOf(p)
	n.Runs = games
	for _, policy := range []string{"dp-se", "dp-se-2"} {
		n.set(policy, need(attackElimination(policy, audit.NoFault).found(ctx, n.seed(21601), games)))
	}
	n.set("tree", need(attackTree(ctx, n.seed(21601), games, audit.NoFault)))
}

// attackElimination attacks a rule that eliminates, at ε = 1 and β = ½, which makes its
// first release early.
func attackElimination(policy string, fault audit.Fault) attacked {
	horizon := 1024
	if policy == "dp-se-2" {
		horizon = 8192
	}
	return attacked{policy: policy, horizon: horizon, budget: privacy.Pure{Epsilon: 1},
		params: catalog.Params{"beta": 0.5}, fault: fault}
}

// starGrowth is how Δ* grows from T = 10⁴ to 10¹², over two forms of it.
type starGrowth struct{ Printed, Repaired float64 }

// attackTree attacks Algorithm 5 at ε = 1 and T = 8.
func attackTree(ctx context.Context, seed uint64, games int, fault audit.Fault) (foundEpsilon, error) {
	const horizon = 8
	s, err := audit.MechanismSubject(privacy.Tree{Scale: float64(bits.Len(horizon-1) + 1),
		Horizon: horizon}, 1, 1, horizon)
	if err != nil {
		return foundEpsilon{}, err
	}
	f, err := audit.PolicyAudit{
		Subject: s.Broken(fault), Adversaries: audit.Adversaries(1, horizon, audit.View),
		Gamma: auditGamma, Games: games, Pilot: max(128, games/64),
		Key: noise.Key{Seed: seed, Experiment: "theorem", Cell: "tree"},
	}.Run(ctx)
	return foundEpsilon{f.Low, f.Estimate, 1, float64(f.Games)}, err
}
