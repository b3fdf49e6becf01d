package bound

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// BernoulliRegret is Σ Δ_a/d_ε(μ_a, μ*) over the suboptimal arms: no consistent ε-DP policy on
// Bernoulli arms has liminf Reg_T/log T below it (Azize et al. 2025, arXiv:2505.05613). At ε =
// +Inf, d_ε is kl and the bound that of Lai and Robbins 1985. It is asymptotic: regrets at a finite
// T can be below log T times it. epsilon is above 0; means are in [0,1], at least two. With μ* = 1
// and no privacy it is 0.
func BernoulliRegret(means []float64, epsilon float64) (float64, error) {
	if len(means) < 2 {
		return 0, fmt.Errorf("bound: %d means, must be at least 2", len(means))
	}
	if !(epsilon > 0) {
		return 0, fmt.Errorf("bound: epsilon is %v, must be above 0", epsilon)
	}
	best := math.Inf(-1)
	for i, mean := range means {
		if !(mean >= 0 && mean <= 1) {
			return 0, fmt.Errorf("bound: mean %d is %v, must be from 0 to 1", i, mean)
		}
		best = max(best, mean)
	}
	sum := 0.0
	for _, mean := range means {
		if gap := best - mean; gap > 0 {
			sum += gap / divergence.DEps(mean, best, epsilon)
		}
	}
	return sum, nil
}
