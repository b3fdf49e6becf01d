package verdict

import (
	"fmt"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Sums is an audit of a mechanism of sums, or of running sums.
type Sums struct {
	Settings
	Mechanism privacy.Mechanism
	// Arms sums are released together, Records rewards of each between two releases, Looks times;
	// of running sums one, after every reward.
	Arms, Records, Looks int
	Delta                *float64 // nil: 0 where ε-DP is claimed, else 0.01
	Fault                audit.Fault
	Real                 bool // the curator of real rewards
	Searched             int  // games of the search with each adversary
	Further              audit.Further
}

// Running says whether a mechanism is one of running sums: one sum, released after every reward.
func Running(m privacy.Mechanism) bool {
	d, ok := privacy.DrawsOf(m)
	return ok && d.Sum && d.Law != "" && !d.Once
}

// Prepare checks the audit.
func (s Sums) Prepare() (*Searched, error) {
	m := s.Mechanism
	if Running(m) {
		s.Arms, s.Records = 1, 1
	}
	delta, err := s.deltaFor(s.Delta, m)
	if err != nil {
		return nil, err
	}
	subject, err := audit.MechanismSubject(m, s.Arms, s.Records, s.Looks)
	if err != nil {
		return nil, err
	}
	cur := noise.NewFast(1, 2)
	if _, err := release.Simulated(release.Config{Arms: s.Arms, Mechanism: m}, &cur); err != nil {
		return nil, fmt.Errorf("MECHANISM is %s, must be one of sums: %w", m.Kind(), err)
	}
	p := &Page{Title: "Audit of a mechanism", Description: "Two data sets that differ in one " +
		"reward; an adversary chooses them, sees what is released, and says which of the two it was."}
	p.fact("mechanism", "%v", m)
	p.fact("releases", "%s of %s, after every %s of each", words.Counted(s.Looks, "release", "releases"),
		words.Counted(s.Arms, "sum", "sums"), words.Counted(s.Records, "reward", "rewards"))
	a, err := p.breaks(audit.PolicyAudit{Subject: subject, Delta: delta, Gamma: s.Gamma,
		Adversaries: audit.Adversaries(s.Arms, subject.Horizon, audit.View), Games: s.Games,
		Pilot: s.Searched, Workers: s.Workers, Key: s.key("mechanism", m.Kind())},
		s.Fault, s.Real, audit.Faults(m))
	if err != nil {
		return nil, err
	}
	p.fact("neighbours", "one reward replaced by another, in [0, 1]")
	p.fact("the claim", "%s", s.claimText(m.Loss(), delta))
	p.fact("adversary", "knows all rewards but one, has chosen them, and sees every number that is "+
		"released")
	x := a.Search(s.Further)
	if g, ok := m.(privacy.Gaussian); ok && s.Claim == nil {
		x.Mu = 1 / g.Sigma
	}
	return s.searched(p, x), nil
}

// Messages is an audit of a protocol's messages of one batch of users.
type Messages struct {
	Settings
	Mechanism privacy.Mechanism // Aggregated, SplitMix, Clones or ShuffledCount
	Delta     *float64          // nil: 0 where ε-DP is claimed, else 0.01
	Half      bool              // its broken twin, with half the noise
	Searched  int               // games of the search with each adversary
	Further   audit.Further
}

// OfMessages says whether a mechanism is one of a batch of users.
func OfMessages(m privacy.Mechanism) bool {
	switch m.(type) {
	case privacy.Aggregated, privacy.SplitMix, privacy.Clones, privacy.ShuffledCount:
		return true
	}
	return false
}

// Prepare checks the audit.
func (s Messages) Prepare() (*Searched, error) {
	m := s.Mechanism
	d, err := audit.MessageSubject(m, s.Half)
	if err != nil {
		return nil, err
	}
	if d.Delta, err = s.deltaFor(s.Delta, m); err != nil {
		return nil, err
	}
	d.Gamma, d.Games, d.Pilot, d.Workers = s.Gamma, s.Games, s.Searched, s.Workers
	d.Key = s.key("mechanism", m.Kind())
	p := &Page{Title: "Audit of a mechanism", Description: "Two data sets that differ in one " +
		"reward; an adversary chooses them, sees what is released, and says which of the two it was.",
		Broken: s.Half, Cannot: []string{simulatedOnly}}
	broken := "none"
	if s.Half {
		broken = "half"
	}
	p.fact("mechanism", "%v", m)
	p.fact("broken on purpose", "%s", broken)
	p.fact("neighbours", "one user's reward, 0 or 1")
	p.fact("the claim", "%s", s.claimText(m.Loss(), d.Delta))
	p.fact("adversary", "knows all other users' rewards, and sees what the protocol shows")
	x, err := d.Search(s.Further)
	if err != nil {
		return nil, err
	}
	return s.searched(p, x), nil
}
