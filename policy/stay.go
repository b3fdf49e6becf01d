package policy

import "github.com/sotto-dp/sotto/privacy"

// A Stayer is a policy that decides in every round and knows when it will decide the same
// again. After Next has asked for one round of one arm, with its release, that play may be made
// again without asking, at most rounds more times and only as long as the release before it
// meets the condition: the policy would have asked for it. Then Stayed says how often it was
// made, and Next gets the last release. Nobody has to make use of it: asking Next in every
// round gives the same plays.
type Stayer interface {
	Policy
	Stay() (rounds int, while privacy.Index)
	Stayed(rounds int)
}

// Stay implements Stayer: until the window ends, the arm stays while its index at lo is above
// every rival's at hi.
func (p *DPUCB) Stay() (rounds int, while privacy.Index) {
	if p.anytime || p.counter || p.last < 0 {
		return 0, while
	}
	return p.until - 1 - p.round, privacy.Index{Root: p.lo, Inv: p.gamma, Above: p.rival}
}

// Stayed implements Stayer.
func (p *DPUCB) Stayed(rounds int) { p.round += rounds }
