package privacy

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Buffers is how many buffers a BLT can have.
const Buffers = 8

// BLT releases every running sum of a slot of at most Horizon rewards with the noise AC⁻¹z of a
// buffered linear Toeplitz matrix (Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024): A is
// the matrix of prefix sums, c_0 = 1 and c_t = Σ_j Weight_j·Decay_j^{t−1}, and z are independent
// N(0, Sigma²). It is AC⁻¹ times the Gaussian mechanism on Cx: ρ = ‖Ce_1‖²/(2·Sigma²), as for
// SquareRoot. Each release takes as many operations as there are buffers.
//
// Any buffers are private at their price; which give little noise depends on the horizon: see
// NewBLT. Decays are in (0,1), decreasing, weights positive; those not used are both 0.
type BLT struct {
	Sigma         float64
	Horizon       int
	Decay, Weight [Buffers]float64
}

func (BLT) Kind() string    { return "blt" }
func (BLT) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞, Horizon ≥ 1 and buffers as BLT says, one at least, whose inverse
// is stable: Σ Weight/(1+Decay) < 1.
func (m BLT) Validate() error {
	err := errors.Join(scale("blt", "sigma", m.Sigma), checkHorizon("blt", m.Horizon, math.MaxInt))
	b, last, unstable := m.buffers(), 1.0, 0.0
	if b == 0 {
		return errors.Join(err, errors.New("mechanism blt: it has no buffers, must have at least one"))
	}
	for j, d := range m.Decay {
		w := m.Weight[j]
		switch {
		case j >= b && (d != 0 || w != 0):
			return errors.Join(err, fmt.Errorf("mechanism blt: buffer %d has decay %v and weight "+
				"%v after an empty one, both must be 0", j, d, w))
		case j >= b:
		case !(d > 0 && d < last):
			return errors.Join(err, fmt.Errorf("mechanism blt: decay %d is %v, must be above "+
				"0 and below %v", j, d, last))
		case !(w > 0 && w <= math.MaxFloat64):
			return errors.Join(err, fmt.Errorf("mechanism blt: weight %d is %v, must be "+
				"positive and finite", j, w))
		default:
			last = d
			unstable += w / (1 + d)
		}
	}
	if !(unstable < 1) {
		err = errors.Join(err, fmt.Errorf("mechanism blt: the weights' sum of w/(1+d) is %v, "+
			"must be below 1", unstable))
	}
	return err
}

// buffers is the number of buffers in use.
func (m BLT) buffers() int {
	for j, d := range m.Decay {
		if d == 0 && m.Weight[j] == 0 {
			return j
		}
	}
	return Buffers
}

// Loss is that of a Gaussian release of sensitivity ‖Ce_1‖.
func (m BLT) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(m.sensitivity2(), many), squareDown(m.Sigma)))
}

// sensitivity2 is ‖Ce_1‖² = 1 + Σ_ij w_i w_j (1−(d_i d_j)^{n−1})/(1−d_i d_j).
func (m BLT) sensitivity2() float64 {
	b := m.buffers()
	return 1 + squares(m.Weight[:b], m.Decay[:b], float64(m.Horizon-1))
}

// variance is that of the noise in the sum of the first t rewards: Sigma²·Σ_{k<t} b_k², where b are
// the coefficients of AC⁻¹.
//
// With λ for 1/x, the series of C is 1 + Σ_j w_j/(λ−d_j) = Π(λ−r_j)/Π(λ−d_j). Its roots r_j lie one
// between each two decays and one below all, since it falls from +∞ to −∞ in between. So AC⁻¹ is
// Π(1−d_j x)/((1−x)Π(1−r_j x)), and b_k = β_0 + Σ_j β_j r_j^k.
func (m BLT) variance(t int) float64 {
	b := m.buffers()
	d, w := m.Decay[:b], m.Weight[:b]
	var beta, root [Buffers + 1]float64
	root[b] = 1
	f := func(x float64) float64 {
		sum := 1.0
		for j := range d {
			sum += w[j] / (x - d[j])
		}
		return sum
	}
	for j := range d {
		lo, hi := -1.0, d[j]
		if j+1 < b {
			lo = d[j+1]
		}
		for {
			mid := lo + (hi-lo)/2
			if !(mid > lo && mid < hi) {
				break
			}
			if f(mid) > 0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		root[j] = lo
	}
	for j := range b + 1 {
		beta[j] = 1
		for i := range d {
			beta[j] *= root[j] - d[i]
		}
		for i := range b + 1 {
			if i != j {
				beta[j] /= root[j] - root[i]
			}
		}
	}
	return float64(m.Sigma*m.Sigma) * squares(beta[:b+1], root[:b+1], float64(t))
}

// MaxVariance is the largest variance of the noise in a sum, the last one's.
func (m BLT) MaxVariance() float64 { return m.variance(m.Horizon) }

// Tail of the noise in any running sum, by the largest variance.
func (m BLT) Tail() Tail { return Tail{Sigma: math.Sqrt(m.MaxVariance())} }

// squares is Σ_{k<n} (Σ_j w_j λ_j^k)².
func squares(w, lambda []float64, n float64) float64 {
	sum := 0.0
	for i := range w {
		for j := range w {
			// q = 1 − p, with all its digits
			p, q := float64(lambda[i]*lambda[j]), -math.FMA(lambda[i], lambda[j], -1)
			terms := n
			if q != 0 {
				terms = (1 - power(p, n)) / q
				if p > 0 {
					terms = -math.Expm1(float64(n*math.Log1p(-q))) / q
				}
			}
			sum += float64(float64(w[i]*w[j]) * terms)
		}
	}
	return sum
}

func power(p, n float64) float64 {
	if n == 0 {
		return 1
	}
	return math.Pow(p, n)
}

// NewBLT meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does. Its buffers are those,
// of a list that was optimised for horizons from 10² to 10¹², whose largest variance is the least
// at this horizon. The price and the variance at the horizon are exact whatever it is; only how
// near they are to the best rests on the list: the variance exceeds that of the square root by at
// most 0.7 % up to a horizon of 10⁷, 2.3 % up to 10¹⁰ and 6 % up to 10¹².
func NewBLT(b Budget, horizon int) (BLT, error) {
	sigma, err := GaussianSigma(b)
	if err != nil {
		return BLT{}, err
	}
	if err := checkHorizon("blt", horizon, math.MaxInt); err != nil {
		return BLT{}, err
	}
	best, least := BLT{}, math.Inf(1)
	for _, m := range bltTable() {
		m.Sigma, m.Horizon = 1, horizon
		if c := m.MaxVariance() * m.sensitivity2(); c < least {
			best, least = m, c
		}
	}
	best.Sigma = sigma * math.Sqrt(best.sensitivity2())
	return best, nil
}

func (m BLT) withScale(x float64) Mechanism { m.Sigma = x; return m }

func (m BLT) draws() Draws {
	return Draws{Law: NoiseGaussian, Scale: m.Sigma,
		Float: func() Stream[float64] { return newBLT(m) },
		Column: func(before []float64) float64 {
			if len(before) == 0 {
				return 1
			}
			x := 0.0
			for j, w := range m.Weight {
				if w > 0 {
					x += float64(w * math.Pow(m.Decay[j], float64(len(before)-1)))
				}
			}
			return x
		}}
}

func (m BLT) facts() facts { return facts{sum: true, longest: m.Horizon} }
func (m BLT) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Sigma} }
func (m BLT) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "blt(sigma=%s,horizon=%d", number(m.Sigma), m.Horizon)
	for j := range m.buffers() {
		fmt.Fprintf(&s, ",%s:%s", number(m.Decay[j]), number(m.Weight[j]))
	}
	return s.String() + ")"
}

// fields has decay and weight without the buffers that are not used.
func (m *BLT) fields(decay, weight *[]float64) []field {
	return []field{{"sigma", &m.Sigma}, {"horizon", &m.Horizon}, {"decay", decay}, {"weight", weight}}
}

// MarshalJSON writes
// {"mechanism":"blt","sigma":2,"horizon":1000,"decay":[0.99,0.5],"weight":[0.1,0.3]}.
func (m BLT) MarshalJSON() ([]byte, error) { return m.encode(m.Kind()) }

func (m BLT) encode(kind string) ([]byte, error) {
	b := m.buffers()
	decay, weight := m.Decay[:b], m.Weight[:b]
	return encode(kind, m.fields(&decay, &weight))
}

func (m BLT) read(data []byte) (Mechanism, error) {
	err := m.decode(m.Kind(), data)
	return m, err
}

func (m *BLT) decode(kind string, data []byte) error {
	var decay, weight []float64
	if err := decode(kind, data, m.fields(&decay, &weight)); err != nil {
		return err
	}
	if len(decay) != len(weight) || len(decay) > Buffers {
		return fmt.Errorf("mechanism %s: there are %d decays and %d weights, must be as "+
			"many, at most %d", kind, len(decay), len(weight), Buffers)
	}
	copy(m.Decay[:], decay)
	copy(m.Weight[:], weight)
	if m.buffers() < len(decay) {
		return fmt.Errorf("mechanism %s: buffer %d is empty: its decay and weight must be positive",
			kind, m.buffers())
	}
	return nil
}

// blt keeps the noise of one slot under BLT (McMahan, Xu and Zhang 2024, Algorithm 3): w =
// C⁻¹z is added to each reward, z being independent,
//
//	w_i = z_i − Σ_j s_j u_j,  then u_j ← d_j u_j + w_i,
//
// and the noise of a running sum is the sum of w. AddSum of n rewards takes n steps.
type blt struct {
	t             uint64
	sum           float64
	buffers       int
	decay, weight [Buffers]float64
	u             [Buffers]float64
}

func newBLT(m BLT) Stream[float64] {
	c := &blt{decay: m.Decay, weight: m.Weight}
	for c.buffers < len(m.Decay) && m.Decay[c.buffers] > 0 {
		c.buffers++
	}
	return c
}

// At implements Stream.
func (c *blt) At(t uint64, noise Sampler[float64]) (float64, error) {
	for c.t < t {
		w, err := noise.Draw(1)
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
