package release

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/rows"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An ActionCurator curates rewards in [−1,1] of a fixed, finite set of actions in ℝ^d, all in one
// slot: what policies that play by phases need (policy/linear.Policy). Rewards outside are
// clipped on entry.
type ActionCurator interface {
	// Add puts one reward of an action into the slot. A real one is never refused for its
	// value: see Curator.
	Add(action int, reward float64) error
	// AddSum puts n rewards of an action with this sum into the slot at once: for simulations
	// whose law lies in [−1,1]. A sum that n such rewards cannot have is an error. Of a real
	// reward, n = 1, it is Add.
	AddSum(action, n int, sum float64) error
	// Release empties the slot through m, which says of which actions, and at most how many times
	// each, there may be rewards in it: privacy.Elliptic, whose noise is shaped by the design, or
	// privacy.Sums, noise on the sum of each action. What was added beyond that is an error. The
	// result holds until the next release.
	Release(m privacy.Mechanism) (privacy.ReleasedVector, error)
	Ledger() *privacy.Ledger
}

// A FeatureCurator curates rewards in [−1,1] of whatever vectors of ℝ^d were played, in one or more
// slots: what policies that choose in each round need (policy/linear.Contextual). A vector with
// ‖a‖₂ > 1 (beyond rounding) is refused: the sensitivity rests on it.
type FeatureCurator interface {
	// Add puts the vector that was played and its reward into a slot. A real reward is never
	// refused for its value: see Curator. An error has nothing of a vector that is private.
	Add(slot int, a []float64, reward float64) error
	// Release lets the slot out as the curator's mechanism says. The result holds until
	// the next release.
	Release(slot int) (privacy.ReleasedVector, error)
	Ledger() *privacy.Ledger
}

// A FeatureConfig says what a FeatureCurator curates.
type FeatureConfig struct {
	Dim   int // d ≥ 1
	Slots int // at least 1
	// Mechanism is privacy.VectorGaussian, VectorLaplace, GramGaussian or a Histogram (each slot is emptied at its release),
	// privacy.VectorTree or GaussianVectorTree (running Σ a·r), or one of the Gram counters
	// (running noisy Σ [a;r][a;r]ᵀ, upper triangle, row by row): of real records GramTree.
	Mechanism privacy.Mechanism
	// Rows are the vectors that records of a histogram may have, all different, Dim numbers each, one after
	// the other: each is a cell, and a release has 2 numbers for each, Σ 1−y and Σ y of its records, for
	// y = (r+1)/2. They are public. Another vector is refused. Other mechanisms have none.
	Rows      []float64
	Unclipped bool // as in Config; it also turns the check of ‖a‖ off
	Ledger    *privacy.Ledger

	cells rows.Table // of Rows
}

// SimulatedActions returns a curator of simulated rewards of these actions, which are copied.
// Unclipped is as in Config; the ledger is nil for a new one. Its noise is floating-point, from the
// run's stream s, and protects nobody.
func SimulatedActions(actions [][]float64, unclipped bool, ledger *privacy.Ledger,
	s *noise.Fast) (ActionCurator, error) {
	if s == nil {
		return nil, errors.New("curator: noise stream is missing, must be a run's stream")
	}
	c, err := newActions[float64](actions, unclipped, ledger)
	if err != nil {
		return nil, err
	}
	c.step, c.atOnce, c.most = 1, math.MaxInt, math.MaxInt
	c.prepare = func(m privacy.Mechanism) (recipe[float64], error) { return fastVector(m, s) }
	return c, nil
}

// SimulatedFeatures returns a curator of simulated rewards of whatever is played. Its noise is
// floating-point, from the run's stream s, and protects nobody.
func SimulatedFeatures(cfg FeatureConfig, s *noise.Fast) (FeatureCurator, error) {
	if s == nil {
		return nil, errors.New("curator: noise stream is missing, must be a run's stream")
	}
	if err := checkFeatures(&cfg); err != nil {
		return nil, err
	}
	switch m := cfg.Mechanism.(type) {
	case privacy.VectorGaussian:
		p, err := fastVector(m, s)
		if err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		return newFeatures(cfg, p, 1, 0), nil
	case privacy.VectorLaplace:
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		p := recipe[float64]{family: once, charge: m}
		if m.Scale > 0 {
			p.vector = func(dst []float64) error { s.AddL2Laplace(dst, m.Scale); return nil }
		}
		return newFeatures(cfg, p, 1, 0), nil
	case privacy.Histogram:
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("curator: %w", err)
		}
		p := recipe[float64]{family: once, charge: m}
		switch m := m.(type) {
		case privacy.LaplaceHistogram:
			if m.Scale > 0 {
				p.noise = fastLaplace{s, m.Scale}
			}
		case privacy.GaussianHistogram:
			if m.Sigma > 0 {
				p.noise = fastGaussian{s, m.Sigma}
			}
		}
		return newFeatures(cfg, p, 1, 0), nil
	}
	g, err := fastGrowth(cfg.Mechanism, cfg.Dim, s)
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	return newGram(cfg, g, 1, 0), nil
}

// fastVector is a vector's mechanism with floating-point noise from stream s. Without noise
// nothing is drawn.
func fastVector(m privacy.Mechanism, s *noise.Fast) (recipe[float64], error) {
	sigma, err := sigmaOf(m)
	p := recipe[float64]{family: once, charge: m}
	if sigma > 0 {
		p.noise = fastGaussian{s, sigma}
	}
	return p, err
}

// sigmaOf is σ of a mechanism that releases vectors, if it is one.
func sigmaOf(m privacy.Mechanism) (sigma float64, err error) {
	switch m := m.(type) {
	case privacy.Elliptic:
		return m.Sigma(), m.Validate()
	case privacy.Sums:
		return m.Sigma, m.Validate()
	case privacy.VectorGaussian:
		return m.Sigma, m.Validate()
	case nil:
		return 0, errors.New("mechanism is missing, must be elliptic or sums")
	}
	return 0, fmt.Errorf("mechanism is %q (%T), must be elliptic or sums", m.Kind(), m)
}

// checkFeatures says what is wrong with the parts of a configuration that all mechanisms have in
// common, and makes its ledger if it has none.
func checkFeatures(cfg *FeatureConfig) error {
	switch {
	case cfg.Dim < 1:
		return fmt.Errorf("curator: dim is %d, must be at least 1", cfg.Dim)
	case cfg.Slots < 1:
		return fmt.Errorf("curator: slots is %d, must be at least 1", cfg.Slots)
	}
	_, histogram := cfg.Mechanism.(privacy.Histogram)
	switch {
	case histogram:
		var err error
		if cfg.cells, err = rows.New(cfg.Dim, cfg.Rows); err != nil {
			return fmt.Errorf("curator: %w", err)
		}
	case len(cfg.Rows) > 0:
		return fmt.Errorf("curator: rows has %d numbers, must have none but for a histogram", len(cfg.Rows))
	}
	if cfg.Ledger == nil {
		cfg.Ledger = privacy.NewLedger()
	}
	return nil
}

// firstSlot is the number of the slot after the last of the ledger.
func firstSlot(l *privacy.Ledger) int {
	if entries := l.Entries(); len(entries) > 0 {
		return entries[len(entries)-1].Slot + 1
	}
	return 0
}

// chargeOf is what a release costs: unclipped rewards have no sensitivity.
func chargeOf(m privacy.Mechanism, unclipped bool) privacy.Mechanism {
	if unclipped {
		return privacy.Unknown{Name: "unclipped " + m.Kind()}
	}
	return m
}

// atDoor is what becomes of a reward outside [−1,1]. A real one is never refused: what is no number
// counts as −1. Of simulated ones NaN is an error, and without clipping the infinite.
func atDoor(what string, i int, reward float64, unclipped, real bool) (float64, error) {
	switch {
	case unclipped && (math.IsNaN(reward) || math.IsInf(reward, 0)):
		return 0, fmt.Errorf("curator: reward of %s %d is not finite, must be", what, i)
	case unclipped:
		return reward, nil
	case math.IsNaN(reward) && real:
		return -1, nil
	case math.IsNaN(reward):
		return 0, fmt.Errorf("curator: reward of %s %d is NaN, must be a number", what, i)
	}
	return min(max(reward, -1), 1), nil
}

// closed says that the ledger may have charged for a slot's rewards: then they have been used, also
// where nothing came out.
func closed(err error) bool { return !errors.Is(err, privacy.ErrBudget) }
