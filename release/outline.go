package release

import (
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A Form is all of a release but its sums: what follows from the mechanism and from the numbers of
// rewards, before any noise is drawn.
type Form struct {
	Slots     []int             // of each sum, as the ledger numbers them
	Mechanism privacy.Mechanism // that was charged, with the noise really used
	N         []int             // rewards in each sum
	Tail      privacy.Tail      // of the noise in a sum
}

// An Outline says what the releases of a curator with a ledger of its own look like, without
// rewards, noise or a ledger: what a journal of releases is held against. It is used as the curator
// is: Play where that has Add, then Release.
type Outline struct{ of outliner }

// outliner is a curator of either kind.
type outliner interface {
	put(arm, n int, y float64) error
	outline(arms []int) (Form, error)
}

// NewOutline is for the curator that Real returns for cfg, or else the one that Simulated does. The
// mechanism must be one that answers no questions, and there is none for a trust model.
func NewOutline(cfg Config, real bool) (*Outline, error) {
	switch _, asks := cfg.Mechanism.(privacy.Sparse); {
	case asks:
		return nil, errors.New("outline: mechanism is sparse: its releases depend on answers")
	case cfg.Trust != nil:
		return nil, fmt.Errorf("outline: trust is %s, must be missing", cfg.Trust.Model)
	}
	cfg.Ledger = nil
	var of outliner
	var err error
	if real { // nothing is ever drawn
		of, err = newExact(cfg, nil)
	} else {
		of, err = newSimulated(cfg, &noise.Fast{})
	}
	if err != nil {
		return nil, err
	}
	return &Outline{of}, nil
}

// Play says that n more rewards are in the arm's slot.
func (o *Outline) Play(arm, n int) error { return o.of.put(arm, n, 0) }

// Release is what the release of these arms' slots looks like, and moves on to what is after it.
func (o *Outline) Release(arms []int) (Form, error) { return o.of.outline(arms) }

func (c *curator[T]) outline(arms []int) (Form, error) {
	if err := c.check(arms); err != nil {
		return Form{}, err
	}
	out, longest := Form{Mechanism: c.charge}, 0
	for _, a := range arms {
		s := c.slots[a]
		out.Slots, out.N = append(out.Slots, s.id), append(out.N, s.n)
		longest = max(longest, s.n)
		c.settle(a, nil)
	}
	out.Tail = c.tail(longest)
	return out, nil
}
