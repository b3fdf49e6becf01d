package audit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/noise"
)

// Data is the law that points are drawn from. Implementations are safe for use by several workers.
type Data interface {
	// Dim is the number of columns.
	Dim() int
	// Draw writes one point.
	Draw(dst []float64, src *noise.Fast)
	// Sum writes the sum of k independent points. It is exact in law, and where the law of a sum is
	// known it costs one draw a column whatever k is.
	Sum(dst []float64, k int, src *noise.Fast)
}

// Bernoulli data has independent columns in {0,1}, column j with mean P[j]: the data of [Azize
// 2024, §2.3.4 and Figure 6.2]. A column's sum is Binomial.
type Bernoulli struct{ P []float64 }

// Dim implements Data.
func (b Bernoulli) Dim() int { return len(b.P) }

// Draw implements Data.
func (b Bernoulli) Draw(dst []float64, src *noise.Fast) { b.Sum(dst, 1, src) }

// Sum implements Data.
func (b Bernoulli) Sum(dst []float64, k int, src *noise.Fast) {
	for j, p := range b.P {
		dst[j] = float64(src.Binomial(k, p))
	}
}

// Variance is the variance of each column.
func (b Bernoulli) Variance() []float64 {
	v := make([]float64, len(b.P))
	for j, p := range b.P {
		v[j] = p * (1 - p)
	}
	return v
}

// Normal data has independent Gaussian columns, column j with mean Mu[j] and variance Var[j].
type Normal struct{ Mu, Var []float64 }

// Dim implements Data.
func (n Normal) Dim() int { return len(n.Mu) }

// Draw implements Data.
func (n Normal) Draw(dst []float64, src *noise.Fast) { n.Sum(dst, 1, src) }

// Sum implements Data.
func (n Normal) Sum(dst []float64, k int, src *noise.Fast) {
	c := float64(k)
	for j, mu := range n.Mu {
		dst[j] = float64(c*mu) + float64(math.Sqrt(c*n.Var[j])*src.Normal())
	}
}

// Correlated data is Gaussian with any covariance: Mu + L·z, with L lower triangular, d×d.
type Correlated struct {
	Mu []float64
	L  *mat.TriDense
}

// NewCorrelated returns the Gaussian law of this mean and covariance.
func NewCorrelated(mu []float64, covariance mat.Symmetric) (Correlated, error) {
	if n := covariance.SymmetricDim(); n != len(mu) {
		return Correlated{}, fmt.Errorf("audit: %w: the mean has %d, the covariance %d", ErrShape, len(mu), n)
	}
	var c mat.Cholesky
	if !c.Factorize(covariance) {
		return Correlated{}, fmt.Errorf("audit: %w, of the data", ErrSingular)
	}
	var l mat.TriDense
	c.LTo(&l)
	return Correlated{mu, &l}, nil
}

// Dim implements Data.
func (c Correlated) Dim() int { return len(c.Mu) }

// Draw implements Data.
func (c Correlated) Draw(dst []float64, src *noise.Fast) { c.Sum(dst, 1, src) }

// Sum implements Data.
func (c Correlated) Sum(dst []float64, k int, src *noise.Fast) {
	src.Normals(dst)
	root, n := math.Sqrt(float64(k)), float64(k)
	for j := len(dst) - 1; j >= 0; j-- { // row j needs the normals up to j
		row := c.L.RawTriangular().Data[j*c.L.RawTriangular().Stride:]
		var s float64
		for i := range j + 1 {
			s += float64(row[i] * dst[i])
		}
		dst[j] = float64(n*c.Mu[j]) + float64(root*s)
	}
}

// Mean is the mechanism under attack: the mean of N points, and its variations [Azize 2024, Chapter
// 6]. The zero values of Sample, Clip and Noise leave the plain empirical mean.
type Mean struct {
	N int // points in the dataset
	// Sample is the number of points k = ρN drawn without replacement and averaged [Azize 2024,
	// §6.5.2]. 0 means all.
	Sample int
	// Clip scales every point whose Euclidean norm is larger down to this norm, before it is
	// averaged. 0 means never. The law of a clipped sum is not known, so all points are drawn one
	// by one: games cost k times as much.
	Clip float64
	// Noise holds γ_j: N(0, γ_j²/k) is added to column j of a mean of k points [Azize 2024,
	// §6.5.1]. Nil means none.
	Noise []float64
}

// Rows is the number of points that are averaged: Sample, or N.
func (m Mean) Rows() int {
	if m.Sample > 0 {
		return m.Sample
	}
	return m.N
}

// Validate checks the mechanism against points of d columns.
func (m Mean) Validate(d int) error {
	switch {
	case d < 1:
		return fmt.Errorf("audit: data of %d dimensions, must be at least 1", d)
	case m.N < 2:
		return fmt.Errorf("audit: N is %d, must be at least 2", m.N)
	case m.Sample < 0 || m.Sample > m.N:
		return fmt.Errorf("audit: Sample is %d, must be in [0, N] = [0, %d]", m.Sample, m.N)
	case !(m.Clip >= 0) || math.IsInf(m.Clip, 1):
		return fmt.Errorf("audit: Clip is %v, must be finite and at least 0", m.Clip)
	case m.Noise != nil && len(m.Noise) != d:
		return fmt.Errorf("audit: %w: Noise has %d, the data %d", ErrShape, len(m.Noise), d)
	}
	for j, g := range m.Noise {
		if !(g >= 0) || math.IsInf(g, 1) {
			return fmt.Errorf("audit: Noise[%d] is %v, must be finite and at least 0", j, g)
		}
	}
	return nil
}

// A meanWorker releases means, one after another, into out.
type meanWorker struct {
	Mean
	data       Data
	out, point []float64
}

func (m Mean) worker(d Data) *meanWorker {
	return &meanWorker{m, d, make([]float64, d.Dim()), make([]float64, d.Dim())}
}

// release draws the other points' sum at once. Whether the target is among the sampled points is
// one coin for all columns.
func (w *meanWorker) release(target []float64, in bool, src *noise.Fast) {
	k := w.Rows()
	if in && k < w.N {
		in = src.Bernoulli(float64(k) / float64(w.N))
	}
	others := k
	if in {
		others--
	}
	if w.Clip > 0 {
		clear(w.out)
		for range others {
			w.data.Draw(w.point, src)
			w.add(w.point)
		}
	} else {
		w.data.Sum(w.out, others, src)
	}
	if in {
		w.add(target)
	}
	n := float64(k)
	for j := range w.out {
		// times 1/n, a sum of n would not be 1, and BernoulliLR not −Inf where it must be
		w.out[j] /= n
	}
	if w.Noise != nil {
		root := math.Sqrt(1 / n)
		for j, g := range w.Noise {
			if g > 0 {
				w.out[j] += float64(float64(g*root) * src.Normal())
			}
		}
	}
}

func (w *meanWorker) add(z []float64) {
	f := 1.0
	if w.Clip > 0 {
		var n2 float64
		for _, v := range z {
			n2 += float64(v * v)
		}
		f = min(1, w.Clip/math.Sqrt(n2))
	}
	for j, v := range z {
		w.out[j] += float64(f * v)
	}
}
