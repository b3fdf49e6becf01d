package noise

import (
	"math"
	"math/rand/v2"
)

// DiscreteLaplace is the law P(x) = (1−β)/(1+β)·β^|x| on the integers, with β = exp(−1/t) and scale
// t = num/den. Added to an integer sum of sensitivity s (in the sum's own units) it is
// s/t-differentially private: proofs/DiscreteLaplace.v#laplace_dp. Its variance is 2β/(1−β)², less than 2t².
//
// Why [DiscreteLaplace.Draw] is exact (CKS Algorithm 2). X is geometric, P(X=x) ∝ β^x (see
// [Geometric]), and B is a fair sign. Drawing again if B is minus and X is 0, every x ≠ 0 has
// mass ∝ ½·β^|x|, and 0 has mass ∝ ½ as well, being reached by plus only. Without that, 0 would
// have double mass. Coq checks it: proofs/Words.v#laplace_64, and proofs/DiscreteLaplace.v#laplace_total says
// that nothing is left.
type DiscreteLaplace struct{ half Geometric }

// NewDiscreteLaplace returns the discrete Laplace law of scale num/den: num and den at least 1,
// scale at most 2^50.
func NewDiscreteLaplace(num, den uint64) (DiscreteLaplace, error) {
	if err := checkScale("discrete Laplace", num, den); err != nil {
		return DiscreteLaplace{}, err
	}
	half, err := NewGeometric(num, den)
	return DiscreteLaplace{half: half}, err
}

// Draw draws from the law. The error is [ErrOverflow], or that l did not come from
// [NewDiscreteLaplace].
func (l DiscreteLaplace) Draw(src rand.Source) (int64, error) { return l.draw(src) }

func (l *DiscreteLaplace) draw(src rand.Source) (int64, error) {
	for {
		x, minus, err := l.half.draw(src)
		if err != nil {
			return 0, err
		}
		if minus == 0 {
			return x, nil
		}
		if x != 0 {
			return -x, nil
		}
	}
}

// DiscreteLaplaceTail is P(|X| ≥ y) = 2β^y/(1+β) for y ≥ 1 under the discrete Laplace law of this
// scale, β = exp(−1/scale) (proofs/DiscreteLaplace.v#laplace_tail); 1 for y ≤ 0. Scale 0 is the constant 0. It is a statement about the
// noise for policies and tests, no part of a draw.
func DiscreteLaplaceTail(scale float64, y int64) float64 {
	if y <= 0 {
		return 1
	}
	if scale == 0 {
		return 0
	}
	return 2 * math.Exp(-float64(y)/scale) / (1 + math.Exp(-1/scale))
}
