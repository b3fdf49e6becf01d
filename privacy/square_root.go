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

// Variance is that of the noise in the sum of the first t rewards: Sigma²·Σ_{k<t} c_k².
func (m SquareRoot) Variance(t int) float64 { return float64(m.Sigma*m.Sigma) * rootNorm2(t) }

// MaxVariance is the largest variance of the noise in a sum, the last one's.
func (m SquareRoot) MaxVariance() float64 { return m.Variance(m.Horizon) }

// Tail of the noise in any running sum, by the largest variance.
func (m SquareRoot) Tail() Tail { return Tail{Sigma: math.Sqrt(m.MaxVariance())} }

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
