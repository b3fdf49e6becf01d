package decl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
)

// FormCloudEvents has the webhook told in CloudEvents 1.0.
const FormCloudEvents = "cloudevents"

// Where an experiment forgets, what it keeps of a unit goes at the first midnight (UTC) that is later than Forget after
// the day of its decision, by the clock alone. From then on nothing knows that the unit was there: who comes back
// is assigned anew, and in one more release. So between two assignments of a unit there are Forget and a
// day, by days, and until LastEnd it has at most Unit.Assignments, which are what is paid for. An End that is later is
// refused; should the service's time pass it all the same, as the clock was set back, nobody is forgotten any more.

// Day is what Forget is made of.
const Day = 24 * time.Hour

// AtOnce is how many assignments a unit may have that is not forgotten.
func (l *Experiment) AtOnce() int {
	if l.Forget > 0 {
		return 1
	}
	return l.Assignments()
}

// LastEnd is when decisions must have ended at the latest that begin at a time, so that no unit has more than its
// assignments, where units are forgotten.
func (l *Experiment) LastEnd(begin time.Time) time.Time {
	each := l.Forget + Day
	many := min(time.Duration(l.Assignments()), 100*MaxWindow/each+1) // a century is long enough, and fits
	return begin.UTC().Truncate(Day).Add(many * each)
}

// CheckEnd says whether decisions that begin at a time, or at the declared start if that is later, end early enough.
func (l *Experiment) CheckEnd(begin time.Time) error {
	if l.Start.After(begin) {
		begin = l.Start
	}
	last := l.LastEnd(begin)
	if l.Forget == 0 || !l.End.After(last) {
		return nil
	}
	return l.fail("end", "is %s, must be at most %s, or unit.assignments, which is %d, must be more: a %s that comes back after %s "+
		"counts as new", l.End.UTC().Format(time.RFC3339), last.Format(time.RFC3339), l.Assignments(), l.Unit.Of,
		daysOf(l.Forget))
}

func (l *Experiment) checkForget() error {
	switch f := l.Forget; {
	case f == 0:
		return nil
	case f < Day || f > MaxRetention || f%Day != 0:
		return l.fail("forget", "is %v, must be whole days, from 1d to %s", f, daysOf(MaxRetention))
	case l.Free:
		return l.fail("forget", "is given, and sticky is false: nothing is kept of a unit")
	case l.Unit.PerPerson > 0:
		return l.fail("forget", "is given, and unit.per_person is %d: a person's decisions must be counted as long as it runs",
			int(l.Unit.PerPerson))
	case f < l.Window+l.Activation():
		return l.fail("forget", "is %s, must be at least the window and the time to activate, %v", daysOf(f),
			l.Window+l.Activation())
	case l.End.IsZero():
		return l.fail("end", "is missing, must be a time: a %s that comes back after %s counts as new, and nothing else bounds how "+
			"often", l.Unit.Of, daysOf(f))
	case l.Start.IsZero(): // see CheckEnd, when it starts
		return nil
	}
	return l.CheckEnd(l.Start)
}

// forgotten is what the guarantee says of it.
func (l *Experiment) forgotten() string {
	if l.Forget == 0 {
		return ""
	}
	what := fmt.Sprintf("; a %s is forgotten %s after its decision and ", l.Unit.Of, daysOf(l.Forget))
	if l.Assignments() == 1 {
		return what + "does not come back before the end"
	}
	return what + "counts as new when it comes back, which it can do " + plural(l.Assignments()-1, "time") + " at most until the end"
}

func daysOf(d time.Duration) string { return strconv.FormatInt(int64(d/Day), 10) + "d" }

// days is a duration in whole days, such as 90d.
func days() keyed.Form[time.Duration] {
	return keyed.Form[time.Duration]{
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *time.Duration) error {
			var text string
			if err := d.Text(n, at, &text); err != nil {
				return err
			}
			number, ok := strings.CutSuffix(text, "d")
			many, err := strconv.ParseUint(number, 10, 16)
			if err != nil || !ok || many == 0 || time.Duration(many)*Day > MaxRetention {
				return d.Fail(n, at, "is %q, must be whole days, from 1d to %s", keyed.Clip(text), daysOf(MaxRetention))
			}
			*to = time.Duration(many) * Day
			return nil
		},
		Write:  func(w time.Duration) (any, error) { return daysOf(w), nil },
		Schema: func() keyed.Object { return keyed.Object{"type": "string", "pattern": "^[1-9][0-9]*d$"} },
	}
}
