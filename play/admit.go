package play

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// Take says how many decisions of an arm a batch gets that asked for n of them.
type Take int

const (
	// AtLeast takes the oldest whole segments of the arm's queue until it has n. The policy must
	// count by what was released, not by what it asked for.
	AtLeast Take = iota + 1
	// Exactly takes the n oldest: for policies whose proofs, or whose schedules, fix where the
	// batches of an arm end.
	Exactly
	// Jointly takes what a row of decisions of all arms has of each, see Joint: n in expectation.
	Jointly
)

// String is "at least", "exactly" or "jointly".
func (t Take) String() string {
	switch t {
	case AtLeast:
		return "at least"
	case Exactly:
		return "exactly"
	case Jointly:
		return "jointly"
	}
	return fmt.Sprintf("take %d", int(t))
}

// An Exact policy knows beforehand where the releases of an arm end, whatever is released: its
// decisions can be cut there when they are made, and it gets exactly what it asks for.
type Exact interface {
	policy.Policy
	// End is how many decisions of the arm have been released when the release after the first n of
	// them is: above n, and the same for the same n.
	End(arm, n int) int
}

// A Flexible policy may get more rewards than it asked for, and never none: it counts by what was
// released, and all that is proved of it stays true.
type Flexible interface {
	policy.Policy
	BearsMore() bool
}

// A Dropper can go on without an arm that the operator takes off.
type Dropper interface {
	policy.Policy
	// Drop takes the arm off for good and withdraws the batch that is out. Next, with nothing
	// released, then asks for another one. At least one arm is left.
	Drop(arm int)
}

// A Grower can go on with one arm more, which the operator adds.
type Grower interface {
	policy.Policy
	// AddArm adds an arm, whose number is that after the last, and withdraws the batch that is out, as
	// Dropper.Drop does; or it says why it cannot, and nothing has changed.
	AddArm() error
}

// AddsArms says why no arm can be added to what a policy plays live, and is nil if one can: what is proved of
// it must be proved with arms that come later (Grower, JointGrower). A policy may say itself why not, by a method
// NoArm.
func AddsArms(p policy.Policy) error {
	switch p.(type) {
	case Grower, JointGrower:
		return nil
	}
	why := "nothing is proved of it with an arm that comes later"
	if r, ok := p.(interface{ NoArm() string }); ok {
		why = r.NoArm()
	}
	return fmt.Errorf("%T takes no arm while it is played: %s", p, why)
}

// Admit says how a policy takes its queue when it is played live, and refuses those that
// cannot be: by their mechanism, or because nobody has looked whether they bear with more
// rewards than they asked for.
func Admit(p policy.Policy) (Take, error) {
	switch m := p.Mechanism().(type) {
	case privacy.Laplace, privacy.Gaussian:
	case nil:
		return 0, fmt.Errorf("play: %T has no mechanism", p)
	case privacy.Exact:
		return 0, fmt.Errorf("play: %T cannot be played live: it reads running sums without "+
			"noise, which cost ∞", p)
	case privacy.Sparse:
		return 0, fmt.Errorf("play: %T cannot be played live: the noise of a sparse vector's "+
			"threshold outlives a release, and cannot be stored safely", p)
	default:
		return 0, fmt.Errorf("play: %T cannot be played live: the noise of its mechanism, %s, "+
			"outlives a release, and cannot be stored safely", p, m.Kind())
	}
	if r, ok := p.(interface{ Restarts() bool }); ok && r.Restarts() {
		return 0, fmt.Errorf("play: %T cannot be played live: it starts afresh and forgets "+
			"decisions whose rewards are still to come", p)
	}
	if _, ok := p.(Joint); ok {
		return Jointly, nil
	}
	if _, ok := p.(Exact); ok {
		return Exactly, nil
	}
	if bearsMore(p) {
		return AtLeast, nil
	}
	return 0, fmt.Errorf("play: %T is not admitted to live use, must say where its batches end (Exact, "+
		"Joint), or that they may bring more than it asked for (Flexible)", p)
}

// AdmitAtLeast is Admit for a play in which what a batch has may turn out not to count: it says
// whether the policy bears that batches bring more than it asked for.
func AdmitAtLeast(p policy.Policy) error {
	take, err := Admit(p)
	if err != nil {
		return err
	}
	if take != Jointly && !bearsMore(p) {
		return fmt.Errorf("play: %T takes exactly what it asks for, and cannot do without a decision "+
			"that was made", p)
	}
	return nil
}

func bearsMore(p policy.Policy) bool {
	f, ok := p.(Flexible)
	return ok && f.BearsMore()
}
