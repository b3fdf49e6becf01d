package noise

import "math"

// The fast twins of the exact samplers: the same laws, parameters in doubles, exact up to double
// arithmetic, for simulation only. A scale, variance or mean that is 0, negative or NaN gives the
// constant 0. Means and scales reach to 2^50; above, values may not fit an int64.

// Geometric is the law of the exact [Geometric]: P(x ≥ k) = e^{-k/scale}. It is an exponential
// variate rounded down.
func (f *Fast) Geometric(scale float64) int64 {
	if !(scale > 0) {
		return 0
	}
	return int64(f.Exponential() * scale)
}

// DiscreteLaplace is the law of the exact [DiscreteLaplace]: a geometric variate with a sign, drawn
// again if it is −0.
func (f *Fast) DiscreteLaplace(scale float64) int64 {
	if !(scale > 0) {
		return 0
	}
	for {
		l := f.Laplace(scale)
		if x := int64(l); x != 0 || !math.Signbit(l) {
			return x
		}
	}
}

// DiscreteGaussian is the law of the exact [DiscreteGaussian], P(x) ∝ exp(−x²/(2σ²)), and not a
// rounded normal variate, which has other masses. Algorithm 3 of CKS: a discrete Laplace variate y
// of scale t = ⌊σ⌋+1 is kept with probability exp(−(|y|−σ²/t)²/(2σ²)), that is if an exponential
// variate is larger.
func (f *Fast) DiscreteGaussian(sigma float64) int64 {
	if !(sigma > 0) {
		return 0
	}
	t := math.Floor(sigma) + 1
	centre, scale := sigma*(sigma/t), math.Sqrt2*sigma
	for {
		y := f.DiscreteLaplace(t)
		if d := (math.Abs(float64(y)) - centre) / scale; d*d < f.Exponential() {
			return y
		}
	}
}

// Poisson is the law of the exact [Poisson]. Below mean 10 it inverts the distribution function;
// above, it is Hörmann's transformed rejection.
func (f *Fast) Poisson(mean float64) int64 {
	switch {
	case !(mean > 0):
		return 0
	case mean < 10:
		return f.poissonInversion(mean)
	}
	return f.poissonPTRS(min(mean, 0x1p53))
}

// poissonInversion goes up the distribution function from 0, term by term: P(k) = P(k−1)·mean/k.
func (f *Fast) poissonInversion(mean float64) int64 {
	// P(X > 128) < 1e-85 for a mean below 10; a uniform left over by rounding starts again
	const end = 128
	first := math.Exp(-mean)
	for {
		u, r := f.Float64(), first
		for k := int64(0); k < end; {
			if u < r {
				return k
			}
			u -= r
			k++
			r *= mean / float64(k)
		}
	}
}

// poissonPTRS is algorithm PTRS of Hörmann (1993), "The transformed rejection method for generating
// Poisson random variables", for means of at least 10. As in binomialBTRS, values are counted from
// ⌊mean⌋ and the density is a sum of small terms, so that it stays exact for large means: log P(k)
// = −δ(k) − D(k, mean) − ½·log(2πk), after Loader (2000).
func (f *Fast) poissonPTRS(mean float64) int64 {
	b := 0.931 + float64(2.53*math.Sqrt(mean))
	a := -0.059 + float64(0.02483*b)
	invAlpha := 1.1239 + 1.1328/(b-3.4)
	certain := 0.9277 - 3.6224/(b-2)
	centre := math.Floor(mean)
	shift := centre - mean
	for {
		u := f.Float64() - 0.5
		v := f.Float64()
		us := 0.5 - math.Abs(u)
		d := math.Floor(float64((2*a/us+b)*u) + 0.43 - shift)
		k := centre + d
		if us >= 0.07 && v <= certain {
			return int64(k)
		}
		if k < 0 || us < 0.013 && v > us {
			continue
		}
		log := -mean
		if k > 0 {
			log = -stirlingError(k) - deviance(k, mean, shift+d) - 0.5*math.Log(2*math.Pi*k)
		}
		if math.Log(v*invAlpha/(a/float64(us*us)+b)) <= log {
			return int64(k)
		}
	}
}

// Skellam is the law of the exact [Skellam] of this variance: the difference of two Poisson
// variates of half its mean.
func (f *Fast) Skellam(variance float64) int64 {
	x := f.Poisson(variance / 2)
	return x - f.Poisson(variance/2)
}

// NegativeBinomial is the law of the exact [NegativeBinomial] for any shape r > 0 instead of 1/n:
// P(x) = C(x+r−1, x)·(1−β)^r·β^x with β = exp(−1/scale). Two ways lead there. A Poisson variate
// whose mean is Gamma(shape r, scale β/(1−β)); and the sum of a Poisson number, of mean
// −r·log(1−β), of variates of the logarithmic law P(x) ∝ β^x/x. The second is faster where that
// number is mostly 0: shares of one of many users.
func (f *Fast) NegativeBinomial(r, scale float64) int64 {
	if !(r > 0 && scale > 0) {
		return 0
	}
	logQ := math.Log(-math.Expm1(-1 / scale)) // log(1−β)
	terms := -r * logQ
	if terms > 2 {
		return f.Poisson(math.Exp(f.LogGamma(r)) / math.Expm1(1/scale))
	}
	x := int64(0)
	for n := f.poissonInversion(terms); n > 0; n-- {
		x += f.logarithmic(logQ)
	}
	return x
}

// logarithmic has P(x) ∝ β^x/x on x ≥ 1, logQ = log(1−β): algorithm LK of Kemp (1981), "Efficient
// generation of logarithmically distributed pseudo-random variables". Given y = 1−(1−β)^u with u
// uniform it is geometric, P(x ≥ k) = y^{k−1}.
func (f *Fast) logarithmic(logQ float64) int64 {
	u := f.Float64()
	y := math.Log1p(-math.Exp(float64(u * logQ))) // log y; −Inf at u = 0
	return 1 + int64(f.Exponential()/-y)
}

// PolyaDifference is the law of the exact [PolyaDifference], with a share r > 0 instead of 1/n. As
// a sum of logarithmic variates it is one sum for both halves, with signs.
func (f *Fast) PolyaDifference(r, scale float64) int64 {
	if !(r > 0 && scale > 0) {
		return 0
	}
	logQ := math.Log(-math.Expm1(-1 / scale))
	terms := -r * logQ
	if terms > 2 {
		x := f.NegativeBinomial(r, scale)
		return x - f.NegativeBinomial(r, scale)
	}
	x := int64(0)
	for n := f.poissonInversion(2 * terms); n > 0; n-- {
		l := f.logarithmic(logQ)
		if int64(f.pcg.Uint64()) < 0 {
			l = -l
		}
		x += l
	}
	return x
}
