package audit

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A schedule is the policy that has none: it plays every arm in turn and releases it, and so puts a
// mechanism alone to the test.
type schedule struct {
	mech  privacy.Mechanism
	batch policy.Batch
	left  int
}

func (p *schedule) Mechanism() privacy.Mechanism { return p.mech }

func (p *schedule) Next(privacy.Released) *policy.Batch {
	if p.left == 0 {
		return nil
	}
	p.left--
	return &p.batch
}

// MechanismSubject is a mechanism of running or single sums alone: each arm gets n rewards and is
// released, looks times in all. A sparse mechanism is asked each time whether its statistic is
// above its middle.
func MechanismSubject(m privacy.Mechanism, arms, n, looks int) (Subject, error) {
	if m == nil {
		return Subject{}, fmt.Errorf("audit: mechanism is missing")
	}
	if err := m.Validate(); err != nil {
		return Subject{}, fmt.Errorf("audit: %w", err)
	}
	if n < 1 || looks < 1 {
		return Subject{}, fmt.Errorf("audit: n is %d and looks is %d, both must be at least 1", n, looks)
	}
	if arms < 1 || n > math.MaxInt/looks/arms {
		return Subject{}, fmt.Errorf("audit: arms is %d, must be at least 1, and all rewards "+
			"must fit into an int", arms)
	}
	s := Subject{Name: m.Kind(), Arms: arms, Horizon: arms * n * looks,
		New: func(*noise.Fast) (policy.Policy, error) {
			p := &schedule{mech: m, left: looks}
			for a := range arms {
				p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: n, Release: true})
			}
			if _, ok := m.(privacy.Sparse); ok {
				p.batch.Ask, p.batch.Above = true, float64(n*looks)/2
			}
			return p, nil
		}}
	return s, nil
}

// Real is the subject with the curator of real rewards, release.Real. Its noise is keyed by the
// operating system: no two audits are the same.
func (s Subject) Real() Subject {
	s.Name += ", real"
	s.Curator = func(arms int, m privacy.Mechanism, ledger *privacy.Ledger,
		_ *noise.Fast) (release.Curator, error) {
		c, err := release.Real(release.Config{Arms: arms, Mechanism: m, Ledger: ledger})
		if err != nil {
			return nil, err
		}
		return oneByOne{c}, nil
	}
	return s
}

// oneByOne feeds a curator that cannot clip sums. The rewards of an adversary are all the same
// between two challenges.
type oneByOne struct{ release.Curator }

func (c oneByOne) AddSum(arm, n int, sum float64) error {
	for range n {
		if err := c.Add(arm, sum/float64(n)); err != nil {
			return err
		}
	}
	return nil
}
