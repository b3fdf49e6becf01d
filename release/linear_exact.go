package release

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// RealActions returns a curator of real rewards of these actions: those that belong to people. The
// mechanism is privacy.Sums.
//
// A reward x is clipped to [−1,1] and becomes the integer round(2^20·x), so that replacing it
// changes its action's sum by at most 2^21. Noise is discrete Gaussian, drawn exactly, from a
// ChaCha8 generator keyed by the operating system; what is released is their sum divided by 2^20.
// As in Real, σ is rounded up by 1/64 to 1/32 of a step and to at least 16 steps, and the ledger is
// charged for a continuous σ that is a 64th of a step smaller than the discrete one: never more
// than the mechanism promised.
//
// privacy.Elliptic is refused: its noise has real coefficients, which integers cannot have. AddSum
// takes one reward at most.
func RealActions(actions [][]float64, ledger *privacy.Ledger) (ActionCurator, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	return exactActions(actions, ledger, src)
}

// exactActions is RealActions on given bits.
func exactActions(actions [][]float64, ledger *privacy.Ledger, src rand.Source) (ActionCurator, error) {
	c, err := newActions[int64](actions, false, ledger)
	if err != nil {
		return nil, err
	}
	c.grid, c.step, c.atOnce, c.most = gridSteps, 1.0/gridSteps, 1, maxRewards
	c.prepare = func(m privacy.Mechanism) (recipe[int64], error) {
		s, ok := m.(privacy.Sums)
		if !ok {
			if _, err := sigmaOf(m); err != nil {
				return recipe[int64]{}, err
			}
			return recipe[int64]{}, fmt.Errorf("mechanism %s is for simulated rewards only: its "+
				"noise has real coefficients, which integers cannot have; "+
				"take sums for real rewards", m.Kind())
		}
		used, law, err := exactSigma(s, s.Sigma, src)
		return recipe[int64]{family: once, charge: privacy.Sums{Sigma: used}, noise: law}, err
	}
	return c, nil
}

// RealFeatures returns a curator of real rewards of whatever vectors are played. The mechanism is
// privacy.VectorGaussian, or VectorTree or GaussianVectorTree for running sums: rewards belong to
// people, vectors are public. Or it is privacy.GramTree, GramGaussian or a Histogram: rewards and vectors both
// belong to people.
//
// A reward r is clipped to [−1,1], and each product becomes an integer, round(2^20·a_i·r) or, of a
// Gram matrix, round(2^20·z_i·z_j) with z = [a;r]: always the same for the same a and r. That moves
// a product by half a step at most, and what a record does when it is replaced by
//
//	√d·2^-20 beside 2         in ℓ2     (vector-gaussian, gaussian-vector-tree)
//	d·2^-20 beside 2√d        in ℓ1     (vector-tree)
//	(d+1)·2^-20 beside 2√2    in the Frobenius norm of all (d+1)² entries     (gram-tree)
//	(d+1)·2^-20 beside 3/√2   in that of Σ aaᵀ and Σ a·r                      (gram-gaussian)
//
// at most: noise is that much larger, and the ledger is charged for what the mechanism promised, or
// less. A running sum of n records is off by at most n/2^21 in each number.
//
// Noise is discrete, on the grid, drawn and rounded up as in RealActions: a loss of independent
// coordinates adds up over their shifts, squared for normal noise (CKS Theorem 4) and as they are
// for discrete Laplace noise, whose masses a step apart have the ratio e^{1/t}; as for the
// continuous laws. A node of a Gram tree has scale s off the diagonal and at least √2·s on it, so
// that a shift D of the upper triangle costs, of ρ,
//
//	Σ_{i<j} D_ij²/2s² + Σ_i D_ii²/4s² = ‖D‖_F²/4s²
//
// or less, as in privacy.GramTree; and so it does in privacy.GramGaussian, where D has Σ a·r once, and its
// noise, too, is of √2·s at least. A node's noise is drawn once, when a release first shows it. Of
// at most 2^42 records no sum is above 2^62 steps, at most 42 nodes have noise in it, of at most
// 2^55 steps each, and nothing overflows: 2^62 + 42·2^55 < 2^63.
//
// Under a Gram mechanism no error has anything of a vector in it. One outside the unit ball is
// refused all the same, and that one is missing shows in the count: look at a round's whole
// decision set before the policy does. Dim is at most 4096 there.
//
// privacy.GramBLT is refused, whose noise has real coefficients, and so is GramWishart, whose noise
// is a product of real matrices: rounded to the grid, neither has the law that was proved private.
// The noise of nodes that have been shown is secret, and must not be drawn again for the same
// records: a curator of running sums is a KeptCurator, whose state goes with its releases. All are
// StepFeatureCurators. The noise of independent coordinates of a release, of VectorGaussian and Histogram, is drawn
// ahead, as in Real; that of a node is not.
func RealFeatures(cfg FeatureConfig) (FeatureCurator, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	c, err := exactFeatures(cfg, src)
	if f, ok := c.(*features[int64]); ok && f.plan.noise != nil {
		f.plan.noise = newAhead(f.plan.noise, f.width*len(f.n))
	}
	return c, err
}

// exactFeatures is RealFeatures on given bits, drawn when they are needed.
func exactFeatures(cfg FeatureConfig, src rand.Source) (FeatureCurator, error) {
	if cfg.Unclipped {
		return nil, errors.New("curator: unclipped is true, must be false for real rewards: " +
			"their sensitivity would be unlimited")
	}
	if err := checkFeatures(&cfg); err != nil {
		return nil, err
	}
	if m, ok := cfg.Mechanism.(privacy.VectorGaussian); ok {
		more := roundedSensitivity(cfg.Dim) / 2
		used, law, err := exactSigma(m, float64(m.Sigma*more), src)
		if err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		p := recipe[int64]{family: once, charge: privacy.VectorGaussian{Sigma: used / more}, noise: law,
			most: maxRewards}
		return newFeatures(cfg, p, 1.0/gridSteps, gridSteps), nil
	}
	if m, ok := cfg.Mechanism.(privacy.VectorLaplace); ok {
		p, err := exactL2(m, cfg.Dim, src)
		if err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		return newFeatures(cfg, p, 1.0/gridSteps, gridSteps), nil
	}
	if m, ok := cfg.Mechanism.(privacy.Histogram); ok {
		p, err := exactHistogram(m, src)
		if err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		return newFeatures(cfg, p, 1.0/gridSteps, gridSteps), nil
	}
	g, err := exactGrowth(cfg.Mechanism, cfg.Dim, src)
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	return newGram(cfg, g, 1.0/gridSteps, gridSteps), nil
}

// exactL2 is the noise of privacy.VectorLaplace on the grid: exp(−‖v‖₂/t) of its points, t for what a record
// moves there.
func exactL2(m privacy.VectorLaplace, dim int, src rand.Source) (recipe[int64], error) {
	p := recipe[int64]{family: once, charge: m, most: maxRewards}
	if err := m.Validate(); err != nil || m.Scale == 0 { // 0 costs ∞
		return p, err
	}
	more := m.GridSensitivity(dim, ExactStep) / 2
	num, err := parts(m.Kind(), float64(m.Scale*more))
	if err != nil {
		return p, err
	}
	law, err := noise.NewL2Laplace(dim, num, stepParts)
	if err != nil {
		return p, err
	}
	// No less than was asked for: rounding must not charge more than was promised, and num is a 64th of a step above it.
	p.charge = privacy.VectorLaplace{Scale: max(m.Scale, float64(num-1)/stepParts/gridSteps/more)}
	p.vector = func(dst []int64) error { // of zeros
		err := law.Draw(src, dst)
		for _, x := range dst {
			_, err = inRange(x, err)
		}
		return err
	}
	return p, nil
}

// exactHistogram is a histogram's mechanism with discrete noise on the grid. y becomes whole steps s, and
// 1 − y becomes 2^20 − s: nothing is lost by rounding, and the sensitivity is the mechanism's own.
func exactHistogram(m privacy.Histogram, src rand.Source) (p recipe[int64], err error) {
	p = recipe[int64]{family: once, most: maxRewards}
	switch m := m.(type) {
	case privacy.LaplaceHistogram:
		m.Scale, p.noise, err = exactScale(m, m.Scale, src)
		p.charge = m
	case privacy.GaussianHistogram:
		m.Sigma, p.noise, err = exactSigma(m, m.Sigma, src)
		p.charge = m
	}
	return p, err
}

// maxGramDim keeps a Gram matrix in memory, and the rounding of norms far below unitball.Slack.
const maxGramDim = 1 << 12

// exactGrowth is a mechanism of running sums with discrete noise on the grid.
func exactGrowth(m privacy.Mechanism, dim int, src rand.Source) (growth[int64], error) {
	const one = "vector-gaussian, vector-tree, gaussian-vector-tree, gram-gaussian or gram-tree for real rewards"
	g := growth[int64]{charge: m, most: maxRewards, leaf: leafOf(m)}
	var diagonal, off sampler[int64]
	var err error
	_, g.once = m.(privacy.GramGaussian)
	switch m := m.(type) {
	case privacy.GramTree:
		g.square = true
		more := m.GridSensitivity(dim, ExactStep) / (2 * math.Sqrt2)
		charged := m
		charged.Sigma, off, diagonal, err = exactMatrix(m, dim, float64(m.Sigma*more), src)
		charged.Sigma /= more
		g.charge = charged
	case privacy.GramGaussian:
		g.square = true
		more := m.GridSensitivity(dim, ExactStep) / 3 // off the diagonal it is Sigma/√2 beside 3/√2
		charged := m
		charged.Sigma, off, diagonal, err = exactMatrix(m, dim, float64(m.Sigma*more), src)
		charged.Sigma /= more
		g.charge = charged
	case privacy.GaussianVectorTree:
		more := roundedSensitivity(dim) / 2
		charged := m
		charged.Sigma, off, err = exactSigma(m, float64(m.Sigma*more), src)
		charged.Sigma /= more
		g.charge = charged
	case privacy.VectorTree:
		if err := sameDim(m, m.Dim, dim); err != nil {
			return g, err
		}
		more := 1 + 2*unitball.Slack + float64(math.Sqrt(float64(dim))/(2*gridSteps))
		charged := m
		charged.Scale, off, err = exactScale(m, float64(m.Scale*more), src)
		charged.Scale /= more
		g.charge = charged
	case privacy.GramBLT, privacy.GramWishart, privacy.GramLaplace:
		return g, fmt.Errorf("mechanism %s is for simulated rewards only: its noise is made of "+
			"real numbers, which integers cannot have; take gram-tree for real rewards", m.Kind())
	case nil:
		return g, errors.New("mechanism is missing, must be " + one)
	default:
		return g, fmt.Errorf("mechanism is %q (%T), must be %s", m.Kind(), m, one)
	}
	if err != nil {
		return g, err
	}
	if !g.once {
		g.most = min(g.most, privacy.Longest(m))
	}
	if off == nil { // costs ∞
		return g, nil
	}
	if diagonal == nil {
		diagonal = off
	}
	node, width := exactNode(diagonal, off, dim+1, g.square, g.once), widthOf(dim, g.square)
	g.fresh = func() vectorStream[int64] {
		if g.once {
			return anew(width, node)
		}
		return newVectorTree(g.most/g.leaf, width, node)
	}
	return g, nil
}

// exactMatrix is the noise of a Gram matrix off the diagonal, whose σ is this, and on it.
func exactMatrix(m privacy.Mechanism, dim int, sigma float64, src rand.Source) (charged float64,
	off, diagonal sampler[int64], err error) {
	if dim > maxGramDim {
		return 0, nil, nil, fmt.Errorf("dim is %d, must be at most %d for a Gram matrix of real records",
			dim, maxGramDim)
	}
	if charged, off, err = exactSigma(m, sigma, src); err == nil && off != nil {
		diagonal, err = onDiagonal(m, sigma, src)
	}
	return charged, off, diagonal, err
}

// exactNode is the noise of one node: of a vector, or of the upper triangle of a matrix, row by row. Of one
// that is released once a row's last number, a·r, is not in the matrix twice, and has the diagonal's.
func exactNode(diagonal, off sampler[int64], rows int, square, once bool) vectorSampler[int64] {
	return func(dst []int64) error {
		next, row := 0, rows // next is on the diagonal
		for i := range dst {
			law := off
			if square && i == next {
				law, next, row = diagonal, next+row, row-1
			} else if once && i == next-1 {
				law = diagonal
			}
			x, err := law.Draw(1)
			if err != nil {
				return err
			}
			dst[i] += x
		}
		return nil
	}
}

// roundedSensitivity is by how much the sum of a·r on the grid moves when a reward is replaced.
// Norms may be unitball.Slack too large, and the products round.
func roundedSensitivity(dim int) float64 {
	return 2*(1+2*unitball.Slack) + float64(math.Sqrt(float64(dim))/gridSteps)
}

// exactSigma is the noise of a mechanism m with this σ on the grid, nil for none, and the
// σ to charge for.
func exactSigma(m privacy.Mechanism, sigma float64, src rand.Source) (charged float64,
	law sampler[int64], err error) {
	if err := m.Validate(); err != nil || sigma == 0 { // 0 costs ∞
		return 0, nil, err
	}
	num, err := parts(m.Kind(), sigma)
	if err != nil {
		return 0, nil, err
	}
	gaussian, err := noise.NewDiscreteGaussian(num, stepParts)
	if err != nil {
		return 0, nil, err
	}
	return float64(num-1) / stepParts / gridSteps, exactGaussian{src, gaussian}, nil
}

// onDiagonal is exactSigma's noise with at least √2 its scale.
func onDiagonal(m privacy.Mechanism, sigma float64, src rand.Source) (sampler[int64], error) {
	num, err := parts(m.Kind(), sigma)
	if err != nil {
		return nil, err
	}
	// num is below 2^47, so that the product is off by less than the part that is added
	law, err := noise.NewDiscreteGaussian(uint64(math.Ceil(float64(num)*math.Sqrt2))+1, stepParts)
	return exactGaussian{src, law}, err
}

// exactScale is exactSigma for Laplace noise.
func exactScale(m privacy.Mechanism, scale float64, src rand.Source) (charged float64,
	law sampler[int64], err error) {
	if err := m.Validate(); err != nil || scale == 0 { // 0 costs ∞
		return 0, nil, err
	}
	num, err := parts(m.Kind(), scale)
	if err != nil {
		return 0, nil, err
	}
	laplace, err := noise.NewDiscreteLaplace(num, stepParts)
	if err != nil {
		return 0, nil, err
	}
	return float64(num-1) / stepParts / gridSteps, exactLaplace{src, []noise.DiscreteLaplace{laplace}}, nil
}
