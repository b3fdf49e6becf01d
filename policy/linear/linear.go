// Package linear holds policies for linear bandits, where the mean reward of an action a ∈ ℝ^d is
// ⟨θ*, a⟩. As in package policy they are post-processing: they see released statistics and public
// features, never a reward. Rewards are in [−1,1], ‖a‖₂ ≤ 1 and ‖θ*‖₂ ≤ 1 ([Azize 2024, Assumption
// 5.10]; [Azize and Basu 2024, Assumption 1]). Begin with NewGOPE for fixed actions, and with
// NewOFUL for contexts.
package linear

import (
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Policy plays a fixed, finite set of actions in batches. A batch's Plays name actions by their
// index; a batch of which any play says Release is released as one vector, after its last round,
// through the policy's Mechanism. A Policy is a function of its parameters and of what it was given.
type Policy interface {
	// Mechanism is that of the release which the last batch asks for: what was played shapes the
	// noise, and what was played is public.
	Mechanism() privacy.Mechanism
	// Next takes what the last batch released (nothing at first) and returns the next batch, which
	// the policy owns; nil when it has stopped.
	Next(privacy.ReleasedVector) *policy.Batch
}

// A Choice is what a Contextual plays in a round, and the slot that its reward goes into.
type Choice struct{ Action, Slot int }

// A Contextual chooses from a new decision set in each round. The round's order is: while Due,
// release and Learn; then Choose; then the vector that was played and its reward go into the slot.
type Contextual interface {
	// Mechanism is the curator's. One of another kind after Learn is for later rounds, all earlier ones
	// having been released: a new curator takes them, of the same ledger.
	Mechanism() privacy.Mechanism
	// Slots is how many slots the curator must have.
	Slots() int
	// Due is the slot that must be released before the next choice, −1 if none.
	Due() int
	// Learn takes the release that was due.
	Learn(privacy.ReleasedVector)
	// Choose picks one of the actions, each d numbers of the slice, at least one of them.
	Choose(actions []float64) Choice
}

// An Instrumental policy has another record released than the vector that was played and its reward r: z and
// (r−p)/w.
type Instrumental interface {
	Contextual
	// Instrument makes z, ‖z‖₂ ≤ 1, of the vector a that was chosen last, and returns p and w ≥ 1, |r−p| ≤ w. They
	// follow from that vector and from what was released, and to has as many numbers as a.
	Instrument(to, a []float64) (p, w float64)
}

// RowsOf are the vectors of a policy that plays no others, one after the other, nil for any other policy: what
// release.FeatureConfig has as Rows.
func RowsOf(policy any) []float64 {
	if p, ok := policy.(interface{ Rows() []float64 }); ok {
		return p.Rows()
	}
	return nil
}
