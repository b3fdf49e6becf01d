package privacy

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Elliptic releases Σ a·r of one slot, over the actions a ∈ ℝ^d that were played and their
// rewards r ∈ [−1,1], with noise of covariance σ²V, V = Σ_a n_a·aaᵀ: independent normal variates
// ξ_a make it σ·Σ_a √n_a·ξ_a·a, on the actions' span, whatever its dimension. The counts n_a are
// part of the mechanism: a slot may have at most n_a rewards of action a, so none of an action
// that is not counted.
//
// Replacing one reward of action b moves the sum by at most 2b. In the norm of V⁺, where the noise
// is round, that is 2‖b‖_{V⁺} ≤ 2g with
//
//	g² = max_b bᵀV⁺b over the actions that are counted,
//
// so a release is the Gaussian mechanism at μ = 2g/σ: 2g²/σ²-zCDP. It is AdaC-GOPE's noise ([Azize
// and Basu 2024, Algorithm 2 and App. E-C]; [Azize 2024, §5.3.2]): with θ̂ = V⁺ Σ a·r and N of
// covariance σ²I, V⁺ of the release has the law of θ̂ + V^{-1/2}N. The sources calibrate σ² to
// d/c_ℓ, the g² of an exact design; here g is that of what was played, so that an approximate
// design, a truncated one or what is left after eliminations cannot cost more than it says.
//
// NewElliptic makes one. It does not change, and is equal to itself and to its copies only.
type Elliptic struct{ e *elliptic }

type elliptic struct {
	sigma float64
	shape *shape
}

// shape is what the noise is shaped by.
type shape struct {
	dim    int
	counts []int       // of all actions of the set
	played []int       // those with a positive count, increasing
	rows   [][]float64 // of those
	rank   int
	g2     float64
	// What Reduced returns.
	coordinates, basis [][]float64
}

// maxActions is the largest number of actions of a set.
const maxActions = 1 << 20

// maxFeature keeps squares of features and sums of them finite.
const maxFeature = 1e100

// maxPlayed keeps counts exact as doubles, and in an int.
const maxPlayed = min(1<<53, math.MaxInt/4)

// NewElliptic returns the mechanism with this σ, finite and at least 0, for slots with at most
// counts[i] rewards of actions[i]. Some count must be positive. The arguments are copied.
func NewElliptic(sigma float64, actions [][]float64, counts []int) (Elliptic, error) {
	if len(actions) != len(counts) {
		return Elliptic{}, fmt.Errorf("mechanism elliptic: %d counts for %d actions, must "+
			"be as many", len(counts), len(actions))
	}
	var played []int
	var rows [][]float64
	for i, n := range counts {
		if n != 0 {
			played, rows = append(played, i), append(rows, actions[i])
		}
	}
	s, err := newShape(len(counts), played, rows, func(i int) int { return counts[played[i]] })
	if err != nil {
		return Elliptic{}, err
	}
	return Elliptic{&elliptic{shape: s}}.WithSigma(sigma)
}

// WithSigma is the mechanism of the same shape with another σ: for a caller that reads G2 and
// calibrates σ to it.
func (m Elliptic) WithSigma(sigma float64) (Elliptic, error) {
	if m.e == nil {
		return Elliptic{}, errNoShape
	}
	if err := scale("elliptic", "sigma", sigma); err != nil {
		return Elliptic{}, err
	}
	return Elliptic{&elliptic{sigma, m.e.shape}}, nil
}

var errNoShape = errors.New("mechanism elliptic: it has no actions: make it with NewElliptic")

// newShape checks and copies the actions that are played, rows[i] with number played[i] of a set of
// this many, and finds g².
func newShape(actions int, played []int, rows [][]float64, count func(i int) int) (*shape, error) {
	switch {
	case actions > maxActions:
		return nil, fmt.Errorf("mechanism elliptic: the number of actions is %d, must be at "+
			"most %d", actions, maxActions)
	case len(rows) == 0:
		return nil, errors.New("mechanism elliptic: all counts are 0: at least one must be positive")
	case len(rows[0]) == 0:
		return nil, fmt.Errorf("mechanism elliptic: action %d has no features, must have at "+
			"least one", played[0])
	}
	s := &shape{dim: len(rows[0]), counts: make([]int, actions), played: played}
	all := make([]float64, 0, len(rows)*s.dim)
	for i, a := range rows {
		n := count(i)
		if n < 1 || n > maxPlayed {
			return nil, fmt.Errorf("mechanism elliptic: the count of action %d is %d, must be "+
				"between 0 and %d", played[i], n, maxPlayed)
		}
		if len(a) != s.dim {
			return nil, fmt.Errorf("mechanism elliptic: action %d has %d features and action %d "+
				"has %d, all must have as many", played[i], len(a), played[0],
				s.dim)
		}
		for j, x := range a {
			if !(math.Abs(x) <= maxFeature) {
				return nil, fmt.Errorf("mechanism elliptic: feature %d of action %d is %v, "+
					"must be finite, at most %g in absolute value", j, played[i], x,
					maxFeature)
			}
		}
		s.counts[played[i]] = n
		all = append(all, a...)
		s.rows = append(s.rows, all[len(all)-s.dim:])
	}
	return s, s.measure()
}

// measure finds the rank of V and g². With W of rows √n_a·a we have V = WᵀW, and n_a·aᵀV⁺a is the
// leverage of row a: the squared norm of its row in an orthonormal basis of W's column space. That
// needs no inverse and does not square the condition number. Leverages are rounded up, and at most 1.
func (s *shape) measure() error {
	m, d := len(s.rows), s.dim
	// A leverage does not change when a coordinate is rescaled, but what is thin does: each
	// is brought to one scale, by powers of two so that nothing is rounded. Otherwise a
	// coordinate in which all is small would look like a direction that is not there, and it
	// is released all the same.
	exponent := make([]int, d)
	none := true
	for j := range d {
		largest := 0.0
		for i, a := range s.rows {
			largest = max(largest, math.Abs(float64(math.Sqrt(float64(s.counts[s.played[i]]))*a[j])))
		}
		_, exponent[j] = math.Frexp(largest)
		none = none && largest == 0
	}
	if none { // the sum is 0 whatever the rewards are
		return nil
	}
	w := mat.NewDense(m, d, nil)
	for i, a := range s.rows {
		root := math.Sqrt(float64(s.counts[s.played[i]]))
		for j, x := range a {
			w.Set(i, j, float64(root*math.Ldexp(x, -exponent[j])))
		}
	}
	var f mat.SVD
	if !f.Factorize(w, mat.SVDThinU) {
		return errors.New("mechanism elliptic: the actions have no singular value decomposition")
	}
	values := f.Values(nil)
	// A direction this thin is there because features are rounded. It is not released: see Reduced.
	thin := float64(values[0] * float64(4*max(m, d)) * 0x1p-52)
	for _, x := range values {
		if x > thin {
			s.rank++
		}
	}
	rounding := 0x1p-49 * values[0] / values[s.rank-1]
	var u mat.Dense
	f.UTo(&u)
	if s.rank < len(values) {
		if !f.Factorize(w, mat.SVDThin) {
			return errors.New("mechanism elliptic: the actions have no singular value decomposition")
		}
		f.UTo(&u)
		s.reduce(&f, &u, exponent)
	}
	for i := range m {
		h := rounding
		for _, x := range u.RawRowView(i)[:s.rank] {
			h += float64(x * x)
		}
		s.g2 = max(s.g2, min(h, 1)/float64(s.counts[s.played[i]]))
	}
	return nil
}

// reduce makes the coordinates, rows of u over √n, and the basis, in the coordinates' own scale.
func (s *shape) reduce(f *mat.SVD, u *mat.Dense, exponent []int) {
	values := f.Values(nil)
	var v mat.Dense
	f.VTo(&v)
	for i := range s.rows {
		row := make([]float64, s.rank)
		root := math.Sqrt(float64(s.counts[s.played[i]]))
		for k := range row {
			row[k] = u.At(i, k) / root
		}
		s.coordinates = append(s.coordinates, row)
	}
	for k := range s.rank {
		row := make([]float64, s.dim)
		for j := range row {
			row[j] = math.Ldexp(float64(values[k]*v.At(j, k)), exponent[j])
		}
		s.basis = append(s.basis, row)
	}
}

// Reduced is how to write the actions that are counted, in their order, where some directions are
// so thin that they are taken for rounding: as combinations of Rank vectors, the basis. They are
// nil where none is. A thin direction has little noise, that of few rewards perhaps, and g² does
// not count it. So who releases adds the noisy sums up in these coordinates, and makes d numbers of
// them at the end: then the direction is not there, not merely small. In them the noise is round,
// and an action's length is its ‖a‖ in the norm of V⁺.
func (m Elliptic) Reduced() (coordinates, basis [][]float64) {
	if m.e == nil {
		return nil, nil
	}
	return m.e.shape.coordinates, m.e.shape.basis
}

// Kind is elliptic.
func (Elliptic) Kind() string { return "elliptic" }

// Continual is false: the noise is that of one release.
func (Elliptic) Continual() bool { return false }

// Validate accepts what NewElliptic has made.
func (m Elliptic) Validate() error {
	if m.e == nil {
		return errNoShape
	}
	return nil
}

// Loss is that of the Gaussian mechanism at μ = 2g/σ.
func (m Elliptic) Loss() Loss {
	if m.e == nil || m.e.sigma == 0 {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(4*m.G2(), many), squareDown(m.e.sigma)))
}

// Sigma is σ.
func (m Elliptic) Sigma() float64 {
	if m.e == nil {
		return 0
	}
	return m.e.sigma
}

// G2 is g², the largest bᵀV⁺b of an action that is counted, +Inf for the zero value.
func (m Elliptic) G2() float64 {
	if m.e == nil {
		return math.Inf(1)
	}
	return m.e.shape.g2
}

// Sensitivity is 2g, in the norm of V⁺.
func (m Elliptic) Sensitivity() float64 { return 2 * math.Sqrt(m.G2()) }

// Rank is the dimension of the span of the actions that are counted.
func (m Elliptic) Rank() int {
	if m.e == nil {
		return 0
	}
	return m.e.shape.rank
}

// dimension is d, how many coordinates a release has.
func (m Elliptic) dimension() int {
	if m.e == nil {
		return 0
	}
	return m.e.shape.dim
}

// size is how many actions the set has, counted or not.
func (m Elliptic) size() int {
	if m.e == nil {
		return 0
	}
	return len(m.e.shape.counts)
}

// Count is how many rewards of an action a slot may have.
func (m Elliptic) Count(action int) int {
	if action < 0 || action >= m.size() {
		return 0
	}
	return m.e.shape.counts[action]
}

// Covers says why a slot with n[i] rewards of actions[i] may not be released through the
// mechanism, nil if it may: all these rewards must be counted, and the actions must be those that
// the noise is shaped by.
func (m Elliptic) Covers(actions [][]float64, n []int) error {
	switch {
	case m.e == nil:
		return errNoShape
	case len(actions) != m.size() || len(n) != m.size():
		return fmt.Errorf("mechanism elliptic: it is for %d actions, and there are %d, "+
			"must be as many", m.size(), len(actions))
	}
	s := m.e.shape
	for i, k := range n {
		if k > s.counts[i] {
			return fmt.Errorf("mechanism elliptic: action %d has %d rewards, must have at "+
				"most %d", i, k, s.counts[i])
		}
	}
	for i, a := range s.rows {
		same := len(actions[s.played[i]]) == s.dim
		for j := 0; same && j < s.dim; j++ {
			same = a[j] == actions[s.played[i]][j]
		}
		if !same {
			return fmt.Errorf("mechanism elliptic: action %d is %v, must be %v, which the "+
				"noise is shaped by", s.played[i], actions[s.played[i]], a)
		}
	}
	return nil
}

// V is Σ n_a·aaᵀ.
func (m Elliptic) V() [][]float64 {
	d := m.dimension()
	v := make([][]float64, d)
	all := make([]float64, d*d)
	for j := range v {
		v[j], all = all[:d:d], all[d:]
	}
	if m.e == nil {
		return v
	}
	for i, a := range m.e.shape.rows {
		n := float64(m.e.shape.counts[m.e.shape.played[i]])
		for j, x := range a {
			for k, y := range a {
				v[j][k] += float64(n * float64(x*y))
			}
		}
	}
	return v
}

func (Elliptic) facts() facts { return facts{vector: true} }

// entry describes the noise in an entry of the ledger.
func (m Elliptic) entry() Entry {
	return Entry{Sensitivity: m.Sensitivity(), Scale: m.Sigma(), Norm: "V⁺", Matrix: m.V()}
}

func (m Elliptic) String() string {
	rewards := 0
	if m.e != nil {
		for _, n := range m.e.shape.counts {
			rewards += n
		}
	}
	return fmt.Sprintf("elliptic(sigma=%s,rewards=%d,rank=%d,g2=%s)", number(m.Sigma()), rewards,
		m.Rank(), number(m.G2()))
}

// ellipticFields has the actions that are counted only: a design has few.
type ellipticFields struct {
	sigma          float64
	of             int // how many actions the set has
	played, counts []int
	actions        [][]float64
}

func (f *ellipticFields) fields() []field {
	return []field{{"sigma", &f.sigma}, {"of", &f.of}, {"played", &f.played}, {"counts", &f.counts},
		{"actions", &f.actions}}
}

// MarshalJSON writes
// {"mechanism":"elliptic","sigma":1,"of":3,"played":[0,2],"counts":[5,7],"actions":[[1,0],[0,1]]}:
// the noise, without its price.
func (m Elliptic) MarshalJSON() ([]byte, error) {
	if m.e == nil {
		return nil, errNoShape
	}
	s := m.e.shape
	f := ellipticFields{m.e.sigma, len(s.counts), s.played, make([]int, len(s.played)), s.rows}
	for i, a := range s.played {
		f.counts[i] = s.counts[a]
	}
	return encode(m.Kind(), f.fields())
}

func (m Elliptic) read(data []byte) (Mechanism, error) {
	var f ellipticFields
	if err := decode(m.Kind(), data, f.fields()); err != nil {
		return nil, err
	}
	if len(f.played) != len(f.counts) || len(f.played) != len(f.actions) {
		return nil, fmt.Errorf("mechanism elliptic: %d played, %d counts and %d actions, "+
			"must be as many", len(f.played), len(f.counts), len(f.actions))
	}
	last := -1
	for _, p := range f.played {
		if p <= last || p >= f.of {
			return nil, fmt.Errorf("mechanism elliptic: played has %d, must be above the one "+
				"before it and below %d", p, f.of)
		}
		last = p
	}
	s, err := newShape(f.of, f.played, f.actions, func(i int) int { return f.counts[i] })
	if err != nil {
		return nil, err
	}
	return Elliptic{&elliptic{shape: s}}.WithSigma(f.sigma)
}
