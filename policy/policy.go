// Package policy has the bandit policies. Each chooses its plays from released statistics alone
// (post-processing), so it inherits the privacy of the releases and needs no proof of its own. The
// package imports privacy and divergence, and never a package that holds rewards.
package policy

import (
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// A Play is some rounds of one arm.
type Play struct {
	Arm, Rounds int
	Release     bool // release the arm's slot once the batch has been played
}

// Forever is the number of rounds of a policy that has nothing left to learn.
const Forever = math.MaxInt

// A Batch is what a policy wants played before it looks at anything again. Its order is public and
// fixed: the play furthest behind its share goes next (equal counts: round robin), so that a batch
// can be cut at any round.
type Batch struct {
	Plays []Play
	// Ask releases only if the statistic of the slots, as the policy's sparse mechanism defines it,
	// is above Above, in sums of rewards mapped to [0,1]; else they go on filling and nothing is
	// released, which is all that the policy gets to know. The question is data, so that no policy
	// computes on sums. Until there has been a yes every question must be about the same arms.
	Ask   bool
	Above float64
	// Fresh forgets every slot first, unreleased rewards included, and builds the curator anew from
	// the policy's Mechanism: a new guess of the horizon, a new tree.
	Fresh bool
}

// A Policy chooses plays from releases alone. It is a deterministic function of its parameters, of
// its coins (of the few that toss any) and of what it was given, so the transcript of releases is
// its state: replaying it restores the policy.
type Policy interface {
	// Mechanism says what noise the curator must add for the policy's guarantee to hold.
	Mechanism() privacy.Mechanism
	// Next takes what the last batch released, in the order of its plays that asked for a release
	// (nothing at first, and nothing when the answer to its question was no), and returns the next
	// batch, which the policy owns and may change at the next call; nil when it has stopped. It
	// must not keep released.
	Next(released privacy.Released) *Batch
}
