package privacy

import "math"

// discreteLaplaceRenyi is the Rényi divergence of order α > 1 between Lap_Z(b) and Lap_Z(b) shifted
// by the integer g ≥ 1, exactly. With ε = g/b and β = e^{−1/b} it is, summed over the two tails and
// the g − 1 points between,
//
//	log[w·e^{(α−1)ε} + (1−w)·e^{−αε}]/(α−1), w = (1 + (1−β)/(e^{(2α−1)/b} − 1))/(1+β).
//
// For g = 1 that is randomised response, and w → α/(2α−1), the continuous laplaceShiftRenyi, as b grows.
func discreteLaplaceRenyi(g, b, alpha float64) float64 {
	beta := math.Exp(-1 / b)
	w := (1 - math.Expm1(-1/b)/math.Expm1((2*alpha-1)/b)) / (1 + beta)
	w = raised(w, guard)
	return laplaceRenyi(divUp(g, b), w, 1-w, alpha)
}

func discreteLaplaceLoss(g, b float64) Loss {
	x := divUp(g, b)
	if !(x <= math.MaxFloat64) {
		return InfiniteLoss()
	}
	l := LossOf(Pure{x})
	if l.Infinite() {
		return l
	}
	for i, a := range orders {
		l.t.rdp[i] = min(l.t.rdp[i], discreteLaplaceRenyi(g, b, a))
	}
	return l
}

// polyaEpsilon is log f(0)/f(g) for the noise X − Y of weight r < 1: see Aggregated.lossWith. With
// c_k = Γ(k+r)/(k!Γ(r)), f(x) ∝ β^x Σ_k c_k c_{k+x} β^{2k}. Terms are followed from one to the
// next, and each step rounds: 3 times in c_k, c_{k+g} and β^{2k}, by 2⁻⁵³ at most. All of it moves
// the ratio of the two sums of k terms by a share of 2⁻⁵³(20k + 3g) at most, which is added.
func polyaEpsilon(g int64, b, r float64) float64 {
	if !(float64(g)+20*b <= 1e8) {
		return math.Inf(1)
	}
	above := 1.0 // c_{k+g}
	for k := range g {
		above *= (float64(k) + r) / float64(k+1)
	}
	c, power, near, far := 1.0, 1.0, 0.0, 0.0
	beta2 := math.Exp(-2 / b)
	k := 0.0
	for ; power > 1e-17; k++ {
		near += float64(float64(c*c) * power)
		far += float64(float64(c*above) * power)
		c *= (k + r) / (k + 1)
		above *= (k + float64(g) + r) / (k + float64(g) + 1)
		power *= beta2
	}
	rounding := 0x1p-53 * (float64(20*k) + 3*float64(g))
	return raised(float64(g)/b+math.Log(near/far)+rounding, many)
}

// skellamRenyi bounds the Rényi divergence of integer order α ≥ 2 of the Skellam mechanism: Sk(0,
// variance) on integers of sensitivity g ([Chowdhury and Zhou 2023, Lemma 3]; Agarwal, Kairouz and
// Liu 2021, Theorem 3.5):
//
//	αg²/(2σ²) + min{((2α−1)g² + 6g)/(4σ⁴), 3g/(2σ²)}.
//
// Theorem 2's printed curve, for a real g = sε√n, is this with g²/σ² = ε².
func skellamRenyi(g, variance, alpha float64) float64 {
	first := alpha * (g / variance) * g / 2
	second := (float64((2*alpha-1)*g) + 6) / 4 * (g / variance) / variance
	return raised(first+min(second, 1.5*g/variance), guard)
}

// skellamLoss has no proof except for integer orders. Between them it is the chord of (α−1)D_α; below
// 2, D_α ≤ D_2. And D_α ≤ D_2·α for all α > 1, which is a ρ, about twice what a proof for all
// orders would give: D_{k+1} ≤ k·D_2 holds term by term.
func skellamLoss(g, variance float64) Loss {
	two := skellamRenyi(g, variance, 2)
	if !(two <= math.MaxFloat64) || two == 0 {
		return InfiniteLoss()
	}
	t := renyiless()
	t.rho = two
	for i, a := range orders {
		if a <= 2 {
			t.rdp[i] = two
			continue
		}
		k := math.Floor(a)
		below := float64((k - 1) * skellamRenyi(g, variance, k))
		above := float64(k * skellamRenyi(g, variance, k+1))
		t.rdp[i] = raised((float64((k+1-a)*below)+float64((a-k)*above))/(a-1), guard)
	}
	return Loss{t}
}

// gaussianSumZCDP is the ρ of the sum of n independent discrete Gaussians of this variance each, as
// noise on integers of sensitivity g ([Chowdhury and Zhou 2023, Lemma 4]; Kairouz, Liu and Steinke
// 2021, Proposition 13): ρ = ½ε̂² with
//
//	ε̂ = min{√(g²/(nσ²) + ξ/2), g/(√n·σ) + ξ}, ξ = 10·Σ_{k=1}^{n−1} exp(−2π²σ²k/(k+1)).
//
// The sum of discrete Gaussians is not quite one; ξ is what that costs. It is +Inf for a variance
// below ¼, where the lemma does not hold, unless n = 1, where ξ = 0 and ρ = g²/(2σ²) exactly
// (Canonne, Kamath and Steinke 2020, Theorem 4).
func gaussianSumZCDP(g, variance float64, n int) float64 {
	if n < 1 || n > 1 && !(variance >= 0.25) {
		return math.Inf(1)
	}
	ratio := g / math.Sqrt(variance*float64(n)) // ε
	xi := gaussianSumXi(variance, n)
	e2 := min(float64(ratio*ratio)+xi/2, float64((ratio+xi)*(ratio+xi)))
	return raised(e2/2, guard)
}

// GaussianSumXi is ξ of gaussianSumZCDP: no probability of the sum of n discrete Gaussians of this
// variance is more than e^ξ times, or less than e^−ξ times, that of one discrete Gaussian of n
// times the variance (Kairouz, Liu and Steinke 2021, Theorem 9 and Proposition 13). It holds for a
// variance of at least ¼.
func GaussianSumXi(variance float64, n int) float64 { return gaussianSumXi(variance, n) }

// gaussianSumXi is ξ, rounded up: terms fall, so that from the 256th on blocks of them are
// taken at their first.
func gaussianSumXi(variance float64, n int) float64 {
	sum := 0.0
	for k := 1; k < n; {
		block := min(max(1, k/128), n-k)
		sum += float64(block) * math.Exp(-2*math.Pi*math.Pi*variance*(float64(k)/float64(k+1)))
		k += block
	}
	return raised(10*sum, many)
}
