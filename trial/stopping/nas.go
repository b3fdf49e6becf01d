package stopping

import "math"

// newNAS returns Nonmonotonic Adaptive Sampling (Domingo, Gavaldà and Watanabe 2002), [Sajed 2019,
// Algorithm 3]: after every sample stop if
//
//	|X̄_t| ≥ H_t(1 + 1/α),   H_t = R√((2/t)·log(4t²/β)),
//
// and return X̄_t. It is an (α,β)-rule [Sajed 2019, Theorem 2.2.1], and not private: it is what
// privacy is compared with. The printed H_t is half of this, right for samples in a range of length
// R; on [−R,R] it fails more often than β.
//
// alpha and beta are in (0,1); r > 0 bounds the samples, in their unit.
func newNAS(alpha, beta, r float64) (Rule, error) {
	return newRule(kind{name: "nas", hoeffding: 4, query: 8}, alpha, beta, math.Inf(1), r)
}
