package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// KAry releases every running sum of a slot of at most Horizon rewards through the k-ary tree
// with negative digits (Andersson, Pagh, Steiner and Torkamani 2025), k = Base odd, with
// Lap(Scale) on each node.
//
// A node of level j holds k^j rewards, those of (m·k^j, (m+1)·k^j]. The sum of the first t is
// written with the balanced digits of t, −(k−1)/2 to (k−1)/2: a positive digit adds as many nodes
// of its level, a negative one takes as many away again. A reward is in one node of each of the h
// levels, h the smallest with (k^h−1)/2 ≥ Horizon, so that its loss is h Laplace releases:
// h/Scale-DP. It may be that the rewards are chosen after the releases before them. A release
// before a reward has as many of the reward's nodes with a plus as with a minus (t = 2 in base 3 is
// (0,3] less (2,3], both with reward 3), a release after it one more with a plus. So moving the
// noise of all its nodes by the change of the reward leaves every release as it was, earlier ones
// too, with a density that is at most e^{h/Scale} apart.
//
// At Horizon 10⁶ and ε = 1 the binary tree has mean variance 7908; the 19-ary one has 1143.
type KAry struct {
	Scale   float64
	Base    int
	Horizon int
}

// SquareRoot releases every running sum of a slot of at most Horizon rewards with the noise Cz,
// where C is the square root of the matrix of prefix sums, c_0 = 1, c_k = c_{k−1}(2k−1)/(2k), and z
// are independent N(0, Sigma²) (Fichtenberger, Henzinger and Upadhyay 2023). That is C times the
// Gaussian mechanism on Cx, whose sensitivity to one reward is ‖Ce_1‖: ρ = ‖Ce_1‖²/(2·Sigma²), also
// when rewards depend on releases (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1).
// Among Toeplitz factorisations its largest variance is the least (Dvijotham, McMahan, Pillutla,
// Steinke and Thakurta 2024, for the limit).
//
// All of z is needed for ever, so Horizon is at most MaxSquareRoot.
type SquareRoot struct {
	Sigma   float64
	Horizon int
}

// MaxSquareRoot is the largest horizon of SquareRoot. BLT has nearly its variance with a few
// numbers of memory.
const MaxSquareRoot = 1 << 20

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

func (KAry) Kind() string       { return "kary" }
func (SquareRoot) Kind() string { return "sqrt" }
func (BLT) Kind() string        { return "blt" }

func (KAry) Continual() bool       { return true }
func (SquareRoot) Continual() bool { return true }
func (BLT) Continual() bool        { return true }

// MaxBase is the largest base of KAry.
const MaxBase = 1023

// Validate accepts 0 ≤ Scale < ∞, an odd Base from 3 to MaxBase and Horizon ≥ 1.
func (m KAry) Validate() error {
	var base error
	if m.Base < 3 || m.Base > MaxBase || m.Base%2 == 0 {
		base = fmt.Errorf("mechanism kary: base is %d: it must be odd, from 3 to %d", m.Base, MaxBase)
	}
	return errors.Join(scale("kary", "scale", m.Scale), base, checkHorizon("kary", m.Horizon, math.MaxInt))
}

// Validate accepts 0 ≤ Sigma < ∞ and 1 ≤ Horizon ≤ MaxSquareRoot.
func (m SquareRoot) Validate() error {
	return errors.Join(scale("sqrt", "sigma", m.Sigma), checkHorizon("sqrt", m.Horizon, MaxSquareRoot))
}

// Validate accepts 0 ≤ Sigma < ∞, Horizon ≥ 1 and buffers as BLT says, one at least, whose inverse
// is stable: Σ Weight/(1+Decay) < 1.
func (m BLT) Validate() error {
	err := errors.Join(scale("blt", "sigma", m.Sigma), checkHorizon("blt", m.Horizon, math.MaxInt))
	b, last, unstable := m.buffers(), 1.0, 0.0
	if b == 0 {
		return errors.Join(err, errors.New("mechanism blt: it has no buffers: it must have at least one"))
	}
	for j, d := range m.Decay {
		w := m.Weight[j]
		switch {
		case j >= b && (d != 0 || w != 0):
			return errors.Join(err, fmt.Errorf("mechanism blt: buffer %d has decay %v and weight "+
				"%v after an empty one: both must be 0", j, d, w))
		case j >= b:
		case !(d > 0 && d < last):
			return errors.Join(err, fmt.Errorf("mechanism blt: decay %d is %v: it must be above "+
				"0 and below %v", j, d, last))
		case !(w > 0 && w <= math.MaxFloat64):
			return errors.Join(err, fmt.Errorf("mechanism blt: weight %d is %v: it must be "+
				"positive and finite", j, w))
		default:
			last = d
			unstable += w / (1 + d)
		}
	}
	if !(unstable < 1) {
		err = errors.Join(err, fmt.Errorf("mechanism blt: the weights' sum of w/(1+d) is %v: it "+
			"must be below 1", unstable))
	}
	return err
}

func checkHorizon(kind string, horizon, most int) error {
	switch {
	case horizon < 1:
		return fmt.Errorf("mechanism %s: horizon is %d: it must be at least 1", kind, horizon)
	case horizon > most:
		return fmt.Errorf("mechanism %s: horizon is %d: it must be at most %d, since all its "+
			"noise is kept (use blt)", kind, horizon, most)
	}
	return nil
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

// Loss is that of one Laplace release a level.
func (m KAry) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLevels(m.Scale, m.Levels())
}

// Loss is that of a Gaussian release of sensitivity ‖Ce_1‖.
func (m SquareRoot) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(rootNorm2(m.Horizon), many), squareDown(m.Sigma)))
}

// Loss is that of a Gaussian release of sensitivity ‖Ce_1‖.
func (m BLT) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(m.sensitivity2(), many), squareDown(m.Sigma)))
}

// Levels is the number of nodes that a reward is in: the smallest h with (Base^h−1)/2 ≥ Horizon.
func (m KAry) Levels() int {
	k, half := uint64(m.Base), uint64(m.Base/2)
	h := 0
	for reach := uint64(0); reach < uint64(m.Horizon); h++ { // reach is (k^h−1)/2
		if reach > (math.MaxUint64-half)/k {
			return h + 1
		}
		reach = reach*k + half
	}
	return h
}

// Nodes is how many nodes the sum of the first t rewards is made of: the sum of the absolute values
// of t's balanced digits.
func (m KAry) Nodes(t int) int {
	k, half := uint64(m.Base), uint64(m.Base/2)
	sum := 0
	for u := uint64(t); u > 0; {
		d := int((u+half)%k) - int(half)
		u = (u + half) / k
		sum += max(d, -d)
	}
	return sum
}

// MaxNodes is the most nodes that any of the first Horizon sums is made of.
func (m KAry) MaxNodes() int {
	k, half, h := m.Base, m.Base/2, m.Levels()
	digits := make([]int, h)
	for j, u := 0, uint64(m.Horizon); j < h; j++ {
		digits[j] = int((u+uint64(half))%uint64(k)) - half
		u = (u + uint64(half)) / uint64(k)
	}
	// Balanced numbers are ordered as their digits are, the highest first. So a t below Horizon has
	// a highest digit in which it differs, and is smaller there; the digits below are free.
	best, above, leading := 0, 0, true
	for j := h - 1; j >= 0; j-- {
		d := digits[j]
		free := j * half
		if leading {
			if d > 0 {
				best = max(best, d-1+free)
			}
		} else if d > -half {
			best = max(best, above+max(half, d-1)+free)
		}
		above += max(d, -d)
		leading = leading && d == 0
	}
	return max(best, above)
}

// Variance is that of the noise in the sum of the first t rewards.
func (m KAry) Variance(t int) float64 { return 2 * float64(m.Scale*m.Scale) * float64(m.Nodes(t)) }

// MaxVariance is the largest variance of the noise in a sum.
func (m KAry) MaxVariance() float64 { return 2 * float64(m.Scale*m.Scale) * float64(m.MaxNodes()) }

// MeanVariance is the variance of the noise in a sum, on average over the first Horizon.
func (m KAry) MeanVariance() float64 {
	k, half := uint64(m.Base), uint64(m.Base/2)
	// Digits of level j go 0, 1, …, half, −half, …, −1 and again, each for k^j successive t, but
	// that 0 comes with only its last (k^j+1)/2 at first, t = 0 among them.
	below := func(q uint64) float64 { // Σ of the first q absolute digits
		r := q % k
		part := r * (r - min(r, 1)) / 2
		if r > half+1 { // r−1 > half: Σ_{i≤half} i + Σ_{half<i<r} (k−i)
			s := k - r + 1 // the last one
			part = half*(half+1)/2 + (half+s)*(half-s+1)/2
		}
		return float64(float64(q/k)*float64(half*(half+1))) + float64(part)
	}
	digit := func(q uint64) float64 {
		r := q % k
		return float64(min(r, k-r))
	}
	sum, width := 0.0, uint64(1)
	for range m.Levels() {
		u := uint64(m.Horizon) + (width-1)/2 // t+(k^j−1)/2 at the last t
		q := u / width
		sum += float64(below(q)*float64(width)) + float64(digit(q)*float64(u%width+1))
		width *= k
	}
	return 2 * float64(m.Scale*m.Scale) * sum / float64(m.Horizon)
}

// Tail of the noise in any running sum, which is at most MaxNodes Laplaces: see Tree.Tail.
func (m KAry) Tail() Tail {
	return Tail{Sigma: m.Scale * math.Sqrt(2*float64(m.MaxNodes())), H: m.Scale}
}

// BestBase is the base from 3 to 255 at which the ε-DP k-ary tree of this horizon has the least
// cost, such as KAry.MaxVariance or KAry.MeanVariance. The cost is asked about trees with ε = 1.
func BestBase(horizon int, cost func(KAry) float64) int {
	best, least := 3, math.Inf(1)
	for k := 3; k <= 255; k += 2 {
		m := NewKAry(1, k, horizon)
		if c := cost(m); c < least {
			best, least = k, c
		}
	}
	return best
}

// NewKAry is the tree of this base that is epsilon-DP: Scale is Levels/ε.
func NewKAry(epsilon float64, base, horizon int) KAry {
	m := KAry{Base: base, Horizon: horizon}
	if m.Validate() == nil {
		m.Scale = float64(m.Levels()) / epsilon
	}
	return m
}

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

// Variance is that of the noise in the sum of the first t rewards: Sigma²·Σ_{k<t} c_k².
func (m SquareRoot) Variance(t int) float64 { return float64(m.Sigma*m.Sigma) * rootNorm2(t) }

// MaxVariance is the largest variance of the noise in a sum, the last one's.
func (m SquareRoot) MaxVariance() float64 { return m.Variance(m.Horizon) }

// Tail of the noise in any running sum, by the largest variance.
func (m SquareRoot) Tail() Tail { return Tail{Sigma: math.Sqrt(m.MaxVariance())} }

// sensitivity2 is ‖Ce_1‖² = 1 + Σ_ij w_i w_j (1−(d_i d_j)^{n−1})/(1−d_i d_j).
func (m BLT) sensitivity2() float64 {
	b := m.buffers()
	return 1 + squares(m.Weight[:b], m.Decay[:b], float64(m.Horizon-1))
}

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

// Variance is that of the noise in the sum of the first t rewards: Sigma²·Σ_{k<t} b_k², where b are
// the coefficients of AC⁻¹.
//
// With λ for 1/x, the series of C is 1 + Σ_j w_j/(λ−d_j) = Π(λ−r_j)/Π(λ−d_j). Its roots r_j lie one
// between each two decays and one below all, since it falls from +∞ to −∞ in between. So AC⁻¹ is
// Π(1−d_j x)/((1−x)Π(1−r_j x)), and b_k = β_0 + Σ_j β_j r_j^k.
func (m BLT) Variance(t int) float64 {
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
func (m BLT) MaxVariance() float64 { return m.Variance(m.Horizon) }

// Tail of the noise in any running sum, by the largest variance.
func (m BLT) Tail() Tail { return Tail{Sigma: math.Sqrt(m.MaxVariance())} }

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

func (m KAry) String() string {
	return fmt.Sprintf("kary(scale=%s,base=%d,horizon=%d)", number(m.Scale), m.Base, m.Horizon)
}
func (m SquareRoot) String() string {
	return fmt.Sprintf("sqrt(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}
func (m BLT) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "blt(sigma=%s,horizon=%d", number(m.Sigma), m.Horizon)
	for j := range m.buffers() {
		fmt.Fprintf(&s, ",%s:%s", number(m.Decay[j]), number(m.Weight[j]))
	}
	return s.String() + ")"
}

// MarshalJSON writes {"mechanism":"kary","scale":5,"base":19,"horizon":1000000}.
func (m KAry) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Scale: &m.Scale, Base: &m.Base, Horizon: &m.Horizon})
}

// MarshalJSON writes {"mechanism":"sqrt","sigma":2,"horizon":1000}.
func (m SquareRoot) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Sigma, Horizon: &m.Horizon})
}

// MarshalJSON writes
// {"mechanism":"blt","sigma":2,"horizon":1000,"decay":[0.99,0.5],"weight":[0.1,0.3]}.
func (m BLT) MarshalJSON() ([]byte, error) {
	b := m.buffers()
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Sigma, Horizon: &m.Horizon,
		Decay: m.Decay[:b], Weight: m.Weight[:b]})
}

// newBLT takes the fields of a file.
func newBLT(sigma float64, horizon int, decay, weight []float64) (BLT, error) {
	m := BLT{Sigma: sigma, Horizon: horizon}
	if len(decay) != len(weight) || len(decay) > Buffers {
		return BLT{}, fmt.Errorf("mechanism blt: there are %d decays and %d weights: there must "+
			"be as many, at most %d", len(decay), len(weight), Buffers)
	}
	copy(m.Decay[:], decay)
	copy(m.Weight[:], weight)
	if m.buffers() < len(decay) {
		return BLT{}, fmt.Errorf("mechanism blt: buffer %d is empty: its decay and weight must "+
			"be positive", m.buffers())
	}
	return m, nil
}
