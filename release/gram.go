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
// matrices of [a;r], or running Σ a·r. Its noise is floating-point: for simulated rewards only.
type gramFeatures struct {
	ledger    *privacy.Ledger
	account   privacy.Account
	unclipped bool
	dim       int
	width     int  // numbers of a release
	square    bool // a Gram matrix
	most      int  // records of a slot
	n         []int
	sum       []float64 // of the slots, width numbers each
	noise     []vectorStream
	id        []int
	z         []float64 // [a;r]
	out       privacy.Vector
}

// A vectorStream is the noise of a slot's running sums of vectors or matrices.
type vectorStream interface {
	// at is the noise in the sum of the first t records, nil for none. t never decreases. The
	// result holds until the next call.
	at(t uint64) []float64
}

// newGram makes ready what its mechanism says, if that is one of running sums.
func newGram(cfg FeatureConfig, s *noise.Fast) (*gramFeatures, error) {
	c := &gramFeatures{ledger: cfg.Ledger, unclipped: cfg.Unclipped, dim: cfg.Dim, square: true,
		width: (cfg.Dim + 1) * (cfg.Dim + 2) / 2,
		n:     make([]int, cfg.Slots), id: make([]int, cfg.Slots),
		noise: make([]vectorStream, cfg.Slots), z: make([]float64, cfg.Dim+1)}
	var node vectorSampler
	var counter privacy.BLT
	switch m := cfg.Mechanism.(type) {
	case privacy.GramTree:
		node = gaussianMatrix(s, cfg.Dim+1, m.Sigma)
	case privacy.GramBLT:
		node, counter = gaussianMatrix(s, cfg.Dim+1, m.Counter.Sigma), m.Counter
	case privacy.GramWishart:
		if m.Dim != cfg.Dim {
			return nil, fmt.Errorf("curator: dim of mechanism %s is %d, must be %d, as the "+
				"vectors have", m.Kind(), m.Dim, cfg.Dim)
		}
		node = wishartMatrix(s, cfg.Dim+1, m.Scale, m.Degrees)
	case privacy.VectorTree:
		if m.Dim != cfg.Dim {
			return nil, fmt.Errorf("curator: dim of mechanism %s is %d, must be %d, as the "+
				"vectors have", m.Kind(), m.Dim, cfg.Dim)
		}
		c.square, c.width = false, cfg.Dim
		node = laplaceVector(s, m.Scale)
	case privacy.GaussianVectorTree:
		c.square, c.width = false, cfg.Dim
		node = gaussianVector(s, m.Sigma)
	case nil:
		return nil, errors.New("curator: mechanism is missing, must be vector-gaussian, or one " +
			"of running sums of vectors")
	default:
		return nil, fmt.Errorf("curator: mechanism is %q (%T), must be vector-gaussian, or one "+
			"of running sums of vectors", m.Kind(), m)
	}
	if err := cfg.Mechanism.Validate(); err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	c.most = privacy.Longest(cfg.Mechanism)
	c.account = cfg.Ledger.Account(chargeOf(cfg.Mechanism, cfg.Unclipped))
	c.sum, c.out.Value = make([]float64, cfg.Slots*c.width), make([]float64, c.width)
	first := firstSlot(cfg.Ledger)
	for i := range c.id {
		c.id[i] = first + i
		switch {
		case node == nil:
		case counter.Horizon > 0:
			c.noise[i] = newVectorBLT(counter, c.width, node)
		default:
			c.noise[i] = newVectorTree(c.most, c.width, node)
		}
	}
	return c, nil
}

// Ledger implements FeatureCurator.
func (c *gramFeatures) Ledger() *privacy.Ledger { return c.ledger }

// Add implements FeatureCurator.
func (c *gramFeatures) Add(slot int, a []float64, reward float64) error {
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
		if reward, err = atDoor("slot", slot, reward, c.unclipped, false); err != nil {
			return err
		}
	}
	q := 0.0
	for _, x := range a {
		q += float64(x * x)
	}
	if !(q <= normLimit) {
		if err := checkNorm(a, q, c.unclipped); err != nil {
			return err
		}
	}
	s := c.sum[slot*c.width:][:c.width]
	if !c.square {
		for i, x := range a {
			s[i] += float64(x * reward)
		}
		c.n[slot]++
		return nil
	}
	copy(c.z, a)
	c.z[c.dim] = reward
	for rest := c.z; len(rest) > 0; rest = rest[1:] {
		x := rest[0]
		for j, y := range rest {
			s[j] += float64(x * y)
		}
		s = s[len(rest):]
	}
	c.n[slot]++
	return nil
}

// Release implements FeatureCurator. The slot stays as it is, and so does its noise.
func (c *gramFeatures) Release(slot int) (privacy.ReleasedVector, error) {
	if uint(slot) >= uint(len(c.n)) {
		return c.refuse(fmt.Errorf("curator: release of slot %d, must be from 0 to %d", slot, len(c.n)-1))
	}
	if c.n[slot] == 0 {
		return c.refuse(fmt.Errorf("curator: release of slot %d, which is empty", slot))
	}
	copy(c.out.Value, c.sum[slot*c.width:])
	if stream := c.noise[slot]; stream != nil {
		for i, x := range stream.at(uint64(c.n[slot])) {
			c.out.Value[i] += x
		}
	}
	c.out.N = c.n[slot]
	released, err := c.account.ReleaseVector(c.id[slot], &c.out)
	if err != nil {
		return c.refuse(fmt.Errorf("curator: %w", err))
	}
	return released, nil
}

// refuse wipes what was to be released: see curator.refuse.
func (c *gramFeatures) refuse(err error) (privacy.ReleasedVector, error) {
	clear(c.out.Value)
	c.out.N = 0
	return privacy.ReleasedVector{}, err
}

// A vectorSampler adds the noise of one node, or one step, to dst.
type vectorSampler func(dst []float64)

// gaussianMatrix is (σ/√2)(X+Xᵀ), the upper triangle: variance 2σ² on the diagonal and σ² off it.
func gaussianMatrix(s *noise.Fast, n int, sigma float64) vectorSampler {
	if sigma == 0 {
		return nil
	}
	diagonal := sigma * math.Sqrt2
	return func(dst []float64) {
		for k := n; k > 0; k-- {
			row := dst[:k]
			row[0] += float64(diagonal * s.Normal())
			for j := 1; j < len(row); j++ {
				row[j] += float64(sigma * s.Normal())
			}
			dst = dst[k:]
		}
	}
}

// wishartMatrix is scale·LLᵀ, the upper triangle, where L is lower triangular with independent
// entries, normal below the diagonal and the root of a χ² of degrees−i degrees of freedom on it
// (Bartlett's decomposition).
func wishartMatrix(s *noise.Fast, n int, scale float64, degrees int) vectorSampler {
	if scale == 0 {
		return nil
	}
	l := make([]float64, n*n)
	return func(dst []float64) {
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
	}
}

func laplaceVector(s *noise.Fast, scale float64) vectorSampler {
	if scale == 0 {
		return nil
	}
	return func(dst []float64) {
		for i := range dst {
			dst[i] += s.Laplace(scale)
		}
	}
}

func gaussianVector(s *noise.Fast, sigma float64) vectorSampler {
	if sigma == 0 {
		return nil
	}
	return func(dst []float64) {
		for i := range dst {
			dst[i] += float64(sigma * s.Normal())
		}
	}
}

// vectorTree is counter, of vectors: see there.
type vectorTree struct {
	t     uint64
	width int
	stack []float64 // block i is the noise in the i longest nodes of t
	node  vectorSampler
}

func newVectorTree(horizon, width int, node vectorSampler) *vectorTree {
	return &vectorTree{width: width, stack: make([]float64, (1+bits.Len(uint(horizon)))*width), node: node}
}

func (c *vectorTree) at(t uint64) []float64 {
	shared := bits.Len64(c.t ^ t) // digits below may differ
	depth, end := bits.OnesCount64(t>>shared), bits.OnesCount64(t)
	for ; depth < end; depth++ {
		next := c.stack[(depth+1)*c.width:][:c.width]
		copy(next, c.stack[depth*c.width:])
		c.node(next)
	}
	c.t = t
	return c.stack[end*c.width:][:c.width]
}

// vectorBLT is blt, of vectors, all entries with the same coefficients: see there.
type vectorBLT struct {
	t             uint64
	decay, weight []float64
	sum, w        []float64
	u             []float64 // of the buffers, one after the other
	node          vectorSampler
}

func newVectorBLT(m privacy.BLT, width int, node vectorSampler) *vectorBLT {
	c := &vectorBLT{sum: make([]float64, width), w: make([]float64, width), node: node}
	for j, d := range m.Decay {
		if d > 0 {
			c.decay, c.weight = append(c.decay, d), append(c.weight, m.Weight[j])
		}
	}
	c.u = make([]float64, width*len(c.decay))
	return c
}

func (c *vectorBLT) at(t uint64) []float64 {
	for ; c.t < t; c.t++ {
		w := c.w
		clear(w)
		c.node(w)
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
	return c.sum
}
