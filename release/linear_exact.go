package release

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/internal/base/unitball"
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
	c.prepare = func(m privacy.Mechanism) (plan[int64], error) {
		s, ok := m.(privacy.Sums)
		if !ok {
			if _, err := sigmaOf(m); err != nil {
				return plan[int64]{}, err
			}
			return plan[int64]{}, fmt.Errorf("mechanism %s is for simulated rewards only: its "+
				"noise has real coefficients, which integers cannot have; "+
				"take sums for real rewards", m.Kind())
		}
		used, law, err := exactSigma(s, s.Sigma, src)
		return plan[int64]{family: once, charge: privacy.Sums{Sigma: used}, noise: law}, err
	}
	return c, nil
}

// RealFeatures returns a curator of real rewards of whatever vectors are played: rewards that
// belong to people, vectors that are public. The mechanism is privacy.VectorGaussian.
//
// A reward r is clipped to [−1,1], and each coordinate of a·r becomes the integer
// round(2^20·a_i·r), always the same for the same a and r. That moves a·r by half a step a
// coordinate at most, √d/2 steps in all, so that replacing a reward moves the sum of ‖a‖₂ ≤ 1 by at
// most 2 + √d·2^-20 instead of 2: noise is that much larger, and the ledger is charged for what the
// mechanism promised, or less. Noise is discrete Gaussian in each coordinate, drawn and rounded up
// as in RealActions; ρ of independent coordinates adds up over the squares of their shifts (CKS
// Theorem 4), as for the continuous law.
func RealFeatures(cfg FeatureConfig) (FeatureCurator, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	return exactFeatures(cfg, src)
}

// exactFeatures is RealFeatures on given bits.
func exactFeatures(cfg FeatureConfig, src rand.Source) (FeatureCurator, error) {
	if cfg.Unclipped {
		return nil, errors.New("curator: unclipped is true, must be false for real rewards: " +
			"their sensitivity would be unlimited")
	}
	if err := checkFeatures(&cfg); err != nil {
		return nil, err
	}
	m, ok := cfg.Mechanism.(privacy.VectorGaussian)
	switch {
	case cfg.Mechanism == nil:
		return nil, errors.New("curator: mechanism is missing, must be vector-gaussian")
	case !ok:
		return nil, fmt.Errorf("curator: mechanism is %q (%T), must be vector-gaussian for real "+
			"rewards", cfg.Mechanism.Kind(), cfg.Mechanism)
	}
	more := roundedSensitivity(cfg.Dim) / 2
	used, law, err := exactSigma(m, float64(m.Sigma*more), src)
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	p := plan[int64]{family: once, charge: privacy.VectorGaussian{Sigma: used / more}, noise: law,
		most: maxRewards}
	return newFeatures(cfg, p, 1.0/gridSteps, gridSteps), nil
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
