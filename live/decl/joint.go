package decl

import (
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// What a contextual experiment protects: rewards, or under joint differential privacy a decision's
// context, the features of its actions, and its reward, in all that anybody else is given.
const (
	ProtectReward = "reward"
	ProtectJoint  = "joint"
)

var protections = []string{ProtectReward, ProtectJoint}

// HistogramPolicy is who decides where contexts are protected, vectors are few, and no policy is named.
const HistogramPolicy = catalog.HistogramTS

// Counted says that contexts are protected by histograms of the vectors that were played, which are few.
func (l *Experiment) Counted() bool {
	return l.Contextual.Joint() && l.Policy.Policy == HistogramPolicy
}

// jointPolicy is who decides where contexts are protected and no policy is named: by counts, if the map makes few
// vectors. Else none is, and the error of a missing policy says it.
func (l *Experiment) jointPolicy() string {
	if _, err := l.rows(); err != nil {
		return ""
	}
	return HistogramPolicy
}

// rows are all vectors that the map makes.
func (l *Experiment) rows() ([]float64, error) {
	p, err := l.Mapper()
	if err != nil {
		return nil, err
	}
	rows, err := p.Rows()
	var wrong *feature.Error
	if errors.As(err, &wrong) {
		return nil, l.fail("contextual."+wrong.Field, "%s, for policy %s", wrong.Reason, HistogramPolicy)
	}
	return rows, err
}

// Joint says that contexts are protected as well as rewards.
func (c *Contextual) Joint() bool { return c != nil && c.Protect == ProtectJoint }

// maxReleases is how many matrices a transcript may have: each is a line of (d+1)(d+2)/2 numbers.
const maxReleases = 1 << 12

// checkProtect says what is wrong with what a contextual experiment protects.
func (l *Experiment) checkProtect() error {
	c := l.Contextual
	switch {
	case c.Protect == "" || c.Protect == ProtectReward:
		return nil
	case c.Protect != ProtectJoint:
		return l.fail("contextual.protect", "is %q, must be %s or %s", keyed.Clip(c.Protect), ProtectReward,
			ProtectJoint)
	case l.Public:
		return l.fail("public", "is true, must be false with contextual.protect: joint: whoever is not the "+
			"unit must not see what it was given, nor what follows from that")
	case l.Exposure == ExposeActivate:
		return l.fail("exposure", "is %s, must be %s with contextual.protect: joint: whether a decision is met "+
			"may follow from what was given, and counts would tell", ExposeActivate, ExposeDecide)
	case len(c.Rules) > 0:
		return l.fail("contextual.rules", "has %d, must have none with contextual.protect: joint: weights "+
			"follow from contexts", len(c.Rules))
	case c.Mode == ModeApprentice:
		return l.fail("contextual.mode", "is %s, must be %s with contextual.protect: joint: what the policy "+
			"would have won is measured by a rule, whose weights follow from contexts", ModeApprentice, ModeLearn)
	}
	return nil
}

// jointParams are the policy's parameters under joint privacy: noise that can be made exact and
// kept, unless the file says otherwise, in leaves that it says.
func (l *Experiment) jointParams(entry catalog.Entry, given catalog.Params) error {
	const noise, leaf = "noise", "leaf"
	if entry.Name == HistogramPolicy {
		return nil // which has neither
	}
	if _, ok := entry.Param(leaf); !ok {
		return l.fail("policy", "%s cannot protect contexts live, must be %s, jdp-greedy or lin-ucb with "+
			"contextual.protect: joint, or contextual.protect: %s", entry.Name, HistogramPolicy, ProtectReward)
	}
	_, noisy := entry.Param(noise)
	if _, said := l.Policy.Params[noise]; noisy && !said {
		given[noise] = float64(linear.GramTree)
	}
	horizon, m := int(l.Horizon), int(given[leaf])
	switch {
	case noisy && linear.GramNoise(given[noise]) != linear.GramTree:
		return l.fail("policy.noise", "must be tree: the noise of others cannot be made exact, nor kept when "+
			"the service is restarted")
	case horizon/m > maxReleases:
		least := (horizon + maxReleases - 1) / maxReleases
		for horizon%least != 0 {
			least++
		}
		return l.fail("policy.leaf", "is %d, which are %d releases of a matrix each, must be at least %d: so "+
			"many decisions wait for each other, and the price is of the number of releases", m, horizon/m, least)
	case horizon%m != 0:
		return l.fail("policy.leaf", "is %d, must divide the horizon, %d: what is left would never be "+
			"learnt from", m, horizon)
	}
	return nil
}

// jointEnough is from how many decisions on what was played outweighs the noise in the matrix, where
// it is spread over all components: twice what the policy adds to be above it.
func (l *Experiment) jointEnough() (dim int, decisions float64) {
	p, err := l.NewContextual(ZeroCoins{})
	if err != nil {
		return 0, 0
	}
	switch q := p.(type) {
	case *linear.LinUCB:
		return q.Dim(), 2 * float64(q.Dim()) * q.Regulariser()
	case *linear.JDPGreedy:
		return q.Dim(), q.Outweighs()
	case *linear.HistogramTS:
		return q.Dim(), q.Outweighs()
	}
	return 0, 0
}

// jointGuarantee is what is promised under joint privacy.
func (l *Experiment) jointGuarantee(each privacy.Budget) string {
	return fmt.Sprintf("what is decided for all others depends on a %s's context, features of actions and "+
		"reward by released noisy %s alone, at %v under joint differential privacy for each event; what is decided "+
		"for it is chosen by its own context and hides nothing from who sees it, nor is it hidden that and "+
		"when it asked; whoever sends contexts to the service sees them", l.Unit.Of, l.Contexts(), shortly(each))
}

// Contexts is what is released of contexts that are protected.
func (l *Experiment) Contexts() string {
	if l.Counted() {
		return "counts"
	}
	return "matrices"
}
