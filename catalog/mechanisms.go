package catalog

import "github.com/sotto-dp/sotto/privacy"

// A Mechanism describes how releases are made private: one that a policy states, or one that a
// trust model has instead.
type Mechanism struct {
	Name  string // as the ledger has it: Kind of the privacy.Mechanism
	Title string
	// Trust and Noise are the words of an experiment that choose it; continuous is where
	// nothing is said.
	Trust, Noise string
	Guarantee    string // for one release, or one slot's releases if Continual
	Assumes      string // who has to be believed
	Budgets      []string
	Continual    bool // running sums of a slot that grows, for one charge
	Real         bool // for real rewards: exact integer noise
	Source       string
}

// Mechanisms lists them: those of the protocol of [Chowdhury and Zhou 2023] by trust model first,
// then what policies state.
func Mechanisms() []Mechanism {
	const (
		analyser = "the server sees every reward"
		nobody   = "nobody is believed"
		sum      = "the server sees the sum only; the promised number of users that answer must be honest"
		shuffler = "the shuffler hides who sent what; the promised number of users that answer must be honest"
	)
	pure, weaker := []string{"epsilon", "rho"}, []string{"rho", "epsilon,delta", "alpha,epsilon"}
	all := []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}
	var out []Mechanism
	aggregated := func(trust privacy.Trust, noise privacy.NoiseName, title, guarantee, assumes,
		source string, budgets []string) {
		out = append(out, Mechanism{Name: privacy.Aggregated{}.Kind(), Title: title,
			Trust: string(trust), Noise: string(noise), Guarantee: guarantee, Assumes: assumes,
			Budgets: budgets, Real: true, Source: source})
	}
	aggregated(privacy.TrustCentral, privacy.NoiseLaplace, "central discrete Laplace", "ε-DP",
		analyser, "[Chowdhury and Zhou 2023, Theorem 5]", all)
	aggregated(privacy.TrustCentral, privacy.NoiseGaussian, "central discrete Gaussian", "ρ-zCDP",
		analyser, "Canonne, Kamath and Steinke 2020, Theorem 4", weaker)
	aggregated(privacy.TrustCentral, privacy.NoiseSkellam, "central Skellam", "Rényi DP", analyser,
		"[Chowdhury and Zhou 2023, Lemma 3]", weaker)
	aggregated(privacy.TrustLocal, privacy.NoiseLaplace, "local discrete Laplace",
		"ε-DP of every message", nobody, "[Chowdhury and Zhou 2023, Theorem 6]", all)
	aggregated(privacy.TrustLocal, privacy.NoiseGaussian, "local discrete Gaussian",
		"ρ-zCDP of every message", nobody, "Canonne, Kamath and Steinke 2020, Theorem 4", weaker)
	aggregated(privacy.TrustLocal, privacy.NoiseSkellam, "local Skellam",
		"Rényi DP of every message", nobody, "[Chowdhury and Zhou 2023, Lemma 3]", weaker)
	const servers = "neither of two servers sees a reward, and one of them must be honest"
	aggregated(privacy.TrustTwoServer, privacy.NoiseLaplace, "discrete Laplace of each server",
		"ε-DP", servers, "Corrigan-Gibbs and Boneh 2017; [Chowdhury and Zhou 2023, Theorem 5]", all)
	aggregated(privacy.TrustTwoServer, privacy.NoiseGaussian, "discrete Gaussian of each server",
		"ρ-zCDP", servers, "Canonne, Kamath and Steinke 2020, Theorem 4", weaker)
	aggregated(privacy.TrustTwoServer, privacy.NoiseSkellam, "Skellam of each server", "Rényi DP",
		servers, "[Chowdhury and Zhou 2023, Lemma 3]", weaker)
	aggregated(privacy.TrustSecAgg, privacy.NoisePolya, "shares of a discrete Laplace", "ε-DP", sum,
		"[Chowdhury and Zhou 2023, Theorem 1]", all)
	aggregated(privacy.TrustSecAgg, privacy.NoiseSkellam, "shares of a Skellam", "Rényi DP", sum,
		"[Chowdhury and Zhou 2023, Theorem 2]", weaker)
	aggregated(privacy.TrustSecAgg, privacy.NoiseGaussian, "discrete Gaussians, added up",
		"ρ-zCDP, with ξ for what the sum is not Gaussian by", sum, "[Chowdhury and Zhou 2023, "+
			"Theorem 4]", weaker)
	out = append(out,
		Mechanism{Name: privacy.ShuffledCount{}.Kind(), Title: "shuffled count", Trust: "shuffle",
			Noise:     string(privacy.NoiseCount),
			Guarantee: "ε-DP", Assumes: shuffler, Budgets: all, Real: true,
			Source: "proof: privacy.ShuffledCount"},
		Mechanism{Name: privacy.SplitMix{}.Kind(), Title: "split and mix, shares of a discrete " +
			"Laplace", Trust: "shuffle", Noise: string(privacy.NoisePolya),
			Guarantee: "(ε,δ)-DP, δ = (1+e^ε)2^−σ", Assumes: shuffler,
			Budgets: []string{"epsilon,delta"}, Real: true,
			Source: "Ishai, Kushilevitz, Ostrovsky and Sahai 2006; Balle, Bell, Gascón and Nissim 2020"},
		Mechanism{Name: privacy.Clones{}.Kind(), Title: "local discrete Laplace, amplified by " +
			"shuffling", Trust: "shuffle", Noise: string(privacy.NoiseLaplace),
			Guarantee: "(ε,δ)-DP, by the numerical clones bound", Assumes: shuffler,
			Budgets: []string{"epsilon,delta"}, Real: true,
			Source: "Feldman, McMillan and Talwar 2021 and 2023"},
	)
	stated := func(m privacy.Mechanism, title, guarantee, source string, real bool, budgets ...string) {
		out = append(out, Mechanism{Name: m.Kind(), Title: title, Trust: "continuous",
			Guarantee: guarantee, Assumes: analyser, Budgets: budgets, Continual: m.Continual(),
			Real: real, Source: source})
	}
	stated(privacy.Laplace{}, "Laplace", "ε-DP", "Dwork, McSherry, Nissim and Smith 2006", true, all...)
	stated(privacy.Gaussian{}, "Gaussian", "ρ-zCDP", "Bun and Steinke 2016", true, weaker...)
	stated(privacy.Tree{}, "binary tree, Laplace", "ε-DP", "[Sajed 2019, Algorithm 5]", true, pure...)
	stated(privacy.Hybrid{}, "hybrid of a tree and a running sum, unknown horizon", "ε-DP",
		"Chan, Shi and Song 2010", true, pure...)
	stated(privacy.KAry{}, "k-ary tree with negative digits, Laplace", "ε-DP",
		"Andersson, Pagh, Steiner and Torkamani 2025", true, pure...)
	stated(privacy.SquareRoot{}, "square root of the counting matrix, Gaussian", "ρ-zCDP",
		"Henzinger, Upadhyay and Upadhyay 2023", false, weaker...)
	stated(privacy.BLT{}, "buffered linear Toeplitz, Gaussian", "ρ-zCDP",
		"Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024", false, weaker...)
	stated(privacy.Sparse{}, "sparse vector", "ε-DP", "[Sajed 2019, Theorem 3.2.1]", true, pure...)
	stated(privacy.Sums{}, "Gaussian noise on the sums of some actions", "ρ-zCDP",
		"[Azize 2024, Appendix C.3.3]", true, weaker...)
	stated(privacy.Elliptic{}, "Gaussian noise on a least squares estimate", "ρ-zCDP",
		"[Azize 2024, Algorithm 8]",
		false, weaker...)
	stated(privacy.VectorGaussian{}, "Gaussian noise on a sum of vectors", "ρ-zCDP",
		"[Azize 2024, Algorithm 9]", true, weaker...)
	stated(privacy.VectorLaplace{}, "noise by length on a sum of vectors", "ε-DP",
		"Hardt and Talwar 2010, of the ball; proof: privacy.VectorLaplace", true, pure...)
	stated(privacy.GramGaussian{}, "Gaussian noise on a Gram matrix and a sum of vectors", "ρ-zCDP",
		"Shariff and Sheffet 2018, of one segment", true, weaker...)
	stated(privacy.GramLaplace{}, "noise by length on a Gram matrix and a sum of vectors", "ε-DP",
		"Hardt and Talwar 2010; proof: privacy.GramLaplace", false, pure...)
	stated(privacy.VectorTree{}, "binary tree of vectors, Laplace", "ε-DP",
		"Shariff and Sheffet 2018, with [Sajed 2019, Algorithm 5]", true, pure...)
	stated(privacy.GaussianVectorTree{}, "binary tree of vectors, Gaussian", "ρ-zCDP",
		"Shariff and Sheffet 2018", true, weaker...)
	stated(privacy.GramTree{}, "binary tree of Gram matrices, Gaussian", "ρ-zCDP",
		"Shariff and Sheffet 2018", true, weaker...)
	stated(privacy.GramBLT{}, "buffered linear Toeplitz Gram matrices", "ρ-zCDP",
		"Shariff and Sheffet 2018, with Toeplitz noise", false, weaker...)
	stated(privacy.GramWishart{}, "Wishart noise on Gram matrices", "(ε,δ)-DP",
		"Shariff and Sheffet 2018", false, "epsilon,delta")
	stated(privacy.LaplaceHistogram{}, "histogram of cells and clicks, Laplace", "ε-DP",
		"proof: privacy.LaplaceHistogram", true, pure...)
	stated(privacy.GaussianHistogram{}, "histogram of cells and clicks, Gaussian", "ρ-zCDP",
		"proof: privacy.LaplaceHistogram", true, weaker...)
	return out
}
