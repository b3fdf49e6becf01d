package noise

import "math"

// LogGamma is the logarithm of a Gamma draw of this shape > 0 and scale 1: Marsaglia and Tsang,
// "A simple method for generating gamma variables" (2000), exact by rejection from d(1+cx)³ with
// x normal; a shape a below 1 is a+1 times U^{1/a}. It is a logarithm because draws of small
// shapes underflow.
func (f *Fast) LogGamma(shape float64) float64 {
	var boost float64
	if shape < 1 {
		boost = -f.Exponential() / shape
		shape++
	}
	return math.Log(f.gamma(shape)) + boost
}

// gamma is a Gamma draw of a shape of at least 1.
func (f *Fast) gamma(shape float64) float64 {
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := f.Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		u, x2 := f.Float64(), x*x
		// below the acceptance probability for every shape; saves its logarithms
		if u < 1-float64(0.0331*x2*x2) ||
			math.Log(u) < float64(x2/2)+float64(d*(1-v+math.Log(v))) {
			return float64(d * v)
		}
	}
}

// Beta has density proportional to x^{a−1}(1−x)^{b−1} on [0,1], for a, b > 0: X/(X+Y) of
// independent Gamma draws X and Y of shapes a and b. Where a shape is below 1 the ratio is taken of
// logarithms: there both may underflow.
func (f *Fast) Beta(a, b float64) float64 {
	if a >= 1 && b >= 1 {
		x := f.gamma(a)
		return x / (x + f.gamma(b))
	}
	x := f.LogGamma(a)
	y := f.LogGamma(b)
	return 1 / (1 + math.Exp(y-x))
}

// AddL2Laplace adds to dst noise of density ∝ exp(−‖v‖₂/b): its direction is uniform, and its length Gamma of
// shape len(dst) and scale b.
func (f *Fast) AddL2Laplace(dst []float64, b float64) {
	if len(dst) == 0 {
		return
	}
	var room [32]float64
	v := append(room[:0], dst...)
	f.Normals(v)
	q := 0.0
	for _, x := range v {
		q += float64(x * x)
	}
	r := float64(b*f.gamma(float64(len(dst)))) / math.Sqrt(q)
	for i, x := range v {
		dst[i] += float64(r * x)
	}
}
