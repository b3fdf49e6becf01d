package stopping

// newDPNAS returns DP-NAS, [Sajed 2019, Algorithm 7]: after every sample stop if
//
//	|X̄_t| ≥ h_t(1 + 1/α) + (c_t + B + A_t)/t,   h_t = R√((2/t)·log(16t²/β)),
//	c_t = σ₁ log(4/β) + σ₂ log(8t²/β) + (σ₃/α) log(4/β),
//
// with one B ~ Lap(σ₁) and a fresh A_t ~ Lap(σ₂) a question, σ₁ = σ₂ = 12R/ε, and return X̄_t +
// Lap(σ₃)/t, σ₃ = 4R/ε. It is an ε-DP (α,β)-rule [Sajed 2019, Theorem 4.1.1]: ε/2 for the answers
// and ε/2 for the estimate, on the same samples. Its number of samples is not analysed;
// newDPExponentialNAS has a bound.
//
// alpha and beta are in (0,1); epsilon > 0, +Inf for none; r > 0 bounds the samples, in their unit.
func newDPNAS(alpha, beta, epsilon, r float64) (Rule, error) {
	return newRule(kind{name: "dp-nas", hoeffding: 16, query: 8, private: true}, alpha, beta, epsilon, r)
}
