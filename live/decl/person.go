package decl

import (
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
)

// PersonBudget is what one person may lose by all that the experiment releases, where its unit is
// called of if that is a person: with metrics, rules and all assignments. An error says why nothing
// that the service enforces bounds it. The experiment must pass Check.
//
// With unit.per_person, every decision of a person is one record, and the person loses what so
// many records together do (privacy.Group). Without, a unit is a person, and has its assignments
// counted.
func (l *Experiment) PersonBudget(of string) (privacy.Budget, error) {
	m := int(l.Unit.PerPerson)
	switch {
	case l.Counted():
		return nil, l.fail("contextual.protect", "is %s: what a person loses by several decisions is not added up "+
			"where contexts are protected", ProtectJoint)
	case l.Contextual.Joint():
		return nil, l.fail("contextual.protect", "is %s: noise that is kept from release to release does not "+
			"add up in rho where experiments end by what they released", ProtectJoint)
	case m > 0:
		each, err := l.EachTotal()
		if err != nil {
			return nil, err
		}
		total, err := privacy.Group(each, m)
		if err != nil {
			return nil, l.fail("unit.per_person", "is %d: %w", m, err)
		}
		return shortly(total), nil
	case l.Contextual != nil:
		return nil, l.unbounded(of, "contextual", "is of events")
	case l.Unit.Of != of:
		return nil, l.unbounded(of, "unit.of", "is %s", l.Unit.Of)
	case l.Free:
		return nil, l.unbounded(of, "sticky", "is false")
	}
	return l.Total(), nil
}

func (l *Experiment) unbounded(of, field, is string, args ...any) error {
	return l.fail(field, "%s, and nothing bounds how often one %s counts: declare unit.per_person, and name the "+
		"person in each decision", fmt.Sprintf(is, args...), of)
}

// ByPerson says that a unit is a person, who has one position in the experiment's layer: that of one who has
// several units is not known.
func (l *Experiment) ByPerson() bool { return l.Unit.PerPerson == 0 }

// person is what per_person promises, empty without.
func (l *Experiment) person() string {
	total, err := l.PersonBudget(l.Unit.Of)
	if l.Unit.PerPerson == 0 || err != nil {
		return ""
	}
	return fmt.Sprintf("; at most %d decisions of a person count, and all of them cost the person %v",
		int(l.Unit.PerPerson), total)
}
