package privacy

import (
	"errors"
	"fmt"
	"math"
)

// SquareRoot releases every running sum of a slot of at most Horizon rewards with the noise Cz,
// where C is the square root of the matrix of prefix sums, c_0 = 1, c_k = c_{k−1}(2k−1)/(2k), and z
// are independent N(0, Sigma²) (Fichtenberger, Henzinger and Upadhyay 2023). That is C times the
// Gaussian mechanism on Cx, whose sensitivity to one reward is ‖Ce_1‖: ρ = ‖Ce_1‖²/(2·Sigma²), also
// when rewards depend on releases (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1).
// Among Toeplitz factorisations its largest variance is the least (Dvijotham, McMahan, Pillutla,
// Steinke and Thakurta 2024, for the limit).
//
// Horizon is at most MaxSquareRoot: as far as the coefficients are a sum of 64 powers to the last
// bits, so that a slot's noise is kept in 64 numbers (package release).
type SquareRoot struct {
	Sigma   float64
	Horizon int
}

// MaxSquareRoot is the largest horizon of SquareRoot. BLT has nearly its variance at any horizon.
const MaxSquareRoot = 1 << 20

func (SquareRoot) Kind() string    { return "sqrt" }
func (SquareRoot) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞ and 1 ≤ Horizon ≤ MaxSquareRoot.
func (m SquareRoot) Validate() error {
	return errors.Join(scale("sqrt", "sigma", m.Sigma), checkHorizon("sqrt", m.Horizon, MaxSquareRoot))
}

// Loss is that of a Gaussian release of sensitivity ‖Ce_1‖.
func (m SquareRoot) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(rootNorm2(m.Horizon), many), squareDown(m.Sigma)))
}

// variance is that of the noise in the sum of the first t rewards: Sigma²·Σ_{k<t} c_k².
func (m SquareRoot) variance(t int) float64 { return float64(m.Sigma*m.Sigma) * rootNorm2(t) }

// maxVariance is the largest variance of the noise in a sum, the last one's.
func (m SquareRoot) maxVariance() float64 { return m.variance(m.Horizon) }

// Tail of the noise in any running sum, by the largest variance.
func (m SquareRoot) Tail() Tail { return Tail{Sigma: math.Sqrt(m.maxVariance())} }

// NewSquareRoot meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func NewSquareRoot(b Budget, horizon int) (SquareRoot, error) {
	sigma, err := GaussianSigma(b)
	if err != nil {
		return SquareRoot{}, err
	}
	m := SquareRoot{Horizon: horizon}
	if err := m.Validate(); err != nil {
		return SquareRoot{}, err
	}
	m.Sigma = sigma * math.Sqrt(rootNorm2(horizon))
	return m, nil
}

// rootNorm2 is Σ_{k<n} c_k² of the square root: summed up to 4096, and beyond by (log n + γ + 4 log
// 2)/π − 1/(4πn) + 5/(192πn²) + O(n⁻³), which has the right differences c_n².
func rootNorm2(n int) float64 {
	sum, c := 0.0, 1.0
	m := min(n, 4096)
	for k := range m {
		if k > 0 {
			c *= float64(2*k-1) / float64(2*k)
		}
		sum += float64(c * c)
	}
	if n > m {
		series := func(x float64) float64 { return (math.Log(x) - 1/(4*x) + 5/(192*float64(x*x))) / math.Pi }
		sum += series(float64(n)) - series(float64(m))
	}
	return sum
}

func (m SquareRoot) withScale(x float64) Mechanism { m.Sigma = x; return m }

func (m SquareRoot) draws() Draws {
	return Draws{Law: NoiseGaussian, Scale: m.Sigma, Float: newSquareRoot,
		Column: func(before []float64) float64 {
			k := len(before)
			if k == 0 {
				return 1
			}
			return before[k-1] * (2*float64(k) - 1) / (2 * float64(k))
		}}
}

func (m SquareRoot) facts() facts { return facts{sum: true, longest: m.Horizon} }
func (m SquareRoot) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Sigma} }
func (m SquareRoot) String() string {
	return fmt.Sprintf("sqrt(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}

func (m *SquareRoot) fields() []field {
	return []field{{"sigma", &m.Sigma}, {"horizon", &m.Horizon}}
}

// MarshalJSON writes {"mechanism":"sqrt","sigma":2,"horizon":1000}.
func (m SquareRoot) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m SquareRoot) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}

// squareRoot keeps the noise of one slot under SquareRoot: y = Cz for the rewards so far.
// The coefficients of C are an integral of powers,
//
//	c_k = C(2k,k)/4^k = 1/π ∫₀¹ x^k/√(x(1−x)) dx = Σ_j w_j x_j^k,
//
// and a sum of rootTerms of them to the last bits of a double for every k < MaxSquareRoot:
// see rootDecay. So y_t = Σ_j w_j u_j with u_j ← x_j u_j + z_t: the noise of the matrix itself, and
// not of a nearby one at a price of its own as under BLT. A slot has as many numbers of
// memory whatever its length.
type squareRoot struct {
	t   uint64
	sum float64
	u   [rootTerms]float64
}

func newSquareRoot() Stream[float64] { return new(squareRoot) }

// At implements Stream.
func (c *squareRoot) At(t uint64, noise Sampler[float64]) (float64, error) {
	for c.t < t {
		z, err := noise.Draw(1)
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
