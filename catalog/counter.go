package catalog

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A counter is one that DP-UCB can keep its running sums by.
type counter struct {
	name, title, source string // source is "[Sajed 2019, Algorithm 6] on …"
	normal              bool   // its noise is, for ρ and what follows from it
	build               func(s Setting, beta float64) (policy.Policy, error)
}

// counters are the choices of DP-UCB's parameter, the source's own first.
var counters = []counter{
	{"tree", "", "", false, pureCounter(policy.NewDPUCB)},
	{"kary", "k-ary tree", "tree of Andersson, Pagh, Steiner and Torkamani 2025", false,
		pureCounter(policy.NewDPUCBKAry)},
	{"hybrid", "hybrid counter", "hybrid counter of Chan, Shi and Song 2010", false,
		pureCounter(func(arms, horizon int, epsilon, beta float64) (*policy.DPUCB, error) {
			return policy.NewDPUCBCounter(arms, horizon, privacy.Hybrid{Scale: 2 / epsilon}, beta)
		})},
	{"sqrt", "square root", "factorisation of Fichtenberger, Henzinger and Upadhyay 2023", true,
		calibrated(privacy.NewSquareRoot)},
	{"blt", "buffered Toeplitz", "factorisation of Dvijotham et al. 2024", true,
		calibrated(privacy.NewBLT)},
}

// treeCounter is the first of counters.
const treeCounter = 0

func counterParam() Param {
	var names []string
	for _, c := range counters {
		names = append(names, c.name)
	}
	return Param{Name: "counter", Choices: names,
		Proof: Proof{Theorem: "[Sajed 2019, §3.4]", Only: []float64{treeCounter},
			Beside: "policy.NewDPUCBCounter derives a bound of its own"},
		Doc: "how running sums are kept: the source's binary tree, the k-ary tree with negative " +
			"digits, or the hybrid counter, for ε; " +
			"square-root factorisation (T up to 2²⁰) or buffered Toeplitz, for ρ, (ε,δ) and " +
			"(α,ε). All but tree have the width of their own noise for Γ"}
}

// logsParam is the base of the logarithms in Γ, 0 for e and 1 for 2.
func logsParam() Param {
	return Param{Name: "logs", Choices: []string{"natural", "base2"}, Proof: always("[Sajed 2019, §3.4]"),
		Doc: "base of the logarithms in Γ, which the source leaves open: e, or 2 as in the depth " +
			"of its tree; for counter: tree"}
}

// varyDPUCB says what DP-UCB is on another counter than the tree.
func varyDPUCB(e *Entry, p Params) {
	const derived = "Σ max(32 log T/Δ_a, 4w) + O(Δ_a) with probability 1−β, w the noise of a sum " +
		"at β/(KT) (derived in policy.NewDPUCBCounter)"
	if p["logs"] == 1 {
		e.Title = "DP-UCB, logarithms to base 2"
	}
	c := counters[int(p["counter"])]
	if c.title != "" {
		e.Title, e.Regret = "DP-UCB, "+c.title, derived
		e.Source = "[Sajed 2019, Algorithm 6] on the " + c.source
	}
	if c.normal {
		e.Budgets = []string{"rho", "epsilon,delta", "alpha,epsilon"}
		e.Guarantee = "ρ-zCDP (Interactive), rewards in range; (ε,δ)-DP or (α,ε)-RDP by calibration"
	}
}

func newDPUCB(s Setting, p Params) (policy.Policy, error) {
	beta := p.or("beta", 1/float64(s.Horizon))
	if p["logs"] == 1 && p["counter"] != treeCounter {
		return nil, fmt.Errorf("policy dp-ucb: logs is base2, which is for counter: tree: other " +
			"counters have widths of their own")
	}
	if p["logs"] == 1 {
		return pureCounter(policy.NewDPUCBBase2)(s, beta)
	}
	return counters[int(p["counter"])].build(s, beta)
}

// pureCounter is DP-UCB on a counter for ε.
func pureCounter(build func(arms, horizon int, epsilon, beta float64) (*policy.DPUCB, error)) func(Setting,
	float64) (policy.Policy, error) {
	return func(s Setting, beta float64) (policy.Policy, error) {
		epsilon, err := pure(s.Budget)
		if err != nil {
			return nil, err
		}
		return built(build(s.Arms, s.Horizon, epsilon, beta))
	}
}

// calibrated is DP-UCB on a counter that is made for the budget.
func calibrated[M privacy.Mechanism](make func(privacy.Budget, int) (M, error)) func(Setting,
	float64) (policy.Policy, error) {
	return func(s Setting, beta float64) (policy.Policy, error) {
		m, err := make(s.Budget, s.Horizon)
		if err != nil {
			return nil, fmt.Errorf("policy dp-ucb: %w", err)
		}
		return built(policy.NewDPUCBCounter(s.Arms, s.Horizon, m, beta))
	}
}

// The counters of DP-UCB without a horizon.
const (
	doublingCounter = iota
	everyReward     // hybrid
)

func newDPUCBAnytime(s Setting, p Params) (policy.Policy, error) {
	epsilon, err := pure(s.Budget)
	if err != nil {
		return nil, err
	}
	if p["counter"] == everyReward {
		return built(policy.NewDPUCBAnytime(s.Arms, epsilon, p["beta"]))
	}
	return built(policy.NewDPUCBDoubling(s.Arms, epsilon, p["alpha"], int(p.or("first", 0))))
}

// varyDPUCBAnytime says what DP-UCB without a horizon is where every reward is followed by a release.
func varyDPUCBAnytime(e *Entry, p Params) {
	if p["counter"] == everyReward {
		e.Title, e.Regret, e.Gathered = "DP-UCB, unknown T, hybrid counter", "none printed", Verdict{}
		e.Finite = false
		e.Source = "[Sajed 2019, Algorithm 6] with t for T, on the hybrid counter of Chan, Shi and Song 2010"
	}
}
