package release

import (
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// The counters of zero-concentrated DP add correlated normal noise to running sums. It is drawn
// with real coefficients, so they are for simulated rewards only: see exactPlan.

// blt keeps the noise of one slot under privacy.BLT (McMahan, Xu and Zhang 2024, Algorithm 3): w =
// C⁻¹z is added to each reward, z being independent,
//
//	w_i = z_i − Σ_j s_j u_j,  then u_j ← d_j u_j + w_i,
//
// and the noise of a running sum is the sum of w. AddSum of n rewards takes n steps.
type blt struct {
	t             uint64
	sum           float64
	buffers       int
	decay, weight [privacy.Buffers]float64
	u             [privacy.Buffers]float64
}

func newBLT(m privacy.BLT) stream[float64] {
	c := &blt{decay: m.Decay, weight: m.Weight}
	for c.buffers < len(m.Decay) && m.Decay[c.buffers] > 0 {
		c.buffers++
	}
	return c
}

// at implements stream.
func (c *blt) at(t uint64, noise sampler[float64]) (float64, error) {
	for c.t < t {
		w, err := noise.draw(1)
		if err != nil {
			return 0, err
		}
		decay, weight, u := c.decay[:c.buffers], c.weight[:c.buffers], c.u[:c.buffers]
		for j, x := range u {
			w -= float64(weight[j] * x)
		}
		for j, x := range u {
			u[j] = float64(decay[j]*x) + w
		}
		c.sum += w
		c.t++
	}
	return c.sum, nil
}

// squareRoot keeps the noise of one slot under privacy.SquareRoot: y = Cz for the rewards so far
// and somewhat more. It grows by doubling, one convolution a time by fast Fourier transform: O(log
// Horizon) operations a reward on average, and about 20 numbers of memory for each reward while it
// grows, 2 afterwards.
type squareRoot struct {
	horizon int
	z, y    []float64
}

func newSquareRoot(m privacy.SquareRoot) stream[float64] { return &squareRoot{horizon: m.Horizon} }

// at implements stream.
func (c *squareRoot) at(t uint64, noise sampler[float64]) (float64, error) {
	if t == 0 {
		return 0, nil
	}
	for uint64(len(c.y)) < t {
		if err := c.grow(noise); err != nil {
			return 0, err
		}
	}
	return c.y[t-1], nil
}

// direct is the length of the first block, which is not worth a transform.
const direct = 64

func (c *squareRoot) grow(noise sampler[float64]) error {
	n := min(max(direct, 2*len(c.y)), c.horizon)
	for len(c.z) < n {
		x, err := noise.draw(1)
		if err != nil {
			return err
		}
		c.z = append(c.z, x)
	}
	size := 1
	for size < 2*n {
		size *= 2
	}
	x := make([]complex128, size)
	r, zz, cc := 1.0, 0.0, 0.0
	for k, z := range c.z {
		if k > 0 {
			r *= float64(2*k-1) / float64(2*k)
		}
		x[k] = complex(z, r)
		zz += float64(z * z)
		cc += float64(r * r)
	}
	from := len(c.y) // what was released stays as it was, to the last bit
	c.y = append(c.y, make([]float64, n-from)...)
	if n <= direct {
		for t := from; t < n; t++ {
			for i := range t + 1 {
				c.y[t] += float64(imag(x[t-i]) * real(x[i]))
			}
		}
		return nil
	}
	// z and c are real, so one transform X of z + ic has both: Z = (X_k + X̄_{−k})/2, C = (X_k −
	// X̄_{−k})/2i, and ZC = (X_k² − X̄_{−k}²)/4i. With c as long as z no digits are lost.
	scale := 1.0
	if zz > 0 {
		scale = math.Sqrt(zz / cc)
	}
	for k := range n {
		x[k] = complex(real(x[k]), float64(scale*imag(x[k])))
	}
	w := roots(size)
	forward(x, w)
	// In the order of reversed bits −k is the mirror image of k in each block from a power of
	// two to the next.
	x[0], x[1] = product(x[0], x[0]), product(x[1], x[1])
	for h := 2; h < size; h *= 2 {
		for i, j := h, 2*h-1; i < j; i, j = i+1, j-1 {
			x[i], x[j] = product(x[i], x[j]), product(x[j], x[i])
		}
	}
	backward(x, w)
	scale *= float64(size)
	for t := from; t < n; t++ {
		c.y[t] = real(x[t]) / scale
	}
	return nil
}

// product is (a² − b̄²)/4i.
func product(a, b complex128) complex128 {
	ar, ai, br, bi := real(a), imag(a), real(b), imag(b)
	re := float64(ar*ar) - float64(ai*ai) - (float64(br*br) - float64(bi*bi))
	im := 2*float64(ar*ai) + 2*float64(br*bi)
	return complex(im/4, -re/4)
}

// roots has e^{−2πik/m} for k < m/2 from place m/2 on, for each power of two m from 2 to n.
func roots(n int) []complex128 {
	w := make([]complex128, n)
	for k := range n / 2 {
		s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		w[n/2+k] = complex(c, s)
	}
	for k := n/2 - 1; k > 0; k-- { // k = m/2 + j has the root of 2m at 2j, which is in place m + 2j
		w[k] = w[2*k]
	}
	return w
}

// forward is the discrete Fourier transform in place, n a power of two (Cooley and Tukey);
// X_k ends in the place with k's bits reversed. Halves one after the other, so that small
// ones stay in the cache.
func forward(x, w []complex128) {
	half := len(x) / 2
	if half == 1 {
		x[0], x[1] = x[0]+x[1], x[0]-x[1]
		return
	}
	lo, hi, r := x[:half], x[half:][:half], w[half:][:half]
	for k, a := range lo {
		b := hi[k]
		lo[k], hi[k] = a+b, times(a-b, real(r[k]), imag(r[k]))
	}
	forward(lo, w)
	forward(hi, w)
}

// backward undoes forward, but for a factor n.
func backward(x, w []complex128) {
	half := len(x) / 2
	if half == 1 {
		x[0], x[1] = x[0]+x[1], x[0]-x[1]
		return
	}
	lo, hi, r := x[:half], x[half:][:half], w[half:][:half]
	backward(lo, w)
	backward(hi, w)
	for k, a := range lo {
		b := times(hi[k], real(r[k]), -imag(r[k]))
		lo[k], hi[k] = a+b, a-b
	}
}

func times(a complex128, re, im float64) complex128 {
	return complex(float64(real(a)*re)-float64(imag(a)*im), float64(real(a)*im)+float64(imag(a)*re))
}
