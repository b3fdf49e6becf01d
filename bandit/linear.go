package bandit

import "github.com/sotto-dp/sotto/noise"

// A LinearInstance is a finite set of actions in ℝ^d with the law of each one's rewards.
type LinearInstance struct {
	Actions  [][]float64
	Theta    []float64 // θ*; nil for logged rewards, whose means need not be linear
	Instance           // the law of each action's reward, mean ⟨θ*,a⟩
}

// A LinearSource is where the linear instance of a run comes from.
type LinearSource interface {
	Linear(s *noise.Fast) (LinearInstance, error)
	Redrawn() bool
	String() string // canonical: the key of its streams
}

// A ContextualInstance draws a decision set each round.
type ContextualInstance interface {
	Dim() int
	MaxActions() int
	// Round draws a round's decision set into actions (grown if need be), d numbers an action, and the mean reward of each action into means.
	Round(actions, means []float64, s *noise.Fast) (a, m []float64)
	// Reward draws the reward of an action with this mean. It takes the same number of draws from s whatever the mean: runs are paired.
	Reward(mean float64, s *noise.Fast) float64
	// Bounded says that rewards are in [−1,1] and ‖a‖₂ ≤ 1 by construction.
	Bounded() bool
}

// A ContextualSource is where the contextual instance of a run comes from.
type ContextualSource interface {
	Contextual(s *noise.Fast) (ContextualInstance, error)
	Redrawn() bool
	String() string
}
