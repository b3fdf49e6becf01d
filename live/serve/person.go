package serve

import (
	"errors"
	"fmt"
	"math"
)

// Where an experiment declares per_person, each decision names its person, and no more than so many of
// one person's count, whatever units they are of. A person's decisions are counted among the units, under a
// hash of another key, in the commit of the decision: what a crash loses of one it loses of both, and the
// decision is void. A decision that may be activated counts when it is offered.

// ErrPerson: the decision must name a person, or names one that is too long.
var ErrPerson = errors.New("person")

// personArm marks, among the units, a person whose decisions are counted.
const personArm = math.MaxUint16 - 1

// checkPerson says what is wrong with how a decision names its person.
func (x *served) checkPerson(name string) error {
	switch {
	case x.decl.Unit.PerPerson == 0:
		return nil
	case name == "":
		return fmt.Errorf("%w is missing: the experiment counts the decisions of each", ErrPerson)
	case len(name) > maxUnit:
		return fmt.Errorf("%w has %d bytes, must have at most %d", ErrPerson, len(name), maxUnit)
	}
	return nil
}

// full says that no further decision of a person counts: there were as many, or it was erased.
func (x *served) full(person string) bool {
	if x.decl.Unit.PerPerson == 0 {
		return false
	}
	t := tagOf(x.persons, person)
	return int(x.units[t].used) >= int(x.decl.Unit.PerPerson) || x.erased(t)
}

// countPerson counts a decision of a person.
func (x *served) countPerson(person string) {
	if x.decl.Unit.PerPerson > 0 {
		t := tagOf(x.persons, person)
		x.keep(t, assignment{arm: personArm, propensity: 1, epoch: x.at, used: x.units[t].used + 1})
	}
}
