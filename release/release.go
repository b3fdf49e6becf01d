// Package release is the curator: the only package that ever holds a reward. Rewards go in, clipped at the door to their declared
// range; noisy sums come out, each through the ledger. No method of a Curator returns a reward.
package release

import "github.com/sotto-dp/sotto/privacy"

// A Curator takes rewards in and lets noisy statistics out.
type Curator interface {
	// Add puts one reward into the arm's slot. Outside the declared range it is clipped.
	Add(arm int, reward float64) error
	// AddSum puts n rewards with this sum into the arm's slot at once: for simulations whose law lies in the declared range. A sum
	// that n rewards of the range cannot have is an error.
	AddSum(arm, n int, sum float64) error
	// Release lets the slots of these arms out as the mechanism says, through the ledger, in this order. The result holds until the
	// next release.
	Release(arms []int) (privacy.Released, error)
	// Forget empties every slot, unreleased, and starts anew under mechanism m: a new guess of the horizon, a new tree.
	Forget(m privacy.Mechanism) error
	// Ledger has what every release has cost.
	Ledger() *privacy.Ledger
}
