package identify

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// DPTT is DP-TT of Jourdan and Azize 2025 (arXiv:2510.17348), in the frame of
// Algorithm 10 (see TopTwo): the leader is the arm with the highest private mean, the challenger
// the argmin of C*_ε(B,a,μ̃,N) + γ log N_a with the transportation cost of the divergence d_ε
// (DEpsCost), and an arm's phases grow by a ratio 1+η and forget nothing: each adds its noisy sum.
//
// It is ε-DP for rewards in [0,1]. With the authors' threshold limsup E τ/log(1/δ) ≤
// 2(1+η)T*_{ε,β}, at most 8T*_ε at (η,β) = (1,1/2), for Bernoulli arms of distinct means in (0,1);
// no rule that is ε-DP and δ-correct has less than T*_ε log(1/(3δ)). Its constants are not known to
// us. The stopping rule here is ours, and δ-correct if one arm alone is best, for any rewards in
// [0,1]: NoisyCost with JointThreshold, which has the proof; DEpsCost where means carry one noise
// each. The proof is for Lap(1/ε), for the discrete Laplace noise that a server adds who is believed,
// and, but with WithForgetting, for sums of such noises, of two servers or of many users: a mean
// carries as many as its releases say (privacy.Released.Noises).
//
// The caution γ is ours: the paper has 1 (WithCaution). Where noise makes the best arm's first mean so
// low that there is evidence c = C*_ε(B,1) against it, and others are near the leader, those are
// played until one of them has n_1 e^{c/γ} plays, n_1 those of a first phase. One Laplace noise makes
// evidence of more than c with probability up to e^{−c} (step 1 of JointThreshold's proof), so that
// with γ = 1 such a detour is longer than w with probability of the order of n_1/w: its mean is
// infinite, and a few of 1000 runs end at any cap. With γ it is (n_1/w)^γ. Whatever γ is the rule is
// private, and δ-correct by the proof below, which is for any sampling rule that is a function of
// releases. As δ → 0 costs grow like log(1/δ), and γ log N_a like its logarithm only; the authors'
// theorem on E τ is for γ = 1.
//
// The default first phase, ⌈24/ε⌉ plays in one release, is ours too: with one play each
// (WithFirst(1), the literal rule) noise may park the best arm, and stopping times have heavy tails.
type DPTT struct{ TopTwo }

// ErrUnproved is matched by the error of a Claimant.
var ErrUnproved = errors.New("no proof that the answer is right with the probability that was asked for")

// A Claimant is an Identifier whose proof needs more of its releases than the tail of their noise.
// Claim is nil as long as it holds for what was released, and otherwise an error that matches
// ErrUnproved. Privacy does not depend on it.
type Claimant interface {
	Identifier
	Claim() error
}

// Claim is nil as long as each release had one Laplace noise, continuous or discrete, in a sum of
// clipped rewards, or a known number of them where the costs count noises (not with WithForgetting):
// JointThreshold's and PerArmThreshold's proof needs their law, and a tail is not enough.
func (p *DPTT) Claim() error {
	if p.other {
		return fmt.Errorf("dp-tt: a release had noise that is neither one Laplace noise nor some that "+
			"are counted, or rewards that were not clipped: %w", ErrUnproved)
	}
	return nil
}

// maxEpsilon is where the costs of noise are still above the rounding of the others.
const maxEpsilon = 1e9

// NewDPTT returns DP-TT for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None for no
// noise) and a risk δ in (0,1). Options: WithBeta, WithExponent, WithEta, WithFirst,
// WithCaution, WithForgetting, WithPhaseCap and WithPerArmThreshold. Its Claim says whether the answer is proved
// for the noise that it met.
func NewDPTT(arms int, budget privacy.Budget, risk float64, options ...TopTwoOption) (*DPTT, error) {
	fail := func(err error) (*DPTT, error) { return nil, fmt.Errorf("dp-tt: %w", err) }
	o, err := applyTopTwo(options, "beta", "s", "eta", "first", "caution", "forgetting",
		"phase cap", "per-arm threshold")
	if err != nil {
		return fail(err)
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return fail(err)
	}
	if epsilon > maxEpsilon && !math.IsInf(epsilon, 1) {
		return fail(fmt.Errorf("epsilon is %v, must be at most %v: noise beyond is lost in "+
			"rounding, and so are the costs; take no privacy", epsilon, maxEpsilon))
	}
	if o.first == 0 {
		first := math.Ceil(24 / epsilon)
		if first >= longest {
			return fail(fmt.Errorf("epsilon is %v, must be so large that a first phase of "+
				"24/epsilon plays is below 2^50", epsilon))
		}
		o.first = max(1, int(first))
	}
	parts := Parts{
		Leader: BestLeader, Challenger: DEpsCost{}, LogCount: true, Caution: o.caution,
		Beta: o.beta,
		Cost: NoisyCost{}, Above: true,
		First: o.first, Growth: 1 + o.eta, Forget: o.forget,
	}
	if o.forget || o.perArm {
		parts.Cost = DEpsCost{}
	}
	switch {
	case o.perArm && o.phases > 0:
		err = fmt.Errorf("phase cap is %d, must be absent with the per-arm threshold", o.phases)
	case o.perArm:
		parts.Threshold, err = NewPerArmThreshold(arms, risk, o.s)
	case o.phases > 0:
		parts.Threshold, err = NewCappedJointThreshold(arms, risk, o.phases)
	default:
		parts.Threshold, err = NewJointThreshold(arms, risk, o.s)
	}
	if err != nil {
		return fail(err)
	}
	p, err := newTopTwo(arms, budget, parts)
	if err != nil {
		return fail(err)
	}
	return &DPTT{p}, nil
}
