package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// NewDPUCBCounter returns DP-UCB on another counter than the source's binary tree: any continual
// mechanism of package privacy with noise of its own tail, such as privacy.KAry, privacy.SquareRoot
// or privacy.BLT. Its privacy is the counter's, for slots of at most horizon rewards. It plays the
// arm with the highest
//
//	r̃_i/n_i + √(2 log t/n_i) + w/n_i,   w = σ√(2x) + h(x+l),   x = log(KT/β),
//
// where (σ, h, l) is the tail of the noise in r̃_i, as it was released: P(noise > w) ≤ e^{−x} =
// β/(KT). Γ of [Sajed 2019] is for one way to bound one tree; w is what the counter's noise needs.
//
// The regret, derived here: fix the n-th reward and the n-th noise of every arm. The noise does not
// depend on the rewards and is symmetric. With probability at least 1−β none of KT events comes
// true: that one of the best arm's T sums is too low by more than w, or one of another arm's too
// high. Then the noise never hides the best arm, and UCB's analysis goes through with w/n beside
// its own radius: where the rewards are within the radius, an arm i is played again only if Δ_i ≤
// 2√(2 log T/n_i) + 2w/n_i, so that n_i ≤ max(32 log T/Δ_i², 4w/Δ_i) + 1. With O(1) for rewards
// outside, as in Auer, Cesa-Bianchi and Fischer 2002, the regret is at most
//
//	Σ_i (max(32 log T/Δ_i, 4w) + O(Δ_i)).
//
// At K = 5, T = 10⁶, β = 1/T and ε = 1, Γ is 6082; w is 489 for the k-ary tree of the least w,
// which has base 39. At ρ = ½ w is 42 for privacy.NewBLT.
//
// Arms are at least 2, the horizon at least that, beta in (0,1).
func NewDPUCBCounter(arms, horizon int, counter privacy.Mechanism, beta float64) (*DPUCB, error) {
	p, err := newDPUCB(arms, horizon, math.Inf(1))
	if err == nil {
		err = checkRisk("beta", beta)
	}
	if err == nil {
		err = checkCounter(counter)
	}
	if err != nil {
		return nil, fmt.Errorf("dp-ucb: %w", err)
	}
	p.mech, p.beta, p.counter, p.x = counter, beta, true, noiseLevel(arms, horizon, beta)
	return p, nil
}

// NewDPUCBKAry returns DP-UCB on the k-ary tree: NewDPUCBCounter with the base that makes w least.
// It is epsilon-DP for rewards in [0,1]; its parameters are those of NewDPUCB.
func NewDPUCBKAry(arms, horizon int, epsilon, beta float64) (*DPUCB, error) {
	// the same parameters, the same limits
	if _, err := NewDPUCB(arms, horizon, epsilon, beta); err != nil {
		return nil, err
	}
	x := noiseLevel(arms, horizon, beta)
	base := privacy.BestBase(horizon, func(m privacy.KAry) float64 { return tailWidth(m.Tail(), x) })
	return NewDPUCBCounter(arms, horizon, privacy.NewKAry(epsilon, base, horizon), beta)
}

func checkCounter(m privacy.Mechanism) error {
	switch {
	case m == nil:
		return errors.New("counter is missing")
	case !m.Continual():
		return fmt.Errorf("counter is %s, must be a mechanism that releases running sums: tree, "+
			"kary, hybrid, sqrt, blt or exact", m.Kind())
	}
	return m.Validate()
}

// noiseLevel is log(KT/β).
func noiseLevel(arms, horizon int, beta float64) float64 {
	return math.Log(float64(arms)) + math.Log(float64(horizon)) - math.Log(beta)
}

// tailWidth is what noise with this tail exceeds with probability at most e^{−x}.
func tailWidth(tail privacy.Tail, x float64) float64 {
	return float64(tail.Sigma*math.Sqrt(2*x)) + float64(tail.H*(x+tail.Log))
}
