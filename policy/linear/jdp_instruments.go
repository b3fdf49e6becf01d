package linear

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/privacy"
)

// JDPInstruments plays the best estimate from disjoint segments under joint differential privacy, as JDPGreedy, and
// releases less of early ones: d numbers of an instrument in the place of the d(d+3)/2 of a Gram matrix. Contexts
// and rewards are both private.
//
// A release need not be of Σ a·r. With any z(a), ‖z‖₂ ≤ 1, of the vector a that was played, Σ z·r = Mθ + chance, M = Σ z·aᵀ:
// z is an instrument, M is not released, and its expectation stands in for it. Greedy needs to know θ across
// u = θ̂/‖θ̂‖ alone, so z = a_⊥/‖a_⊥‖, a_⊥ = a − ⟨u,a⟩u. And of a vector in the unit ball noise with density
// ∝ exp(−‖v‖₂/b) is pure ε-DP, and has less variance than Gaussian noise in few dimensions: at (1, 10⁻⁶), d = 5,
// √6·2 a coordinate for 4.2·2 (privacy.VectorLaplace).
//
// # Segments
//
// The first has First rounds, others end when all rounds have grown by Growth. All follows from counts. In
// the first it plays argmax_k |a_kj|, j by turns, and u = 0. Segments that begin before 4dσ² rounds release
// Σ z(r−p), p = ⟨θ̂,a⟩ cut to ±½, which is z(r−p)/1.5 in the unit ball; later ones Σ aaᵀ and Σ a·r
// (privacy.GramLaplace, of deviation σ): there chance has as much to say as noise.
//
// # Estimate
//
// θ ~ N(0, I/d) at first; precision H. A release y ≈ M(θ−θ̂), of covariance V, makes H + MᵀV⁻¹M of H, and θ̂ moves by
// H⁻¹MᵀV⁻¹y. Of n rounds of instruments, with r directions across u, P = I − uuᵀ, (d and I in the first segment)
//
//	M = m·P,  m = nκ/r,   V = (n/2r + (d+1)b²·1.5² + (0.3m)²·tr H⁻¹)·P:
//
// κ = E‖a_⊥‖ of the best of K vectors that are uniform on the sphere, by K and d (1 in the first), and 0.3 is what is
// not known of M, in the place of a release of it. What is left of it in y is only of the error, p having taken
// θ̂'s part, so that a wrong M makes it learn more slowly or faster, and not wrongly, up to a factor of two. Of Grams, G̃₊ without
// eigenvalues below 0, M = G̃₊, V = G̃₊/2 + σ²(1 + ‖θ̂‖²/2)·I, y = Σ a·r − G̃₊θ̂. Before the first Gram H is divided
// by 10: it was made of an M that was assumed. It plays argmax ⟨θ̂,a⟩ + Bonus·√(aᵀH⁻¹a).
//
// # Guarantee
//
// Joint DP at the budget, for replacing a round's context and reward by others. A record is in one release, of its
// segment; segments end by counts; z, p and what is played are functions of the record's own context and of
// releases of earlier segments. So it is HistogramTS's proof, of other statistics: z(r−p)/1.5 is in the unit
// ball whatever the releases were, the curator seeing to ‖z‖ ≤ 1 and clipping (r−p)/1.5 to [−1,1]. Both laws are pure: it is joint
// ε-DP, with δ = 0.
//
// # Regret
//
// None proved: all is measured (docs/contextual.md). M is assumed, and where contexts are the same in each round
// greedy may be wrong for good.
type JDPInstruments struct {
	dim  int
	o    InstrumentOptions
	pure privacy.VectorLaplace
	gram privacy.GramLaplace

	kappa float64 // κ
	grams float64 // from how many rounds on segments release Grams

	t, start, end int // rounds played, and those at which the open segment begins and ends
	inGrams       bool

	h       *mat.SymDense
	inverse []float64 // H⁻¹, row by row
	theta   []float64
	u       []float64
	y, move []float64 // scratch
}

// InstrumentOptions are the parameters of JDPInstruments.
type InstrumentOptions struct {
	First  int     // rounds of the first segment, at least 1, or 0 for ⌈8d(1 + 1/ε)⌉
	Growth float64 // of the rounds at a segment's end, from 1.01 to 100
	Bonus  float64 // of a deviation, beside the estimate, from 0 to 10
}

const (
	reach   = 0.5 // of a prediction of what a reward is
	unknown = 0.3 // a deviation of M, in parts of it
	doubt   = 0.1 // what is left of H when Grams begin

	parallel = 1e-200 // ‖a_⊥‖² of a vector along u. Less may have lost digits, and would not be made of length 1
)

// NewJDPInstruments returns JDPInstruments for up to arms actions in ℝ^dim in a round, dim at least 2. The budget is
// met by an ε that implies it, as privacy.LaplaceScale has it, or None for one segment of instruments, and Grams
// after it, without noise.
func NewJDPInstruments(dim, arms int, b privacy.Budget, o InstrumentOptions) (*JDPInstruments, error) {
	switch {
	case dim < 2 || dim > maxDim:
		return nil, fmt.Errorf("jdp-instruments: dim is %d, must be between 2 and %d", dim, maxDim)
	case arms < 1:
		return nil, fmt.Errorf("jdp-instruments: arms is %d, must be at least 1", arms)
	case o.First < 0 || o.First > math.MaxInt32:
		return nil, fmt.Errorf("jdp-instruments: first is %d, must be from 0 to %d", o.First, math.MaxInt32)
	case !(o.Growth >= 1.01 && o.Growth <= 100):
		return nil, fmt.Errorf("jdp-instruments: growth is %v, must be from 1.01 to 100", o.Growth)
	case !(o.Bonus >= 0 && o.Bonus <= 10):
		return nil, fmt.Errorf("jdp-instruments: bonus is %v, must be from 0 to 10", o.Bonus)
	}
	pure, err := privacy.NewVectorLaplace(b)
	if err != nil {
		return nil, fmt.Errorf("jdp-instruments: %w", err)
	}
	gram, err := privacy.NewGramLaplace(b)
	if err != nil {
		return nil, fmt.Errorf("jdp-instruments: %w", err)
	}
	d := float64(dim)
	first, grams := float64(8*d)*(1+pure.Scale/2), float64(4*d)*gram.Variance(dim)
	if !(first < math.MaxInt32 && grams < math.MaxInt32) {
		return nil, fmt.Errorf("jdp-instruments: budget is %v: its noise is too large to learn", b)
	}
	if o.First == 0 {
		o.First = int(math.Ceil(first))
	}
	p := &JDPInstruments{dim: dim, o: o, pure: pure, gram: gram, kappa: across(dim, arms), grams: grams,
		end: o.First, h: mat.NewSymDense(dim, nil), inverse: make([]float64, dim*dim),
		theta: make([]float64, dim), u: make([]float64, dim), y: make([]float64, dim), move: make([]float64, dim)}
	for i := range dim {
		p.h.SetSym(i, i, d)
	}
	p.invert()
	return p, nil
}

// across is κ = E sin φ, φ the angle of the best of k vectors that are uniform on the sphere of ℝ^d. The angle of one,
// to the worst direction, has density ∝ sin^{d−2}, F of it, and the best has F^k.
func across(d, k int) (mean float64) {
	var sin, density [1 << 8]float64
	var all, f, below float64
	for i := range sin {
		sin[i] = math.Sin((float64(i) + 0.5) * math.Pi / float64(len(sin)))
		density[i] = math.Pow(sin[i], float64(d-2))
		all += density[i]
	}
	for i, x := range sin {
		f += density[i]
		up := math.Pow(min(1, f/all), float64(k))
		mean += float64((up - below) * x)
		below = up
	}
	return mean
}

// Mechanism is that of the open segment.
func (p *JDPInstruments) Mechanism() privacy.Mechanism {
	if p.inGrams {
		return p.gram
	}
	return p.pure
}

// Slots is 1: a segment is released and emptied before the next.
func (p *JDPInstruments) Slots() int { return 1 }

// Due is 0 when a segment is full.
func (p *JDPInstruments) Due() int {
	if p.t >= p.end {
		return 0
	}
	return -1
}

// Learn takes a segment's release.
func (p *JDPInstruments) Learn(released privacy.ReleasedVector) {
	switch d := p.dim; {
	case p.inGrams && released.Len() == d*(d+3)/2:
		p.learnGram(released)
	case !p.inGrams && released.Len() == d:
		p.learnInstrument(released)
	}
	p.start = p.t
	p.end = p.t + int(min(math.Ceil(float64(p.t)*(p.o.Growth-1)), float64(math.MaxInt/2-p.t)))
	if !p.inGrams && float64(p.t) >= p.grams {
		p.inGrams = true
		p.h.ScaleSym(doubt, p.h)
	}
	p.invert()
	var q float64
	for _, x := range p.theta {
		q += float64(x * x)
	}
	for i, x := range p.theta {
		p.u[i] = 0
		if q > 0 {
			p.u[i] = x / math.Sqrt(q)
		}
	}
}

func (p *JDPInstruments) learnInstrument(released privacy.ReleasedVector) {
	d, n := float64(p.dim), float64(released.N())
	r, kappa, width := d-1, p.kappa, 1+reach
	if p.start == 0 {
		r, kappa, width = d, 1, 1
	}
	var trace, along float64
	for i := range p.dim {
		trace += p.inverse[i*p.dim+i]
		p.y[i] = float64(width * released.At(i))
		along += float64(p.u[i] * p.y[i])
	}
	m, b := n*kappa/r, float64(width*p.pure.Scale)
	v := n/(2*r) + float64((d+1)*float64(b*b)) + float64(float64(unknown*m)*float64(unknown*m)*trace)
	for i, x := range p.u {
		p.move[i] = float64(m/v) * (p.y[i] - float64(along*x))
		for j := i; j < p.dim; j++ {
			more := -float64(x * p.u[j])
			if i == j {
				more++
			}
			p.h.SetSym(i, j, p.h.At(i, j)+float64(m*m/v*more))
		}
	}
	p.step()
}

func (p *JDPInstruments) learnGram(released privacy.ReleasedVector) {
	s := newSums(p.dim)
	s.add(released, 1)
	var e mat.EigenSym
	if !e.Factorize(s.gram, true) {
		return
	}
	var q mat.Dense
	e.VectorsTo(&q)
	var long float64
	for _, x := range p.theta {
		long += float64(x * x)
	}
	noise := float64(p.gram.Variance(p.dim) * (1 + long/2))
	clear(p.move)
	for k, g := range e.Values(nil) {
		if !(g > 0) {
			continue
		}
		var y float64 // along this direction
		for i, x := range p.theta {
			y += float64(q.At(i, k) * (s.b[i] - float64(g*x)))
		}
		v := g/2 + noise
		for i := range p.dim {
			p.move[i] += float64(q.At(i, k) * float64(g/v*y))
			for j := i; j < p.dim; j++ {
				p.h.SetSym(i, j, p.h.At(i, j)+float64(g*g/v*float64(q.At(i, k)*q.At(j, k))))
			}
		}
	}
	p.step()
}

// step moves θ̂ by H⁻¹MᵀV⁻¹y, of which MᵀV⁻¹y is in move.
func (p *JDPInstruments) step() {
	p.invert()
	for i := range p.theta {
		for j, x := range p.move {
			p.theta[i] += float64(p.inverse[i*p.dim+j] * x)
		}
	}
}

// invert makes H⁻¹.
func (p *JDPInstruments) invert() {
	var c mat.Cholesky
	var inverse mat.SymDense
	if !c.Factorize(p.h) || c.InverseTo(&inverse) != nil {
		return
	}
	for i := range p.dim {
		for j := range p.dim {
			p.inverse[i*p.dim+j] = inverse.At(i, j)
		}
	}
}

// Choose plays the action of the best estimate and bonus, the first of equals; in the first segment that with the
// largest of a component.
func (p *JDPInstruments) Choose(actions []float64) Choice {
	best, top, d := 0, math.Inf(-1), p.dim
	for k := 0; len(actions) >= d; k++ {
		a := actions[:d]
		score := math.Abs(a[p.t%d])
		if p.start > 0 {
			score = p.score(a)
		}
		if score > top {
			best, top = k, score
		}
		actions = actions[d:]
	}
	p.t++
	return Choice{Action: best}
}

func (p *JDPInstruments) score(a []float64) (s float64) {
	var q float64
	for i, x := range a {
		s += float64(p.theta[i] * x)
		if p.o.Bonus > 0 {
			var z float64
			for j, y := range p.inverse[i*p.dim:][:p.dim] {
				z += float64(y * a[j])
			}
			q += float64(x * z)
		}
	}
	return s + float64(p.o.Bonus*math.Sqrt(max(0, q)))
}

// Instrument implements Instrumental.
func (p *JDPInstruments) Instrument(to, a []float64) (predicted, width float64) {
	if p.inGrams {
		copy(to, a)
		return 0, 1
	}
	var along, q float64
	for i, x := range a {
		along += float64(p.u[i] * x)
		predicted += float64(p.theta[i] * x)
	}
	for i, x := range a {
		to[i] = x - float64(along*p.u[i])
		q += float64(to[i] * to[i])
	}
	for i := range to {
		if q > parallel {
			to[i] /= math.Sqrt(q)
		} else {
			to[i] = 0
		}
	}
	if p.start == 0 {
		return 0, 1
	}
	return max(-reach, min(reach, predicted)), 1 + reach
}

// Estimate is the estimate of θ at the last release, the caller's to keep. How far it may be off is not known, and 0.
func (p *JDPInstruments) Estimate() (theta []float64, radius float64) {
	return slices.Clone(p.theta), 0
}

var _ Instrumental = (*JDPInstruments)(nil)
