package decl

import (
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// Aggregates: what several reports of a decision make of a number, instead of the first one (play.Aggregate).

var aggregates = []string{string(play.AddUp), string(play.CountUp), string(play.TakeMost)}

const aggregateDoc = "what all reports of a decision make of it, clipped as a whole: their sum, how many they are (count), " +
	"or the largest (max); the first counts if it is not given"

// aggregatesOf are those of the reward and of the metrics.
func (l *Experiment) aggregatesOf() []string {
	out := []string{l.Aggregate}
	for _, m := range l.Metrics {
		out = append(out, m.Aggregate)
	}
	return out
}

// Aggregates says that several reports of a decision can count: all of a number, or the first of each.
func (l *Experiment) Aggregates() bool {
	return l.Apart() || slices.ContainsFunc(l.aggregatesOf(), func(how string) bool { return how != "" })
}

// AddsUp says that a report that is sent again would count again, unless it has an id of its own.
func (l *Experiment) AddsUp() bool {
	return slices.ContainsFunc(l.aggregatesOf(), func(how string) bool {
		return how == string(play.AddUp) || how == string(play.CountUp)
	})
}

// checkAggregates says where reports cannot be added up.
func (l *Experiment) checkAggregates() error {
	for i, how := range l.aggregatesOf() {
		at := "reward.aggregate"
		if i > 0 {
			at = fmt.Sprintf("metrics[%d].aggregate", i-1)
		}
		switch {
		case how == "":
		case !slices.Contains(aggregates, how):
			return l.fail(at, "is %q, must be sum, count or max", how)
		case l.Contextual != nil:
			return l.fail(at, "is %s, and is not for contextual experiments: the first reward of an event counts", how)
		case l.TrustModel() != privacy.TrustCentral:
			return l.fail(at, "is %s, and is for trust central: under trust %s a decision has one report, at its time, "+
				"so that none tells whether something happened", how, l.TrustModel())
		case l.Assignments() > 1:
			return l.fail(at, "is %s, and a %s has up to %d assignments, must be 1: what is kept of each decision is "+
				"destroyed with its unit, of which the newest decision alone is known", how, l.Unit.Of, l.Assignments())
		}
	}
	return nil
}

// totals says what is kept of one unit while several reports count; empty where the first does.
func (l *Experiment) totals() string {
	if !l.Aggregates() {
		return ""
	}
	return fmt.Sprintf("; until the sum with a %s's decision is released, the service keeps what its reports add up to, "+
		"for that decision alone, and shows it to nobody", l.Unit.Of)
}
