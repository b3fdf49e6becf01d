package release

import "github.com/sotto-dp/sotto/privacy"

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

// squareRoot keeps the noise of one slot under privacy.SquareRoot: y = Cz for the rewards so far.
// The coefficients of C are an integral of powers,
//
//	c_k = C(2k,k)/4^k = 1/π ∫₀¹ x^k/√(x(1−x)) dx = Σ_j w_j x_j^k,
//
// and a sum of rootTerms of them to the last bits of a double for every k < privacy.MaxSquareRoot:
// see rootDecay. So y_t = Σ_j w_j u_j with u_j ← x_j u_j + z_t: the noise of the matrix itself, and
// not of a nearby one at a price of its own as under privacy.BLT. A slot has as many numbers of
// memory whatever its length.
type squareRoot struct {
	t   uint64
	sum float64
	u   [rootTerms]float64
}

func newSquareRoot() stream[float64] { return new(squareRoot) }

// at implements stream.
func (c *squareRoot) at(t uint64, noise sampler[float64]) (float64, error) {
	for c.t < t {
		z, err := noise.draw(1)
		if err != nil {
			return 0, err
		}
		c.sum = c.step(z)
		c.t++
	}
	return c.sum, nil
}

// step takes the next z and gives the next y. Four terms at a time do not wait for each other.
func (c *squareRoot) step(z float64) float64 {
	u, x, w := &c.u, &rootDecay, &rootWeight
	var y0, y1, y2, y3 float64
	for j := 0; j < rootTerms; j += 4 {
		u0 := float64(x[j]*u[j]) + z
		u1 := float64(x[j+1]*u[j+1]) + z
		u2 := float64(x[j+2]*u[j+2]) + z
		u3 := float64(x[j+3]*u[j+3]) + z
		u[j], u[j+1], u[j+2], u[j+3] = u0, u1, u2, u3
		y0 += float64(w[j] * u0)
		y1 += float64(w[j+1] * u1)
		y2 += float64(w[j+2] * u2)
		y3 += float64(w[j+3] * u3)
	}
	return y0 + y1 + (y2 + y3)
}
