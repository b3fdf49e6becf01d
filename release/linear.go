package release

import (
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An ActionCurator curates rewards in [−1,1] of a fixed, finite set of actions in ℝ^d, all in one slot: what policies that play by phases need
// (policy/linear.Policy). Rewards outside are clipped at the door.
type ActionCurator interface {
	// Add puts one reward of an action into the slot.
	Add(action int, reward float64) error
	// AddSum puts n rewards of an action with this sum into the slot at once: for simulations whose law lies in [−1,1].
	AddSum(action, n int, sum float64) error
	// Release empties the slot through m, which says of which actions, and at most how many times each, there may be rewards in it: privacy.Elliptic,
	// whose noise is shaped by the design, or privacy.Sums, noise on the sum of each action. What was added beyond that is an error.
	Release(m privacy.Mechanism) (privacy.ReleasedVector, error)
	Ledger() *privacy.Ledger
}

// A FeatureCurator curates rewards in [−1,1] of whatever vectors of ℝ^d were played, in one or more slots: what policies that choose in each
// round need (policy/linear.Contextual). A vector with ‖a‖₂ > 1 (beyond rounding) is refused: the sensitivity rests on it.
type FeatureCurator interface {
	// Add puts the vector that was played and its reward into a slot.
	Add(slot int, a []float64, reward float64) error
	// Release lets the slot out as the curator's mechanism says. The result holds until the next release.
	Release(slot int) (privacy.ReleasedVector, error)
	Ledger() *privacy.Ledger
}

// A FeatureConfig says what a FeatureCurator curates.
type FeatureConfig struct {
	Dim   int // d ≥ 1
	Slots int // at least 1
	// Mechanism is privacy.VectorGaussian (each slot is emptied at its release), privacy.VectorTree (running Σ a·r), or one of the Gram counters
	// (running noisy Σ [a;r][a;r]ᵀ, upper triangle, row by row).
	Mechanism privacy.Mechanism
	Unclipped bool // as in Config; it also turns the check of ‖a‖ off
	Ledger    *privacy.Ledger
}

// SimulatedActions returns a curator of simulated rewards of these actions.
func SimulatedActions(actions [][]float64, unclipped bool, ledger *privacy.Ledger, s *noise.Fast) (ActionCurator, error) {
	panic("to be written")
}

// SimulatedFeatures returns a curator of simulated rewards of whatever is played.
func SimulatedFeatures(cfg FeatureConfig, s *noise.Fast) (FeatureCurator, error) {
	panic("to be written")
}
