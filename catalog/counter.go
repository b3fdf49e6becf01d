package catalog

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// The counters of DP-UCB, as the choices of its parameter.
const (
	treeCounter = iota
	karyCounter
	hybridCounter
	sqrtCounter
	bltCounter
)

func counterParam() Param {
	return Param{Name: "counter", Choices: []string{"tree", "kary", "hybrid", "sqrt", "blt"},
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
	switch p["counter"] {
	case karyCounter:
		e.Title, e.Regret, e.Source = "DP-UCB, k-ary tree", derived,
			"[Sajed 2019, Algorithm 6] on the tree of Andersson, Pagh, Steiner and Torkamani 2025"
	case hybridCounter:
		e.Title, e.Regret, e.Source = "DP-UCB, hybrid counter", derived,
			"[Sajed 2019, Algorithm 6] on the hybrid counter of Chan, Shi and Song 2010"
	case sqrtCounter:
		e.Title, e.Regret, e.Source = "DP-UCB, square root", derived,
			"[Sajed 2019, Algorithm 6] on the factorisation of Fichtenberger, Henzinger and Upadhyay 2023"
	case bltCounter:
		e.Title, e.Regret, e.Source = "DP-UCB, buffered Toeplitz", derived,
			"[Sajed 2019, Algorithm 6] on the factorisation of Dvijotham et al. 2024"
	}
	if p["counter"] >= sqrtCounter {
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
	switch p["counter"] {
	case sqrtCounter:
		m, err := privacy.NewSquareRoot(s.Budget, s.Horizon)
		return onCounter(s, m, err, beta)
	case bltCounter:
		m, err := privacy.NewBLT(s.Budget, s.Horizon)
		return onCounter(s, m, err, beta)
	}
	epsilon, err := pure(s.Budget)
	if err != nil {
		return nil, err
	}
	switch p["counter"] {
	case karyCounter:
		return built(policy.NewDPUCBKAry(s.Arms, s.Horizon, epsilon, beta))
	case hybridCounter:
		return onCounter(s, privacy.Hybrid{Scale: 2 / epsilon}, nil, beta)
	}
	if p["logs"] == 1 {
		return built(policy.NewDPUCBBase2(s.Arms, s.Horizon, epsilon, beta))
	}
	return built(policy.NewDPUCB(s.Arms, s.Horizon, epsilon, beta))
}

// onCounter is DP-UCB on a counter whose calibration gave err.
func onCounter(s Setting, m privacy.Mechanism, err error, beta float64) (policy.Policy, error) {
	if err != nil {
		return nil, fmt.Errorf("policy dp-ucb: %w", err)
	}
	return built(policy.NewDPUCBCounter(s.Arms, s.Horizon, m, beta))
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
		e.Source = "[Sajed 2019, Algorithm 6] with t for T, on the hybrid counter of Chan, Shi and Song 2010"
	}
}
