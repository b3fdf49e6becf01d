package privacy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
)

// A PLD bounds what a fixed sequence of mechanisms loses together, by numbers instead of formulas:
// it is the law of the privacy loss log(P/Q) under P on a grid, for a pair (P,Q) of laws that
// dominates the mechanisms, and for (Q,P). Composition convolves the laws (Sommer, Meiser and
// Mohammadi 2019; Koskela, Jälkö and Honkela 2020), so nothing is lost between mechanisms of
// different kinds, where a Loss keeps the best of currencies that each fit some.
//
// It is never below the truth. A pair on the grid dominates the mechanism's: a loss between two
// points of the grid is split over both such that P and Q keep their masses, of which the true pair
// is a post-processing (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022), or it is rounded up.
// Tails are moved up, those above the grid to infinity. The error of the Fourier transforms is
// bounded (see convolve) and added to the mass at infinity, as is every rounding. It is about
// 10⁻¹¹ for each composition; Epsilon is +Inf for a δ below what they add up to.
//
// A composition of dominating pairs dominates the adaptive composition of their mechanisms (Zhu,
// Dong and Wang 2022, Theorem 10): the data and the question to the next mechanism may depend on
// what the ones before released. But which mechanisms there are, with which noise and how many, is
// fixed in advance. A Ledger is told of its releases one by one, and they may be chosen by what
// was released: its totals are a Loss, and no PLD may stand in their place.
type PLD struct {
	step        float64
	there, back losses
}

// losses is a measure on the multiples of a step, from·step on, and at infinity.
type losses struct {
	from int
	mass []float64
	inf  float64
}

// ErrNoPLD is the error where only a bound in other currencies is known of a mechanism.
var ErrNoPLD = errors.New("no law of its privacy loss is known")

const (
	// maxCells is how many points of the grid there may be.
	maxCells = 1 << 20
	// lost is how much mass sampling may move to infinity, and composition at least.
	lost = 1e-17
	// maxValues is how many values noise may have.
	maxValues = 1 << 24
	// fine is how many parts a step of a continuous law has, at least.
	fine = 4
)

// NewPLD is the loss of one release of a reward by a mechanism, on a grid of this step: from 1e-6
// to 1. A smaller step is tighter and takes longer; a thousandth of the ε in question does. It
// knows Laplace, Gaussian, Aggregated and ShuffledCount at full strength, and Clones at that of
// shuffledPLD. For others that are ε-DP it is that of randomised response, which dominates them all
// (Kairouz, Oh and Viswanath 2015), and for those that are μ-Gaussian DP the Gaussian pair's; the rest
// is ErrNoPLD.
func NewPLD(m Mechanism, step float64) (PLD, error) {
	if err := checkStep(step); err != nil {
		return PLD{}, err
	}
	if err := m.Validate(); err != nil {
		return PLD{}, fmt.Errorf("privacy loss: %w", err)
	}
	switch m := m.(type) {
	case Laplace:
		return symmetric(step, m.String(), func() (losses, error) {
			return laplacePLD(divUp(1, m.Scale), step)
		})
	case Gaussian:
		return symmetric(step, m.String(), func() (losses, error) {
			return gaussianPLD(divUp(1, m.Sigma), step)
		})
	case Aggregated:
		if m.Num > 0 {
			return symmetric(step, "aggregated", func() (losses, error) { return aggregatedPLD(m, step) })
		}
	case Clones:
		if e0 := m.Inner.Loss().Pure(); e0 <= math.MaxFloat64 {
			return shuffledPLD(m.Inner.Users, e0, step)
		}
	case ShuffledCount:
		return shuffledCountPLD(m, step)
	}
	l := m.Loss()
	if l.t != nil && l.t.approx() && l.t.pure == 0 && l.t.rho == 0 && !l.Infinite() {
		return approxPLD(l.t.epsilon, l.t.delta, step)
	}
	if e := l.Pure(); e > 0 && e <= math.MaxFloat64 {
		return approxPLD(e, 0, step)
	}
	if l.t != nil && !l.t.approx() && l.t.mu2 > 0 && l.t.mu2 <= math.MaxFloat64 {
		return symmetric(step, m.Kind(), func() (losses, error) { return gaussianPLD(sqrtUp(l.t.mu2), step) })
	}
	return PLD{}, fmt.Errorf("privacy loss of %v: %w", m, ErrNoPLD)
}

// approxPLD is that of anything that is (ε,δ)-DP: with probability δ it tells all, else it is
// randomised response (Kairouz, Oh and Viswanath 2015).
func approxPLD(epsilon, delta, step float64) (PLD, error) {
	if err := checkStep(step); err != nil {
		return PLD{}, err
	}
	if !(epsilon >= 0 && epsilon <= math.MaxFloat64 && delta >= 0 && delta < 1) {
		return PLD{}, fmt.Errorf("privacy loss: ε is %v and δ is %v: ε must be finite and at least "+
			"0, and δ in [0, 1)", epsilon, delta)
	}
	return symmetric(step, "(ε,δ)", func() (losses, error) {
		g, err := newGrid(-epsilon, epsilon, step)
		if err != nil {
			return losses{}, err
		}
		q := 1 / (1 + math.Exp(-epsilon))
		g.split(epsilon, raised(float64((1-delta)*q), guard))
		g.split(-epsilon, raised(float64((1-delta)*(1/(1+math.Exp(epsilon)))), guard))
		g.inf = delta
		return g.losses, nil
	})
}

func checkStep(step float64) error {
	if !(step >= 1e-6 && step <= 1) {
		return fmt.Errorf("privacy loss: step is %v, must be from 1e-6 to 1", step)
	}
	return nil
}

// symmetric is a PLD whose pairs are one another's mirror images.
func symmetric(step float64, what string, make func() (losses, error)) (PLD, error) {
	l, err := make()
	if err != nil {
		return PLD{}, fmt.Errorf("privacy loss of %s: %w", what, err)
	}
	return PLD{step, l, l}, nil
}

// A grid is a measure that is being made.
type grid struct {
	losses
	step float64
}

func newGrid(lo, hi, step float64) (*grid, error) {
	from, to := math.Floor(lo/step)-1, math.Ceil(hi/step)+1
	if !(to-from < maxCells) {
		return nil, fmt.Errorf("losses from %.3g to %.3g are too many steps of %v: at most %d",
			lo, hi, step, maxCells)
	}
	return &grid{losses{from: int(from), mass: make([]float64, int(to-from)+1)}, step}, nil
}

// split adds P's mass at a loss. The share w of the upper point is that for which Q keeps its mass,
// w = (1 − e^{−x})/(1 − e^{−step}) with x the distance from the lower one.
func (g *grid) split(loss, mass float64) {
	at := math.Floor(loss / g.step)
	x := loss - float64(at*g.step)
	// The distance is raised by what the quotient, the product and the difference round.
	x = max(0, x) + float64(4e-16*(math.Abs(loss)+g.step))
	i := int(at) - g.from
	switch {
	case i < 0:
		g.mass[0] += mass
		return
	case i+1 >= len(g.mass):
		g.inf += mass
		return
	}
	w := raised(math.Expm1(-x)/math.Expm1(-g.step), guard)
	if w >= 1 { // by rounding, or as the loss is on the next point but for it
		g.mass[i+1] += mass
		return
	}
	g.mass[i] += raised(mass*(1-w), ulps)
	g.mass[i+1] += raised(mass*w, guard)
}

// parts cuts [lo, hi] at the points of the grid, and each step into so many parts, from below.
func (g *grid) parts(lo, hi float64, fine int, do func(from, to float64)) {
	width := g.step / float64(fine)
	from := lo
	for i := math.Floor(lo/width) + 1; from < hi; i++ {
		to := min(hi, float64(i*width))
		if to > from {
			do(from, to)
			from = to
		}
	}
}

// laplacePLD is that of Lap(b) and of Lap(b) + 1, with x = 1/b: losses are ±x with probabilities
// 1/2 and e^{−x}/2, and between them their density is e^{−(x−y)/2}/4.
//
// Each part is put at its mean loss or above, which is within w²/24 of its middle: by Jensen its
// mass under Q is then no more than it was, and so is dominated when it is split over the ends of
// the step that it is in.
func laplacePLD(x, step float64) (losses, error) {
	if !(x <= math.MaxFloat64) {
		return losses{}, errors.New("there is no noise")
	}
	g, err := newGrid(-x, x, step)
	if err != nil {
		return losses{}, err
	}
	g.split(x, 0.5)
	g.split(-x, raised(math.Exp(-x)/2, guard))
	g.parts(-x, x, fine, func(from, to float64) {
		w := to - from
		mass := math.Exp(-(x-to)/2) * -math.Expm1(-w/2) / 2
		mean := from + w/2 + w*w/24 + float64(ulps*x)
		g.split(min(to, mean), raised(mass, many))
	})
	return g.losses, nil
}

// gaussianPLD is that of N(0,1) and N(μ,1): losses are N(μ²/2, μ²). Each part's mass is what two
// tails differ by, each of them rounded up, so that no tail of their sum is below the true one. Its
// mean loss is at most as far above the middle as that of an exponential law with the largest
// logarithmic slope s of the density there, sw²/12.
func gaussianPLD(mu, step float64) (losses, error) {
	if !(mu <= 1e4) {
		return losses{}, fmt.Errorf("μ is %v, must be at most 10^4", mu)
	}
	const reach = 9.5 // beyond it 10⁻²¹
	mean := mu * mu / 2
	lo, hi := mean-float64(reach*mu), mean+float64(reach*mu)
	g, err := newGrid(lo, hi, step)
	if err != nil {
		return losses{}, err
	}
	n := max(fine, math.Ceil(64*step/mu))
	if !((hi-lo)/step*n < 32*maxCells) {
		return losses{}, fmt.Errorf("μ = %v is too small for a step of %v", mu, step)
	}
	tail := func(z float64) float64 {
		return raised(math.Erfc(z/math.Sqrt2)/2, float64(8e-16*(4+float64(z*z))))
	}
	off := ulps * (mean + reach*mu) // what losses round
	above := 1.0
	g.parts(lo, hi, int(n), func(from, to float64) {
		w, z := to-from, (from-mean)/mu
		next := min(above, tail((to-mean-off)/mu))
		at := from + w/2 + float64(w*w/12*max(0, -z)/mu) + off
		g.split(min(to, at), above-next)
		above = next
	})
	g.inf += above
	return g.losses, nil
}

// aggregatedPLD is that of a log-concave law of integers f and of f moved by G: moved by less it
// loses less, at every ε.
func aggregatedPLD(m Aggregated, step float64) (losses, error) {
	x, n := m.noise(), 1
	if m.Trust == TrustSecAgg {
		n = m.Users
	}
	var ratio func(k int64) float64 // log f(k+1)/f(k), k ≥ 0
	var most int64                  // beyond it there is no mass to speak of
	apart := 0.0                    // |log| of how far f may be from what ratio says
	switch m.Noise {
	case NoiseLaplace, NoisePolya:
		most = int64(46*x) + 46
		ratio = func(int64) float64 { return -1 / x }
	case NoiseSkellam:
		variance := x * float64(n)
		most = int64(10*math.Sqrt(variance)) + 60
		if most+m.G > maxValues {
			return losses{}, fmt.Errorf("noise of variance %.3g has too many values", variance)
		}
		r := besselRatios(int(most+m.G), variance)
		ratio = func(k int64) float64 { return r[k] }
	default: // discrete Gaussians; the sum of n is one but for ξ
		if n > 1 && x < 0.25 {
			return losses{}, errors.New("shares of a variance below 1/4")
		}
		variance := x * float64(n)
		apart = gaussianSumXi(x, n)
		most = int64(9.5*math.Sqrt(variance)) + 10
		ratio = func(k int64) float64 { return -(float64(k) + 0.5) / variance }
	}
	if m.G > maxValues || most+m.G > maxValues {
		return losses{}, fmt.Errorf("noise of scale %.3g on integers up to %d has too many values",
			x, m.G)
	}
	return shifted(ratio, most, m.G, apart, step)
}

// besselRatios are log I_{k+1}(v)/I_k(v) for k < n, n at least 10√v, from above by I_{k−1}/I_k = 2k/v +
// I_{k+1}/I_k. A step multiplies the error of the one above it by the square of a ratio, at most
// e^{−2 asinh((k−½)/v)}: from a quarter of n higher up that is by e^{−47} for v ≥ n, and by more
// otherwise. There the ratio begins with its upper bound v/(k+½+√((k+½)²+v²)) (Amos, Mathematics of
// Computation 28, 1974), so that none is above 1. What is kept is 1 less the ratio, which is small where
// v is large and many steps' roundings would add up.
func besselRatios(n int, v float64) []float64 {
	r := make([]float64, n)
	top := n + n/4 + 200
	h := float64(top) + 0.5
	root := math.Hypot(h, v)
	less := (h + float64(h/(root+v)*h)) / (h + root)
	for k := top; k > 0; k-- {
		x := float64(2*k)/v - less
		if less = x / (1 + x); k <= n {
			r[k-1] = math.Log1p(-less)
		}
	}
	return r
}

// shifted is the law of log f(x−g)/f(x) under f(x−g), for a symmetric f given by its ratios.
func shifted(ratio func(k int64) float64, most, shift int64, apart, step float64) (losses, error) {
	// log f, up to a constant, where x or x−g may be
	logf := make([]float64, most+shift+1)
	rounded := 0.0
	for k := range most + shift {
		logf[k+1] = logf[k] + ratio(k)
		rounded = max(rounded, math.Abs(logf[k+1]))
	}
	abs := func(x int64) int64 { return max(x, -x) }
	sum := 1.0
	for _, v := range logf[1 : most+1] {
		sum += 2 * math.Exp(v)
	}
	// each logarithm is a sum of at most so many, each with an ulp of its size
	off := rounded * float64(most+shift) * 0x1p-52
	up := math.Exp(apart+float64(2*off)) + many
	// A tail falls at least as the last ratio says: both tails, under f(x−g).
	last := math.Exp(ratio(most - 1))
	inf := 2 * math.Exp(logf[most]) / sum * last / (1 - last) * up
	// losses fall from x = −∞ on; take those of all x with mass
	lo, hi := 0.0, 0.0
	loss := func(y int64) float64 { // y = x−g
		return logf[min(abs(y), most+shift)] - logf[min(abs(y+shift), most+shift)]
	}
	for y := -most; y <= most; y++ {
		l := loss(y)
		lo, hi = min(lo, l), max(hi, l)
	}
	lo, hi = lo-1e-6-2*apart, hi+1e-6+2*apart+2*off
	g, err := newGrid(max(lo, -60-hi), hi, step)
	if err != nil {
		return losses{}, err
	}
	for y := -most; y <= most; y++ {
		g.split(loss(y)+2*apart+2*off, math.Exp(logf[abs(y)])/sum*up)
	}
	g.inf += inf
	return g.losses, nil
}

// Compose is the loss of both on the same record. The grids must have the same step.
func (p PLD) Compose(q PLD) (PLD, error) {
	if p.step != q.step {
		return PLD{}, fmt.Errorf("privacy loss: grids of steps %v and %v do not compose", p.step, q.step)
	}
	there, err := p.there.convolve(q.there)
	if err != nil {
		return PLD{}, err
	}
	if p.there.same(p.back) && q.there.same(q.back) {
		return PLD{p.step, there, there}, nil
	}
	back, err := p.back.convolve(q.back)
	return PLD{p.step, there, back}, err
}

func (l losses) same(m losses) bool { return &l.mass[0] == &m.mass[0] }

// Times is the loss of n ≥ 1 of them on the same record.
func (p PLD) Times(n int) (PLD, error) {
	if n < 1 {
		return PLD{}, fmt.Errorf("privacy loss: n is %d, must be at least 1", n)
	}
	out := p
	for bit := bits.Len(uint(n)) - 2; bit >= 0; bit-- {
		var err error
		if out, err = out.Compose(out); err != nil {
			return PLD{}, err
		}
		if n>>bit&1 == 0 {
			continue
		}
		if out, err = out.Compose(p); err != nil {
			return PLD{}, err
		}
	}
	return out, nil
}

// transformError bounds, per bit of the length, the error of a Fourier transform relative to its
// norm, in units of 2⁻⁵³: Higham (2002, Theorem 24.2) has 7 with exact roots of unity. Those here
// are sines of angles that are rounded twice, off by up to 4π. Twice that and more.
const transformError = 40

// convolve is the law of the sum of two losses.
//
// Each of three transforms of length n is off by η = 40·2⁻⁵³·log₂n of its norm, so that the result
// is off by 2-norm E ≤ 4η(‖a‖₂‖b‖₁ + ‖b‖₂‖a‖₁), and any sum of its masses by √n·E, which infinity
// is given. So are masses that came out negative.
func (l losses) convolve(m losses) (losses, error) {
	n := len(l.mass) + len(m.mass) - 1
	if n > 2*maxCells {
		return losses{}, fmt.Errorf("privacy loss: more than %d points: take a larger step", maxCells)
	}
	size := 1
	for size < n {
		size *= 2
	}
	transform := fourier.NewFFT(size)
	padded := make([]float64, size)
	forward := func(x []float64) ([]complex128, float64, float64) {
		one, two := 0.0, 0.0
		for _, v := range x {
			one += v
			two += v * v
		}
		clear(padded)
		copy(padded, x)
		return transform.Coefficients(nil, padded), one, math.Sqrt(two)
	}
	a, a1, a2 := forward(l.mass)
	b, b1, b2 := a, a1, a2
	if !l.same(m) {
		b, b1, b2 = forward(m.mass)
	}
	for i := range a {
		a[i] *= b[i]
	}
	out := transform.Sequence(padded, a)[:n]
	for i := range out {
		out[i] = max(0, out[i]) / float64(size) // by a power of two
	}
	eta := transformError * 0x1p-53 * math.Log2(float64(size))
	off := math.Sqrt(float64(size)) * 4 * eta * (a2*b1 + b2*a1)
	inf := raised(l.inf*(b1+m.inf)+m.inf*a1+off, many)
	return losses{l.from + m.from, out, inf}.trimmed(max(lost, off)), nil
}

// trimmed moves the ends of no more than so much mass up: the upper one to infinity.
func (l losses) trimmed(lost float64) losses {
	i, j := 0, len(l.mass)
	for sum := 0.0; j > 1; j-- {
		if sum += l.mass[j-1]; sum > lost {
			break
		}
		l.inf += l.mass[j-1]
	}
	low := 0.0
	for ; i < j-1 && low+l.mass[i] <= lost; i++ {
		low += l.mass[i]
	}
	mass := append([]float64(nil), l.mass[i:j]...)
	mass[0] += low
	return losses{l.from + i, mass, l.inf}
}

// Delta is a δ at which they are (ε,δ)-DP, ε ≥ 0: mass at infinity, and Σ (1 − e^{ε−x})⁺ of the rest.
func (p PLD) Delta(epsilon float64) float64 {
	d := p.there.delta(epsilon, p.step)
	if !p.there.same(p.back) {
		d = max(d, p.back.delta(epsilon, p.step))
	}
	return d
}

func (l losses) delta(epsilon, step float64) float64 {
	sum := 0.0
	for i := len(l.mass) - 1; i >= 0; i-- {
		x := float64(float64(l.from+i)*step) - epsilon
		x += float64(4e-16 * (math.Abs(x) + epsilon))
		if x <= 0 {
			break
		}
		sum += l.mass[i] * -math.Expm1(-x)
	}
	return min(1, raised(sum+l.inf, many))
}

// Epsilon is the smallest ε ≥ 0 for which Delta(ε) ≤ δ; +Inf if there is none.
func (p PLD) Epsilon(delta float64) float64 {
	switch {
	case math.IsNaN(delta) || delta < 0:
		return math.NaN()
	case p.Delta(0) <= delta:
		return 0
	}
	hi := float64(max(p.there.from+len(p.there.mass), p.back.from+len(p.back.mass), 1)) * p.step
	if !(p.Delta(hi) <= delta) {
		return math.Inf(1)
	}
	lo := 0.0
	for hi-lo > 1e-12*hi {
		mid := lo + (hi-lo)/2
		if p.Delta(mid) <= delta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// Sampled is the loss where a record takes part with probability q = rate, independently of the
// others (Poisson sampling), and a neighbour has one record more or less (Zhu, Dong and Wang 2022,
// Proposition 30): of the pairs (M,Q) and (Q,M) with M = (1−q)Q + qP, for a mechanism whose pair
// (P,Q) is that of a record being there or not. If p is a composition, the record takes part in all of
// it or in none; where it is drawn anew for each mechanism, sample these, and compose.
//
// It is never below the truth, for what has been composed too: it is made of the two curves alone
// that a PLD bounds, h(κ) = ∫(P−κQ)⁺ and g(κ) = ∫(Q−κP)⁺, and not of laws of which transforms leave
// but sums of masses. Let there be masses m_i at losses x_i, and m_∞, with h(κ) ≤ m_∞ + Σ m_i(1 −
// κe^{−x_i})⁺. Then for κ ≥ 1−q
//
//	∫(M−κQ)⁺ = q·h((κ−(1−q))/q) ≤ q·m_∞ + Σ (q·m_i + (1−q)m_i·e^{−x_i})(1 − κ/κ_i)⁺
//
// with κ_i = 1−q+q·e^{x_i}: those are the masses at losses log κ_i. Below 1−q it is 1−κ; the bound is a
// line there, that is enough at its end 1−q, and at 0 once a mass at 1−q has made Σ m_i·e^{−x_i} up to
// 1. Where that sum is above 1, which errors of transforms make it as they are multiplied by e^{−x},
// the lowest masses are moved up until it is not: that only raises the bound. And for κ < 1/(1−q)
//
//	∫(Q−κM)⁺ = (1−κ(1−q))·g(κq/(1−κ(1−q))) ≤ m_∞(1−κ(1−q)) + Σ m_i(1 − κ(1−q+q·e^{−x_i}))⁺
//
// with the masses of g's bound: they stay, at the losses −log(1−q+q·e^{−x_i}), infinity at −log(1−q).
func (p PLD) Sampled(rate float64) (PLD, error) {
	if !(rate > 0 && rate <= 1) {
		return PLD{}, fmt.Errorf("privacy loss: rate is %v, must be in (0, 1]", rate)
	}
	if rate == 1 {
		return p, nil
	}
	mixed := func(x float64) float64 { return math.Log1p(float64(rate * math.Expm1(x))) }
	off := 1e-15 + 4e-16/(1-rate) // what mixed rounds
	l := p.there.lifted(p.step)
	there, err := newGrid(math.Log1p(-rate), mixed(float64(l.from+len(l.mass))*p.step), p.step)
	if err != nil {
		return PLD{}, err
	}
	there.inf = rate * l.inf
	missing := 1 + many + float64(len(l.mass))*0x1p-52
	for i, v := range l.mass {
		x := float64(l.from+i) * p.step
		q := v * math.Exp(-x)
		missing -= q
		there.split(mixed(x)+off, raised(float64(rate*v)+float64((1-rate)*q), many))
	}
	there.split(math.Log1p(-rate)+off, max(0, missing)*(1-rate))

	l = p.back
	top := -math.Log1p(-rate) + off
	back, err := newGrid(-mixed(-float64(l.from)*p.step), top, p.step)
	if err != nil {
		return PLD{}, err
	}
	for i, v := range l.mass {
		back.split(-mixed(-float64(l.from+i)*p.step)+off, v)
	}
	back.split(top, l.inf)
	return PLD{p.step, there.losses.trimmed(lost), back.losses.trimmed(lost)}, nil
}

// lifted has its lowest masses in one, so far up that Σ m·e^{−x} is not above 1 by more than 10⁻⁹.
func (l losses) lifted(step float64) losses {
	below := make([]float64, len(l.mass)+1) // added up from below: a difference would lose the lowest
	for i, v := range l.mass {
		below[i+1] = below[i] + v
	}
	at, high := len(l.mass), 0.0
	for ; at > 0; at-- {
		fall := math.Exp(-float64(l.from+at-1) * step)
		if !(high+float64(below[at]*fall) <= 1+1e-9) {
			break
		}
		high += l.mass[at-1] * fall
	}
	if at == 0 || at == len(l.mass) {
		return l
	}
	mass := append([]float64(nil), l.mass[at:]...)
	mass[0] = below[at+1]
	return losses{l.from + at, mass, l.inf}
}
