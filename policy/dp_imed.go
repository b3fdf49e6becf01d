package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPIMED is DP-IMED of Azize, Wu, Honda, Orabona, Ito and Basu (arXiv:2505.05613, 2025): the
// indexed minimum empirical divergence of IMED, for the divergence d_ε that privacy leaves. It
// plays the arm with the lowest
//
//	N_a d_ε(μ̃_a, μ̃*) + γ log N_a,   μ̃* the highest mean,
//
// in the batches and with the means of DPKLUCB. It is ε-DP for rewards in [0,1], and anytime. At
// equal indices the arm with fewer samples goes first, then the lower. The paper has γ = 1, and for
// that the regret that no consistent ε-DP policy is below, times α. The caution γ ≥ 1 is ours.
//
// # What caution is for
//
// Let the best arm's first release be unlucky, so that it is behind by evidence c = n_1
// d_ε(μ̃_1, μ̃*). It is not played again before another arm has n_1 e^{c/γ} plays. One noise alone
// makes evidence above c with probability up to e^{−c}: so with γ = 1 w plays are lost with
// probability of the order of n_1/w, whatever w is, and such runs are in every sample. γ raises that
// to the power γ, which costs a factor γ in the long run where α may have been the larger factor. (A
// policy whose regret is the least, α = γ = 1, has a tail of power 1 at best: without privacy, Fan and
// Glynn, The Fragility of Optimized Bandit Algorithms, Operations Research, 2025.)
//
// # Theorem
//
// For independent rewards in [0,1] of means μ_a, 1 a best arm, α > 1, γ ≥ 1, ε < ∞:
//
//	limsup E Reg_T / log T ≤ αγ Σ_{Δ_a>0} Δ_a/d_ε(μ_a, μ_1),
//
// and the plays of an arm that follow from arm 1's mean being below μ_1 − δ with m noises and n_m
// plays behind it are, for any δ > 0, more than w with probability at most (w/w_m)^{−γ} (ey/m)^m, y =
// γ log(w/w_m) ≥ m, w_m = (1+α)n_m; without the second factor for m = 1.
//
// Proof. As in JointThreshold's proof (package identify) rewards and noises are a table, and for n =
// n_m rewards with m noises P(nJ_{m/n}(μ̃,μ) ≥ y) ≤ e^{−y} on either side of μ. As nJ ≥ nd_ε − m − m
// log(nd_ε/m) where nd_ε ≥ m (PerArmThreshold's proof), P(nd_ε(μ̃,μ) ≥ y) ≤ e^{−y}(ey/m)^m for y ≥ m,
// and e^{−y} for m = 1. Take δ so small that μ_a + δ < μ_1 − δ for the suboptimal a. A batch of a that
// begins with n plays of a, after the first ones, is of one of three kinds:
//
// (i) μ̃_a > μ_a + δ. (ii) μ̃_a ≤ μ_a + δ and μ̃* ≥ μ_1 − δ: then n d_ε(μ_a+δ, μ_1−δ) is at most a's
// index, which is at most that of the arm that leads, γ log N ≤ γ log T. (iii) μ̃* < μ_1 − δ. Let arm 1
// have n_m plays and m noises behind it. Its index is at most c_m + γ log n_m, c_m = n_m d_ε(μ̃_1,
// μ_1−δ), and that of a at least γ log n: n ≤ n_m e^{c_m/γ}.
//
// As a batch that begins with n plays ends with at most αn + 1 ≤ (1+α)n,
//
//	N_a(T) ≤ n_1 + αγ log T/d_ε(μ_a+δ, μ_1−δ) + 1 + Σ_m n_{m+1} 1{(i) at m} +
//	         (1+α) Σ_m n_m e^{c_m/γ} 1{μ̃_{1,m} < μ_1−δ}.
//
// Neither sum grows with T in expectation. The first: J_{m/n}(μ_a+δ, μ_a) tends to d_ε > 0, as m =
// O(log n_m). The second: let C_m = n_m d_ε(μ̃_{1,m}, μ_1) and D = d_ε(μ_1−δ, μ_1) > 0. The derivative
// of d_ε(x,u) in u does not grow with x, so that d_ε(x,μ_1) − d_ε(x,μ_1−δ) ≥ D for x ≤ μ_1 − δ, and
// c_m ≤ C_m − n_m D. With b = d_ε(0,μ_1) ≤ ε, C_m ≤ bn_m and E e^{C_m} = 1 + ∫ e^y P(C_m ≥ y)dy ≤ e^m +
// bn_m(ebn_m/m)^m for bn_m ≥ m. By Jensen E e^{c_m/γ} ≤ e^{−n_m D/γ} (E e^{C_m})^{1/γ}, which is
// exp(−n_m D/γ + O(log²n_m)). Then let δ go to 0. The tail: more than w plays of a in (iii) at m need
// C_m ≥ c_m > γ log(w/w_m). ∎
//
// With a first batch of 1 the means of its regret have heavier tails than those of DP-KLUCB
// (see accumulation).
type DPIMED struct{ accumulation }

// NewDPIMED returns DP-IMED with caution 1, as the paper has it; its parameters are those of
// NewDPKLUCB. With SetCaution(1.25), alpha 1.5 and a first batch of ⌈24/ε⌉, which the catalog has, bad
// runs are rarer and the mean regret is as it is with caution 1, alpha 2 and ⌈16/ε⌉.
func NewDPIMED(arms int, epsilon, alpha float64, first int) (*DPIMED, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, warm)
	if err != nil {
		return nil, fmt.Errorf("dp-imed: %w", err)
	}
	return &DPIMED{p}, nil
}

// NewDPIMEDJ returns DP-IMED with the noise-aware divergence, for any number of noises in a release;
// its parameters are those of NewDPKLUCBJ.
func NewDPIMEDJ(arms int, epsilon, alpha float64, first int) (*DPIMED, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, warmNoisy)
	if err != nil {
		return nil, fmt.Errorf("dp-imed-j: %w", err)
	}
	return &DPIMED{p}, nil
}

// Next implements Policy.
func (p *DPIMED) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	if p.noisy {
		return p.grow(p.coldest(func(arm *accumulated, top float64) float64 {
			return divergence.DEpsNoisy(arm.mean, top, p.least, arm.m/arm.n)
		}))
	}
	return p.grow(p.coldest(func(arm *accumulated, top float64) float64 {
		return divergence.DEps(arm.mean, top, p.epsilon)
	}))
}

// coldest is the arm with the lowest n·d + γ log n, d what its mean is from the highest.
func (p *accumulation) coldest(d func(arm *accumulated, top float64) float64) int {
	top := 0.0
	for a := range p.arms {
		if !p.arms[a].off {
			top = max(top, p.arms[a].mean)
		}
	}
	best, least := 0, math.Inf(1)
	for a := range p.arms {
		arm := &p.arms[a]
		index := math.Inf(-1) // of an arm whose rewards have not come
		switch {
		case arm.off:
			index = math.Inf(1)
		case arm.n > 0:
			index = float64(arm.n*d(arm, top)) + float64(p.caution*math.Log(arm.n))
		}
		if index < least || index == least && p.fewer(a, best) {
			best, least = a, index
		}
	}
	return best
}
