package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// Thompson is Thompson sampling: draw θ_a from each arm's posterior, after every reward, and play
// the arm with the largest. It is not private.
//
// NewThompson has a Beta(1,1) prior and rewards in [0,1], the sum S of n of them counted as S
// successes and n−S failures:
//
//	θ_a ~ Beta(1 + S_a, 1 + n_a − S_a).
//
// For Bernoulli rewards lim Reg_T / log T ≤ Σ Δ_a/kl(μ_a, μ*), the least there is (Kaufmann, Korda
// and Munos 2012; Agrawal and Goyal, AISTATS 2013). For other rewards the counts are pseudo-counts:
// Agrawal and Goyal instead toss a coin of the reward's mean, for which the bound is proved.
//
// NewThompsonGaussian has θ_a ~ N(S_a/(n_a+1), 1/(n_a+1)), with a regret of O(√(KT log K)) and O(Σ
// log T/Δ_a) for rewards in [0,1] (Agrawal and Goyal 2013).
type Thompson struct {
	coins    Coins
	gaussian bool
	tally
}

// NewThompson returns Thompson sampling with Beta posteriors for at least two arms.
func NewThompson(arms int, coins Coins) (*Thompson, error) { return newThompson(arms, coins, false) }

// NewThompsonGaussian returns Thompson sampling with Gaussian posteriors for at least two arms.
func NewThompsonGaussian(arms int, coins Coins) (*Thompson, error) {
	return newThompson(arms, coins, true)
}

func newThompson(arms int, coins Coins, gaussian bool) (*Thompson, error) {
	err := checkArms(arms)
	if err == nil {
		err = checkCoins(coins)
	}
	if err != nil {
		return nil, fmt.Errorf("thompson: %w", err)
	}
	return &Thompson{coins: coins, gaussian: gaussian, tally: newTally(arms)}, nil
}

// Mechanism implements Policy: Thompson sampling reads exact sums.
func (p *Thompson) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: one round.
func (p *Thompson) Next(released privacy.Released) *Batch {
	if p.batch.Plays != nil {
		p.take(released)
	}
	best, largest := 0, math.Inf(-1)
	for a, n := range p.n {
		var theta float64
		if p.gaussian {
			theta = p.sum[a]/(n+1) + p.coins.Normal()/math.Sqrt(n+1)
		} else {
			s := min(max(p.sum[a], 0), n) // unclipped rewards may leave [0,n]
			theta = p.coins.Beta(1+s, 1+n-s)
		}
		if theta > largest {
			best, largest = a, theta
		}
	}
	return p.next(best, 1)
}
