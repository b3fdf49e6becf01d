package release

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// gramFeatures is a FeatureCurator whose slots grow and are released again and again: running Gram
// matrices of [a;r], or running Σ a·r. Or slots are emptied at a release, which has no Σ r². T is float64
// in simulations, int64 for real rewards.
type gramFeatures[T number] struct {
	growth[T]
	ledger    *privacy.Ledger
	account   privacy.Account
	unclipped bool
	grid      float64 // steps a unit of a sum, 0 if sums are what they are
	step      float64 // 1/grid, or 1
	dim       int
	width     int // numbers of a slot
	n         []int
	shown     []int // records that the last release had
	sum       []T   // of the slots, width numbers each
	noise     []vectorStream[T]
	id        []int
	next      int       // number of the slot that opens next, of those that are emptied
	z         []float64 // [a;r]
	out       privacy.Vector
}

// A growth is a mechanism made ready: how slots that grow are released.
type growth[T number] struct {
	charge privacy.Mechanism
	square bool // a Gram matrix, else Σ a·r
	once   bool // slots are emptied at a release
	most   int  // records of a slot
	// records of a leaf, at least 1: what is released are whole leaves
	leaf  int
	fresh func() vectorStream[T] // the noise of a new slot, nil for none
}

// A vectorStream is the noise of a slot's running sums of vectors or matrices.
type vectorStream[T number] interface {
	// at is the noise in the sum of the first t leaves, nil for none. t never decreases. The
	// result holds until the next call.
	at(t uint64) ([]T, error)
}

func newGram[T number](cfg FeatureConfig, g growth[T], step, grid float64) *gramFeatures[T] {
	c := &gramFeatures[T]{growth: g, ledger: cfg.Ledger, unclipped: cfg.Unclipped, grid: grid, step: step,
		dim: cfg.Dim, width: widthOf(cfg.Dim, g.square),
		n: make([]int, cfg.Slots), shown: make([]int, cfg.Slots), id: make([]int, cfg.Slots),
		noise: make([]vectorStream[T], cfg.Slots), z: make([]float64, cfg.Dim+1)}
	c.account = cfg.Ledger.Account(chargeOf(g.charge, cfg.Unclipped))
	c.sum, c.out.Value = make([]T, cfg.Slots*c.width), make([]float64, c.width)
	c.next = firstSlot(cfg.Ledger)
	for i := range c.id {
		c.id[i] = c.open()
		if g.fresh != nil {
			c.noise[i] = g.fresh()
		}
	}
	return c
}

// open numbers a slot.
func (c *gramFeatures[T]) open() int {
	c.next++
	return c.next - 1
}

// widthOf is how many numbers a slot has.
func widthOf(dim int, square bool) int {
	if square {
		return (dim + 1) * (dim + 2) / 2
	}
	return dim
}

// fastGrowth is a mechanism of running sums with floating-point noise from stream s.
func fastGrowth(m privacy.Mechanism, dim int, s *noise.Fast) (growth[float64], error) {
	var node vectorSampler[float64]
	var counter privacy.BLT
	square, once := true, false
	switch m := m.(type) {
	case privacy.GramTree:
		node = gaussianMatrix(s, dim+1, m.Sigma)
	case privacy.GramGaussian:
		once, node = true, gaussianSegment(s, dim, m.Sigma)
	case privacy.GramLaplace:
		once, node = true, laplaceSegment(s, dim, m.Scale)
	case privacy.GramBLT:
		node, counter = gaussianMatrix(s, dim+1, m.Counter.Sigma), m.Counter
	case privacy.GramWishart:
		if err := sameDim(m, m.Dim, dim); err != nil {
			return growth[float64]{}, err
		}
		node = wishartMatrix(s, dim+1, m.Scale, m.Degrees)
	case privacy.VectorTree:
		if err := sameDim(m, m.Dim, dim); err != nil {
			return growth[float64]{}, err
		}
		square, node = false, laplaceVector(s, m.Scale)
	case privacy.GaussianVectorTree:
		square, node = false, gaussianVector(s, m.Sigma)
	case nil:
		return growth[float64]{}, errors.New("mechanism is missing, must be vector-gaussian, gram-gaussian " +
			"or one of running sums of vectors")
	default:
		return growth[float64]{}, fmt.Errorf("mechanism is %q (%T), must be vector-gaussian, "+
			"gram-gaussian or one of running sums of vectors", m.Kind(), m)
	}
	if err := m.Validate(); err != nil {
		return growth[float64]{}, err
	}
	g := growth[float64]{charge: m, square: square, once: once, most: privacy.Longest(m), leaf: leafOf(m)}
	if once {
		g.most = math.MaxInt
	}
	width := widthOf(dim, square)
	switch {
	case node == nil:
	case once:
		g.fresh = func() vectorStream[float64] { return anew(width, node) }
	case counter.Horizon > 0:
		g.fresh = func() vectorStream[float64] { return newVectorBLT(counter, width, node) }
	default:
		g.fresh = func() vectorStream[float64] { return newVectorTree(g.most/g.leaf, width, node) }
	}
	return g, nil
}

// leafOf is how many records a leaf of the mechanism's tree has.
func leafOf(m privacy.Mechanism) int {
	if m, ok := m.(privacy.GramTree); ok {
		return max(1, m.Leaf)
	}
	return 1
}

// sameDim refuses a mechanism of vectors of another dimension.
func sameDim(m privacy.Mechanism, has, dim int) error {
	if has != dim {
		return fmt.Errorf("dim of mechanism %s is %d, must be %d, as the vectors have", m.Kind(), has, dim)
	}
	return nil
}

// Ledger implements FeatureCurator.
func (c *gramFeatures[T]) Ledger() *privacy.Ledger { return c.ledger }

// Add implements FeatureCurator.
func (c *gramFeatures[T]) Add(slot int, a []float64, reward float64) error {
	switch {
	case uint(slot) >= uint(len(c.n)):
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case len(a) != c.dim:
		return fmt.Errorf("curator: a vector has %d features, must have %d", len(a), c.dim)
	case c.n[slot] >= c.most:
		return fmt.Errorf("curator: slot %d has %d rewards, must have at most %d", slot, c.n[slot], c.most)
	}
	if !(reward >= -1 && reward <= 1) {
		var err error
		if reward, err = atDoor("slot", slot, reward, c.unclipped, c.grid != 0); err != nil {
			return err
		}
	}
	q := 0.0
	for _, x := range a {
		q += float64(x * x)
	}
	if !(q <= normLimit) {
		if c.square && c.grid != 0 {
			return errPrivateVector
		}
		if err := checkNorm(a, q, c.unclipped); err != nil {
			return err
		}
	}
	c.n[slot]++
	s, x, row := c.sum[slot*c.width:][:c.width], reward, a
	if c.square { // the upper triangle of [a;r][a;r]ᵀ, row by row
		copy(c.z, a)
		c.z[c.dim] = reward
		x, row = c.z[0], c.z
	}
	for {
		if c.grid == 0 {
			for j, y := range row {
				s[j] += T(float64(x * y))
			}
		} else {
			c.rounded(s, x, row)
		}
		if !c.square || len(row) == 1 {
			return nil
		}
		s, row = s[len(row):], row[1:]
		x = row[0]
	}
}

// rounded adds x·row, on the grid.
func (c *gramFeatures[T]) rounded(s []T, x float64, row []float64) {
	for j, y := range row {
		s[j] += T(math.Round(float64(x*y) * c.grid))
	}
}

// errPrivateVector has nothing of the vector: where a Gram matrix is of real records, the vector is
// as private as the reward.
var errPrivateVector = errors.New("curator: a vector is not in the unit ball: its features must be " +
	"finite and its norm at most 1: the sensitivity rests on it")

// Release implements FeatureCurator. The slot stays as it is, and so does its noise.
func (c *gramFeatures[T]) Release(slot int) (privacy.ReleasedVector, error) {
	if uint(slot) >= uint(len(c.n)) {
		return c.refuse(fmt.Errorf("curator: release of slot %d, must be from 0 to %d", slot, len(c.n)-1))
	}
	if c.n[slot] == 0 {
		return c.refuse(fmt.Errorf("curator: release of slot %d, which is empty", slot))
	}
	if c.n[slot]%c.leaf != 0 {
		return c.refuse(fmt.Errorf("curator: release of slot %d, which has %d records, must have a "+
			"multiple of %d, whole leaves", slot, c.n[slot], c.leaf))
	}
	var noise []T
	if stream := c.noise[slot]; stream != nil {
		var err error
		if noise, err = stream.at(uint64(c.n[slot] / c.leaf)); err != nil {
			return c.refuse(fmt.Errorf("curator: noise of slot %d: %w", slot, err))
		}
	}
	sum, step := c.sum[slot*c.width:][:c.width], c.step
	all := sum
	if c.once { // without Σ r²
		sum = sum[:len(sum)-1]
	}
	out := c.out.Value[:len(sum)]
	if noise == nil {
		for i, x := range sum {
			out[i] = float64(float64(x) * step)
		}
	} else {
		noise = noise[:len(sum)]
		for i, x := range sum {
			out[i] = float64(float64(x+noise[i]) * step)
		}
	}
	c.out.N, c.out.Value = c.n[slot], out
	released, err := c.account.ReleaseVector(c.id[slot], &c.out)
	if c.once && closed(err) {
		clear(all)
		c.n[slot], c.id[slot] = 0, c.open()
	}
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	c.shown[slot] = c.n[slot]
	return released, nil
}

// refuse wipes what was to be released: see curator.refuse.
func (c *gramFeatures[T]) refuse(err error) (privacy.ReleasedVector, error) {
	clear(c.out.Value)
	c.out.N = 0
	return privacy.ReleasedVector{}, err
}

// A vectorSampler adds the noise of one node, or one step, to dst.
type vectorSampler[T number] func(dst []T) error

// gaussianMatrix is (σ/√2)(X+Xᵀ), the upper triangle: variance 2σ² on the diagonal and σ² off it.
func gaussianMatrix(s *noise.Fast, n int, sigma float64) vectorSampler[float64] {
	if sigma == 0 {
		return nil
	}
	diagonal := sigma * math.Sqrt2
	return func(dst []float64) error {
		for k := n; k > 0; k-- {
			row := dst[:k]
			row[0] += float64(diagonal * s.Normal())
			for j := 1; j < len(row); j++ {
				row[j] += float64(sigma * s.Normal())
			}
			dst = dst[k:]
		}
		return nil
	}
}

// gaussianSegment is the noise of privacy.GramGaussian: variance σ² on the diagonal and in a row's last
// number, half of it elsewhere.
func gaussianSegment(s *noise.Fast, d int, sigma float64) vectorSampler[float64] {
	if sigma == 0 {
		return nil
	}
	off := sigma / math.Sqrt2
	return func(dst []float64) error {
		for k := d + 1; k > 1; k-- {
			row := dst[:k]
			row[0] += float64(sigma * s.Normal())
			for j := 1; j < k-1; j++ {
				row[j] += float64(off * s.Normal())
			}
			row[k-1] += float64(sigma * s.Normal())
			dst = dst[k:]
		}
		return nil
	}
}

// laplaceSegment is the noise of privacy.GramLaplace: by the length of a matrix, in which a number off the
// diagonal is twice.
func laplaceSegment(s *noise.Fast, d int, scale float64) vectorSampler[float64] {
	if scale == 0 {
		return nil
	}
	return func(dst []float64) error {
		s.AddL2Laplace(dst[:len(dst)-1], scale) // dst is of zeros, its last number is not released
		for k := d + 1; k > 1; k-- {
			for j := 1; j < k-1; j++ {
				dst[j] /= math.Sqrt2
			}
			dst = dst[k:]
		}
		return nil
	}
}

// wishartMatrix is scale·LLᵀ, the upper triangle, where L is lower triangular with independent
// entries, normal below the diagonal and the root of a χ² of degrees−i degrees of freedom on it
// (Bartlett's decomposition).
func wishartMatrix(s *noise.Fast, n int, scale float64, degrees int) vectorSampler[float64] {
	if scale == 0 {
		return nil
	}
	l := make([]float64, n*n)
	return func(dst []float64) error {
		for i := range n {
			row := l[i*n:][:i+1]
			for j := range i {
				row[j] = s.Normal()
			}
			// χ² of k degrees of freedom is twice a Gamma(k/2).
			row[i] = math.Sqrt(2 * math.Exp(s.LogGamma(float64(degrees-i)/2)))
		}
		at := 0
		for i := range n {
			for j := i; j < n; j++ {
				x := 0.0
				for k, y := range l[i*n:][:i+1] {
					x += float64(y * l[j*n+k])
				}
				dst[at] += float64(scale * x)
				at++
			}
		}
		return nil
	}
}

func laplaceVector(s *noise.Fast, scale float64) vectorSampler[float64] {
	if scale == 0 {
		return nil
	}
	return func(dst []float64) error {
		for i := range dst {
			dst[i] += s.Laplace(scale)
		}
		return nil
	}
}

func gaussianVector(s *noise.Fast, sigma float64) vectorSampler[float64] {
	if sigma == 0 {
		return nil
	}
	return func(dst []float64) error {
		for i := range dst {
			dst[i] += float64(sigma * s.Normal())
		}
		return nil
	}
}

// vectorTree is counter, of vectors: see there.
type vectorTree[T number] struct {
	t     uint64
	width int
	stack []T // block i is the noise in the i longest nodes of t
	node  vectorSampler[T]
}

func newVectorTree[T number](horizon, width int, node vectorSampler[T]) *vectorTree[T] {
	return &vectorTree[T]{width: width, stack: make([]T, (1+bits.Len(uint(horizon)))*width), node: node}
}

func (c *vectorTree[T]) at(t uint64) ([]T, error) {
	shared := bits.Len64(c.t ^ t) // digits below may differ
	depth, end := bits.OnesCount64(t>>shared), bits.OnesCount64(t)
	for ; depth < end; depth++ {
		next := c.stack[(depth+1)*c.width:][:c.width]
		copy(next, c.stack[depth*c.width:])
		if err := c.node(next); err != nil {
			// Nodes that were drawn are kept, as in counter.to. What was drawn of this one nobody
			// has seen.
			c.t = highest(t, depth)
			return nil, err
		}
	}
	c.t = t
	return c.stack[end*c.width:][:c.width], nil
}

// a freshVector is noise that is drawn for one release, and never again.
type freshVector[T number] struct {
	to   []T
	node vectorSampler[T]
}

func anew[T number](width int, node vectorSampler[T]) *freshVector[T] {
	return &freshVector[T]{make([]T, width), node}
}

func (c *freshVector[T]) at(uint64) ([]T, error) {
	clear(c.to)
	return c.to, c.node(c.to)
}

// vectorBLT is blt, of vectors, all entries with the same coefficients: see there.
type vectorBLT struct {
	t             uint64
	decay, weight []float64
	sum, w        []float64
	u             []float64 // of the buffers, one after the other
	node          vectorSampler[float64]
}

func newVectorBLT(m privacy.BLT, width int, node vectorSampler[float64]) *vectorBLT {
	c := &vectorBLT{sum: make([]float64, width), w: make([]float64, width), node: node}
	for j, d := range m.Decay {
		if d > 0 {
			c.decay, c.weight = append(c.decay, d), append(c.weight, m.Weight[j])
		}
	}
	c.u = make([]float64, width*len(c.decay))
	return c
}

func (c *vectorBLT) at(t uint64) ([]float64, error) {
	for ; c.t < t; c.t++ {
		w := c.w
		clear(w)
		if err := c.node(w); err != nil {
			return nil, err
		}
		u := c.u
		for _, s := range c.weight {
			for i, x := range u[:len(w)] {
				w[i] -= float64(s * x)
			}
			u = u[len(w):]
		}
		u = c.u
		for _, d := range c.decay {
			for i, x := range u[:len(w)] {
				u[i] = float64(d*x) + w[i]
			}
			u = u[len(w):]
		}
		for i, x := range w {
			c.sum[i] += x
		}
	}
	return c.sum, nil
}
