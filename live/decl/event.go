package decl

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// Events: numbers of a decision that are reported by what its unit does, under the unit's name, and not by
// the decision's token. Each number declares the event that has it, and which of the event's fields it is.

// A Source is where a number of each decision comes from: an event's field. Without an event it is reported
// with the decision's token.
type Source struct {
	// Event is the event's name. Field is the field of it that is the number; if that is missing, or is no number,
	// the event says the number's default. Without a Field it is the event's value, 1 if it has none.
	Event, Field string
}

// ValueField is the field that has the value of an event.
const ValueField = "value"

// sourceKeys are the keys of a source.
func sourceKeys[T any](of func(*T) *Source) []keyed.Key[T] {
	return []keyed.Key[T]{
		keyed.Of("event", keyed.Filled(""), func(x *T) *string { return &of(x).Event },
			"the event that reports it under the unit's name, such as checkout; with the decision's token if it is not given"),
		keyed.Of("field", keyed.Filled(""), func(x *T) *string { return &of(x).Field },
			"the field of the event that has it; the event's value, or 1, if it is not given"),
	}
}

// sources are those of the reward and of the metrics.
func (l *Experiment) sources() []Source {
	out := []Source{l.Source}
	for _, m := range l.Metrics {
		out = append(out, m.Source)
	}
	return out
}

// Events are the names of the events that the experiment declares, each once.
func (l *Experiment) Events() (names []string) {
	for _, s := range l.sources() {
		if s.Event != "" && !slices.Contains(names, s.Event) {
			names = append(names, s.Event)
		}
	}
	return names
}

// Apart says that the numbers of a decision are reported apart from each other, since they are of several
// events: then the first report of each number counts, where else the first of the decision does.
func (l *Experiment) Apart() bool {
	return slices.ContainsFunc(l.Metrics, func(m Metric) bool { return m.Event != l.Event })
}

// Told is what an event says of a decision that it is the event of: its reward, and the metrics in their
// order, NaN where it says nothing. The number of a missing field is its default, or nothing where all
// reports count.
func (l *Experiment) Told(event string, fields map[string]float64) (reward float64, metrics []float64) {
	reward = l.Source.told(event, fields, l.Aggregate, l.Default)
	for _, m := range l.Metrics {
		metrics = append(metrics, m.Source.told(event, fields, m.Aggregate, m.Default))
	}
	return reward, metrics
}

func (s Source) told(event string, fields map[string]float64, aggregate string, missing float64) float64 {
	if s.Event != event {
		return math.NaN()
	}
	field := s.Field
	if field == "" {
		field, missing, aggregate = ValueField, 1, ""
	}
	switch x, ok := fields[field]; {
	case ok:
		return x
	case aggregate != "":
		return math.NaN()
	}
	return missing
}

// heard says what it costs that an event can be declared more than once; empty without events.
func (l *Experiment) heard() string {
	if len(l.Events()) == 0 {
		return ""
	}
	return "; an event counts in every experiment that declares it, and their prices add up"
}

// checkEvents says what cannot be reported by events.
func (l *Experiment) checkEvents() error {
	for i, s := range l.sources() {
		at := "reward"
		if i > 0 {
			at = fmt.Sprintf("metrics[%d]", i-1)
		}
		switch {
		case s.Event == "" && s.Field != "":
			return l.fail(at+".field", "is %q, and no event is declared that has it: give event, too", keyed.Clip(s.Field))
		case s.Event == "":
			continue
		case l.Contextual != nil:
			return l.fail(at+".event", "is %q, and is not for contextual experiments: each decision is an event of its own, "+
				"which is rewarded by its name", keyed.Clip(s.Event))
		case l.TrustModel() != privacy.TrustCentral:
			return l.fail(at+".event", "is %q, and is for trust central: under trust %s a decision has one report, at its "+
				"time, so that none tells whether something happened", keyed.Clip(s.Event), l.TrustModel())
		case l.Missing == MissingDrop:
			return l.fail(at+".event", "is %q with missing: drop, which needs a report of every outcome: an event says what "+
				"has happened, and nobody tells of what has not", keyed.Clip(s.Event))
		case l.Exposure == ExposeActivate && l.Assignments() > 1:
			return l.fail(at+".event", "is %q, and a %s has up to %d assignments with exposure: %s, must be 1: the offer of "+
				"another decision takes the place of the one that is open", keyed.Clip(s.Event), l.Unit.Of, l.Assignments(), ExposeActivate)
		}
		if err := keyed.CheckLabel(s.Event); err != nil {
			return l.src.Wrap(at+".event", err)
		}
		if s.Field == "" {
			continue
		}
		if err := keyed.CheckLabel(s.Field); err != nil {
			return l.src.Wrap(at+".field", err)
		}
	}
	if l.Apart() && l.Assignments() > 1 {
		return l.fail("unit.assignments", "is %d, and the numbers are of several events, must be 1: what is kept of each "+
			"decision is destroyed with its unit, of which the newest decision alone is known", l.Assignments())
	}
	return nil
}
