package stopping

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// BatchMeanName is how files name BatchMean.
const BatchMeanName = "dp-batch-mean"

// BatchMean is an (α,β)-rule on disjoint batches, in every currency and under every trust model. It is ours; its
// test is that of [Sajed 2019, Algorithm 3].
//
// Batch m = 1, 2, … has n_m = 2^{m−1}n_1 fresh samples in [−R,R], and one release of their sum. With N samples in it
// (fewer if not everybody answered), noise in a sum of samples mapped to [0,1] whose tail on both sides is τ
// (privacy.Tail.Both), L_m = log(5m²/β), X̃ the noisy mean, in the samples' unit, and
//
//	h_m = 2R(√(L_m/(2N)) + τ(L_m)/N),
//
// it stops if |X̃| ≥ h_m(1 + 1/α), with the estimate X̃.
//
// # Theorem
//
// For independent samples of mean μ ≠ 0, with probability at least 1 − β the estimate is within α|μ| of μ, and it has
// stopped by the first batch m with |μ| ≥ h_m(2 + 1/α), after (2^m − 1)n_1 samples: up to log log after
//
//	O(R² log(1/β)/(αμ)² + Rτ(log(1/β))/(α|μ|)).
//
// Proof. In batch m X̃ is off by more than h_m with probability at most 3e^{−L_m} (Hoeffding, two sides, and the noise), in
// some batch with at most (3/5)β·π²/6 < β. Otherwise, when it stops, h_m ≤ α(|X̃| − h_m) ≤ α|μ|, and |X̃ − μ| ≤ h_m. And
// if |μ| ≥ h_m(2 + 1/α) then |X̃| ≥ |μ| − h_m ≥ h_m(1 + 1/α). ∎
//
// # Privacy
//
// A sample is in one release, of sensitivity 1, and everything else is post-processing.
type BatchMean struct {
	alpha, beta, r float64
	mech           privacy.Mechanism
	batches        int
	estimate       float64
	done           bool
	batch          policy.Batch
}

// firstOfMean is n_1.
const firstOfMean = 16

// NewBatchMean returns the rule for alpha and beta in (0,1), a budget, and the bound r > 0 of samples. Noise is Laplace's
// for privacy.Pure, normal for others, and none for privacy.None.
func NewBatchMean(alpha, beta float64, budget privacy.Budget, r float64) (*BatchMean, error) {
	for _, x := range []struct {
		name  string
		value float64
	}{{"alpha", alpha}, {"beta", beta}} {
		if !(x.value > 0 && x.value < 1) {
			return nil, fmt.Errorf("%s: %s is %v, must be above 0 and below 1", BatchMeanName, x.name, x.value)
		}
	}
	if !(r > 0 && r <= math.MaxFloat64) {
		return nil, fmt.Errorf("%s: range is %v, must be finite and above 0", BatchMeanName, r)
	}
	b := &BatchMean{alpha: alpha, beta: beta, r: r}
	switch budget.(type) {
	case privacy.Pure, privacy.None, nil:
		scale, err := 0.0, error(nil)
		if _, pure := budget.(privacy.Pure); pure {
			scale, err = privacy.LaplaceScale(budget)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", BatchMeanName, err)
		}
		b.mech = privacy.Laplace{Scale: scale}
	default:
		sigma, err := privacy.GaussianSigma(budget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", BatchMeanName, err)
		}
		b.mech = privacy.Gaussian{Sigma: sigma}
	}
	return b, nil
}

// Mechanism implements policy.Policy.
func (b *BatchMean) Mechanism() privacy.Mechanism { return b.mech }

// Estimate is the rule's answer, NaN as long as it has not stopped.
func (b *BatchMean) Estimate() float64 {
	if !b.done {
		return math.NaN()
	}
	return b.estimate
}

// Answer implements identify.Identifier: the one arm, once it has stopped.
func (b *BatchMean) Answer() int {
	if !b.done {
		return -1
	}
	return 0
}

// Next implements policy.Policy.
func (b *BatchMean) Next(released privacy.Released) *policy.Batch {
	if b.done {
		return nil
	}
	if released.Len() == 1 && released.N(0) > 0 {
		h := b.width(released.N(0), released.Tail())
		if b.estimate = 2 * b.r * (released.Mean(0) - 0.5); math.Abs(b.estimate) >= float64(h*(1+1/b.alpha)) {
			b.done = true
			return nil
		}
	}
	n := math.Ldexp(firstOfMean, b.batches)
	b.batches++
	play := policy.Play{Rounds: policy.Forever} // no horizon reaches the end of this
	if n < longest {
		play = policy.Play{Rounds: int(n), Release: true}
	}
	b.batch.Plays = append(b.batch.Plays[:0], play)
	return &b.batch
}

// width is h_m of the last batch, with n samples.
func (b *BatchMean) width(n int, tail privacy.Tail) float64 {
	m := float64(b.batches)
	x := math.Log(5 * m * m / b.beta)
	return 2 * b.r * (math.Sqrt(x/(2*float64(n))) + tail.Both(x)/float64(n))
}

// BatchMeanSamples is the bound of BatchMean's theorem on samples of mean mu, where everybody answers and a release of n
// has noise of this tail; policy.Forever if there is none.
func BatchMeanSamples(alpha, beta, mu, r float64, tail func(n int) privacy.Tail) int {
	b := &BatchMean{alpha: alpha, beta: beta, r: r}
	for n := firstOfMean; n < longest/2; n *= 2 {
		b.batches++
		if math.Abs(mu) >= float64(b.width(n, tail(n))*(2+1/alpha)) {
			return 2*n - firstOfMean
		}
	}
	return policy.Forever
}
