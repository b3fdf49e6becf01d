package policy

import (
	"fmt"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// ZCDPIMED is IMED for normal noise: DPIMED's batches and index, with the divergence that such
// noise leaves. It plays the arm with the lowest
//
//	N_a J_{V_a/N_a}(μ̃_a, μ̃*) + γ log N_a,   μ̃* the highest mean, J_v that of divergence.KLNoisy,
//
// where μ̃_a is the mean of all the arm's N_a rewards, clipped to [0,1], and V_a the variance of
// the noises in its sum: an N(0,σ²) from each of its batches, fresh. A reward is in one release,
// whatever the horizon, so that for rewards in [0,1] the policy is 1/(2σ²)-zCDP by parallel
// composition ([Azize 2024, Lemma 2.10 and Theorem 2.14]), or (ε,δ)-DP or (α,ε)-RDP by another σ.
// It is anytime, and ours. At equal indices the arm with fewer samples goes first, then the lower.
//
// # Theorem
//
// For independent rewards in [0,1] of means μ_a, 1 a best arm, ratio α > 1, γ ≥ 1, σ ≥ 0:
//
//	limsup E Reg_T / log T ≤ αγ Σ_{Δ_a>0} Δ_a/kl(μ_a, μ_1).
//
// There is no σ in it: under zCDP a price of privacy of the order of log T can be done without,
// where under ε-DP it cannot (DPIMED). What noise costs before the long run is in (ii): with m
// noises behind it an arm that is behind by g is played until it has at most n = γ log T/(2g²) +
// (σ/g)√(2mγ log T) plays, m ≤ 1 + log_α(n/n_1): a term of order √(log T log log T). And the plays
// of an arm that follow from arm 1's mean being below μ_1 − δ with n_m plays behind it are, for any
// δ > 0, more than w with probability at most (w/w_m)^{−γ}, w_m = (1+α)n_m.
//
// Proof. It is DPIMED's, with J for d_ε. Rewards and noises are a table; for the m-th release of an
// arm, n = n_m and V = mσ², P(nJ_{V/n}(μ̃,μ) ≥ y) ≤ e^{−y} on either side of μ
// (divergence.KLNoisy). Take δ so small that μ_a + δ < μ_1 − δ for the suboptimal a. A batch of a
// that begins with n plays of a, after the first ones, is of one of three kinds:
//
// (i) μ̃_a > μ_a + δ. (ii) μ̃_a ≤ μ_a + δ and μ̃* ≥ μ_1 − δ: then nJ_{V/n}(μ_a+δ, μ_1−δ) ≤ γ log
// T, as the leader's index is at most that. With J_v(x,y) ≥ g²/(2(1/4+v)), g = |x−y|, it follows
// that n²g² ≤ γ log T(n/2 + 2mσ²), so that n is at most what is said above; and as V/n tends to
// 0, n ≤ (1 + o(1)) γ log T/kl(μ_a+δ, μ_1−δ). (iii) μ̃* < μ_1 − δ. Let arm 1 have n_m plays and m
// noises: n ≤ n_m e^{c_m/γ}, c_m = n_m J_{V_m/n_m}(μ̃_1, μ_1−δ), as J grows with the distance of
// its arguments. So
//
//	N_a(T) ≤ n_1 + α max{n: (ii)} + 1 + Σ_m n_{m+1} 1{(i) at m} +
//	         (1+α) Σ_m n_m e^{c_m/γ} 1{μ̃_{1,m} < μ_1−δ}.
//
// Neither sum grows with T in expectation. The first: J_{V/n}(μ_a+δ, μ_a) tends to kl > 0. The
// second: let C_m = n_m J(μ̃_{1,m}, μ_1) and D_m = J(μ_1−δ, μ_1), which tends to kl > 0. For x < u
// the derivative of J(x,u) in u is (1−e^{−λ})/(1−u+ue^{−λ}) at the λ of its supremum, which falls
// as x grows: so J(x,μ_1) − J(x,μ_1−δ) ≥ D_m for x ≤ μ_1 − δ, and c_m ≤ C_m − n_m D_m. As C_m is at
// most b_m = n_m J(0, 1) = n_m²/(2V_m), or without noise n_m log(1/(1−μ_1)), where μ_1 = 1 leaves
// (iii) impossible, E e^{C_m} ≤ 1 + ∫_0^{b_m} e^y e^{−y} dy = 1 + b_m, so that by Jensen E
// e^{c_m/γ} ≤ e^{−n_m D_m/γ}(1 + b_m)^{1/γ}. Then let δ go to 0. The tail: more than w plays of a
// in (iii) at m need C_m ≥ c_m ≥ γ log(w/w_m). ∎
//
// The noise may be of several normal ones, continuous or discrete, whose variance the release
// states (privacy.Tail). Of another law it counts as normal noise of its variance or more, for
// which nothing is proved.
type ZCDPIMED struct{ accumulation }

// normalWarm is the first batch's rewards for each σ of the noise.
const normalWarm = 14

// NewZCDPIMED returns the policy for a number of arms ≥ 2, a budget (zCDP; (ε,δ)-DP or (α,ε)-RDP
// through their calibrations, privacy.GaussianSigma; privacy.None for the same algorithm without
// noise), a batch ratio alpha > 1 and an arm's first batch ≥ 1 in rounds; 0 means ⌈14σ⌉.
func NewZCDPIMED(arms int, budget privacy.Budget, alpha float64, first int) (*ZCDPIMED, error) {
	fail := func(err error) (*ZCDPIMED, error) { return nil, fmt.Errorf("zcdp-imed: %w", err) }
	sigma, err := privacy.GaussianSigma(budget)
	if err != nil {
		return fail(err)
	}
	p, err := newAccumulation(arms, 1/sigma, alpha, first, normalWarm)
	if err != nil {
		return fail(err)
	}
	p.mech = privacy.Gaussian{Sigma: sigma}
	return &ZCDPIMED{p}, nil
}

// Next implements Policy.
func (p *ZCDPIMED) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	return p.grow(p.coldest(func(arm *accumulated, top float64) float64 {
		return divergence.KLNoisy(arm.mean, top, arm.v/arm.n)
	}))
}
