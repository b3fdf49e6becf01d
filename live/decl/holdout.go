package decl

import (
	"fmt"

	"github.com/sotto-dp/sotto/internal/keyed"
)

// A holdout is an A/B test that keeps the units of one of its arms, Holds, out of all experiments that name it
// as their Holdout: the test compares what these experiments do together with what would be without them.

func holdoutKeys() []keyed.Key[Experiment] {
	return []keyed.Key[Experiment]{
		keyed.Of("holds", keyed.Text(), func(l *Experiment) *string { return &l.Holds },
			"of policy split: the arm whose units are held out of the experiments that name this one as their holdout"),
		keyed.Of("holdout", keyed.Text(), func(l *Experiment) *string { return &l.Holdout },
			"the experiment whose held units are not in this one"),
	}
}

// checkHoldout says what is wrong with a holdout, and with who has one.
func (l *Experiment) checkHoldout() error {
	switch {
	case l.Holds == "" && l.Holdout == "":
		return nil
	case l.Holdout != "" && (!keyed.NameForm.MatchString(l.Holdout) || len(l.Holdout) > keyed.MaxLabel):
		return l.fail("holdout", "is %q, must be the name of an experiment: at most %d characters of a-z, 0-9, dot, "+
			"dash and underscore, the first a letter or digit", keyed.Clip(l.Holdout), keyed.MaxLabel)
	case l.Holdout == l.Name:
		return l.fail("holdout", "is %q, the experiment itself, must be another one", l.Holdout)
	case l.Holdout != "" && l.Free:
		return l.fail("holdout", "is of units, must be left out where sticky is false and nobody knows them")
	case l.Holds == "":
		return nil
	case !l.Split():
		return l.fail("holds", "is given, and the policy is %s: it is for policy %s", l.Policy.Policy, SplitPolicy)
	}
	held := false
	for _, a := range l.Arms {
		held = held || a.Name == l.Holds
	}
	if !held {
		return l.fail("holds", "is %q, must be one of the arms", keyed.Clip(l.Holds))
	}
	for _, key := range []struct {
		name  string
		given bool
		why   string
	}{
		{"holdout", l.Holdout != "", "who is held by one would be in the other"},
		{"sticky", l.Free, "who is held is known by the name of the unit"},
		{"unit.assignments", l.Assignments() > 1, "a unit has the same arm for good, and its decisions would be no " +
			"draws of their own"},
		{"unit.per_person", l.Unit.PerPerson > 0, "a person of several units would be held as one, and not as another"},
		{"share", l.Share != 0, "its arms are for every unit: give the held arm a small one of shares"},
		{"ramp", l.Ramp != nil, "its arms are for every unit"},
		{"only", l.Only != nil || l.Where != nil, "its arms are for every unit, and other experiments ask in other contexts"},
		{"layer", l.Layer != Layer{}, "its arms are for every unit"},
		{"leases", l.Leases.On(), "its arms are for every epoch"},
	} {
		if key.given {
			return l.fail(key.name, "is not for holdouts: %s", key.why)
		}
	}
	return nil
}

// held is what a holdout means for who is in the experiment, for the guarantee; empty without.
func (l *Experiment) held() string {
	switch {
	case l.Holds != "":
		return fmt.Sprintf("; who is given %q follows from a keyed hash of a %s's name, and experiments that have this one "+
			"as their holdout tell it", l.Holds, l.Unit.Of)
	case l.Holdout != "":
		return fmt.Sprintf("; whom experiment %q holds out follows from a keyed hash of a %s's name, and what that "+
			"experiment releases of the others adds to this", l.Holdout, l.Unit.Of)
	}
	return ""
}
