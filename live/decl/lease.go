package decl

import (
	"fmt"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// Leases say that clients decide by themselves, by a public plan (package live/lease), and tell the service of it: a
// decision counts from its exposure on. The zero value is none.
type Leases struct {
	// For is how long a plan may be used, and Delay how long after that an exposure still counts.
	For, Delay time.Duration
	// Exposures is ExposuresStrict where a key that reports exposures must not report events or rewards, too.
	Exposures string
}

// ExposuresStrict is what Leases.Exposures may be, if it is not empty.
const ExposuresStrict = "strict"

// The bounds of leases. A delay has so many times For at most, so that the plans whose exposures
// count are few.
const (
	MinLease   = time.Second
	MaxLease   = 24 * time.Hour
	mostDelays = 100
)

// On says that there are leases.
func (l Leases) On() bool { return l != Leases{} }

func leaseKeys() []keyed.Key[Leases] {
	return []keyed.Key[Leases]{
		keyed.Always("for", lasting(), func(l *Leases) *time.Duration { return &l.For },
			"how long clients may decide by a plan, from 1s to 24h").Must(),
		keyed.Always("delay", lasting(), func(l *Leases) *time.Duration { return &l.Delay },
			"how long after that an exposure still counts, at most 100 times as long").Must(),
		keyed.Of("exposures", keyed.OneOf([]string{ExposuresStrict}), func(l *Leases) *string { return &l.Exposures },
			"strict: a key that reports exposures must not report events or rewards, too"),
	}
}

func leasesKey() keyed.Key[Experiment] {
	return keyed.Of("leases", keyed.Mapped(leaseKeys), func(l *Experiment) *Leases { return &l.Leases },
		"clients decide by a public plan, without a request, and report their exposures")
}

// checkLeases says what is wrong with leases, and with what cannot be decided by a plan.
func (l *Experiment) checkLeases() error {
	s := l.Leases
	switch {
	case !s.On():
		return nil
	case !(s.For >= MinLease && s.For <= MaxLease):
		return l.fail("leases.for", "is %v, must be from %v to %v", s.For, MinLease, MaxLease)
	case !(s.Delay >= MinWindow && s.Delay <= mostDelays*s.For):
		return l.fail("leases.delay", "is %v, must be from %v to %d times leases.for, %v", s.Delay, MinWindow, mostDelays,
			mostDelays*s.For)
	case s.Exposures != "" && s.Exposures != ExposuresStrict:
		return l.fail("leases.exposures", "is %q, must be %s, or left out", keyed.Clip(s.Exposures), ExposuresStrict)
	}
	for _, key := range []struct {
		name  string
		given bool
		why   string
	}{
		{"trust", l.TrustModel() != privacy.TrustCentral, "a report needs the ticket of a decision, which an exposure has not"},
		{"unit.assignments", l.Assignments() > 1, "the first exposure of a unit counts, and a client cannot know of others"},
		{"unit.per_person", l.Unit.PerPerson > 0, "a client cannot know how many decisions a person has"},
		{"sticky", l.Free, "a plan gives the same unit the same arm, and its exposure counts once"},
		{"forget", l.Forget > 0, "a unit has one assignment, and does not come back before the end"},
		{"exposure", l.Exposure != "" && l.Exposure != ExposeDecide, "an exposure is when it counts"},
		{"missing", l.Missing == MissingDrop, "rewards are of events, and nobody tells of what has not happened"},
		{"share", l.Share != 0, "a plan is for every unit"},
		{"ramp", l.Ramp != nil, "a plan is for every unit"},
		{"only", l.Only != nil || l.Where != nil, "a plan is for every unit, and has no context"},
		{"by", l.By.Key != "", "the cell is fixed with the decision, by a context that an exposure has not"},
		{"layer", l.Layer != Layer{}, "a plan is for every unit"},
		{"holdout", l.Holdout != "", "a plan is for every unit, and a client cannot know who is held"},
	} {
		if key.given {
			return l.fail(key.name, "is not for leases: %s", key.why)
		}
	}
	for i, source := range l.sources() {
		if source.Event == "" {
			at := "reward"
			if i > 0 {
				at = fmt.Sprintf("metrics[%d]", i-1)
			}
			return l.fail(at+".event", "is missing, must be the event that reports it: a leased decision has no token")
		}
	}
	return nil
}

// leased is the premise of leases, for the guarantee; empty without.
func (l *Experiment) leased() string {
	if !l.Leases.On() {
		return ""
	}
	arm := ""
	if l.Split() {
		arm = ", and for intervals not on its arm"
	}
	return fmt.Sprintf("; clients decide by a public plan, so that whoever knows a %s's name knows its arm, and a decision "+
		"counts from its exposure on: whether and when an exposure comes must not depend on its outcome%s; keys are for "+
		"clients that are trusted to report the arm they gave, as one that lies chooses among plans and hashes", l.Unit.Of, arm)
}
