package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// Events: what units do, reported by the unit's name and the event's, without a decision's token
// (decl.Source). In each experiment that declares an event it is a report on the newest decision of
// its unit, if the window of that is open. It makes no decision, activates none and extends none.
//
// What is told of one is when a commit was durable that would hold whatever it did: who has no
// decision, an open one, one that was rewarded before or one that is late waits for the same and is answered the
// same. The time that decides is that of arrival. A time that an event says of itself can do one
// thing: have it not count for a decision that was made after it. Were it to decide, a client's clock could move an
// event to the side of a deadline that its outcome asks for.

// The newest open decision is meant, whatever it has: were it the newest without a reward, a second decision of a unit
// would get its reward if the first had one, and one person's outcome would be in two decisions' sums. So two streams of
// events that differ in one unit's differ in what the sums of that unit's decision have at their releases, and in
// nothing else: counts, windows and the times of releases are what they are without events.

// Bounds of events.
const (
	MaxEvents = 1000 // of one Track
	MaxEvent  = 256  // bytes of an event's name
)

// An Event is something that a unit did.
type Event struct {
	Name, Unit string
	// ID tells it from the unit's other events of its name, where an experiment counts all of them: of
	// those with the same ID, and of those without one, the first counts.
	ID string
	// Fields are those that are numbers, by their names; decl.ValueField is the event's value.
	Fields map[string]float64
	// At is when it happened, zero if nobody says: then when it comes.
	At time.Time
}

// Check says what is wrong with the form of an event, which no experiment is asked for.
func (v Event) Check() error {
	switch {
	case v.Name == "":
		return fieldError("name", "is missing, must be the event's")
	case len(v.Name) > MaxEvent:
		return fieldError("name", "has %d bytes, must have at most %d", len(v.Name), MaxEvent)
	case v.Unit == "":
		return fieldError("targetingKey", "is missing, must name the unit")
	case len(v.Unit) > maxUnit:
		return fieldError("targetingKey", "has %d bytes, must have at most %d", len(v.Unit), maxUnit)
	case len(v.ID) > maxID:
		return fieldError("id", "has %d bytes, must have at most %d", len(v.ID), maxID)
	}
	return nil
}

// An event that came, as an experiment takes it.
type happened struct {
	unit string
	at   int64 // when it says that it happened; 0: it does not
}

// Track takes events, and returns when what they did is durable, whatever that is: an error is for all of them,
// which can then be sent again. Each counts in the experiments that declare it and that counts gives
// leave for, by the event's place; nil is leave for all.
func (e *Engine) Track(ctx context.Context, events []Event, counts func(i int, experiment string) bool) error {
	if !e.here() {
		return errElsewhere
	}
	if e.cfg.ReadOnly {
		return ErrReadOnly
	}
	for i, v := range events {
		if err := v.Check(); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	// Who has nothing to write waits for a commit, too.
	jobs := []*job{{durable: true, act: func(*served, *store.Commit, int64) error { return nil }}}
	now := e.now()
	for _, x := range e.all() {
		if len(x.listens) == 0 {
			continue
		}
		j := &job{on: x, at: now}
		for i, v := range events {
			if slices.Contains(x.listens, v.Name) && (counts == nil || counts(i, x.decl.Name)) {
				j.reports = append(j.reports, x.reportOf(v))
				j.reports[len(j.reports)-1].result = len(j.reports) - 1
			}
		}
		if j.results = make([]Result, len(j.reports)); len(j.reports) > 0 {
			jobs = append(jobs, j)
		}
	}
	if err := e.do(ctx, jobs...); err != nil {
		return err
	}
	for _, j := range jobs[1:] {
		e.count(j.on.decl.Name, j.results)
	}
	return nil
}

// Names are those of all experiments.
func (e *Engine) Names() (names []string) {
	for _, x := range e.all() {
		names = append(names, x.decl.Name)
	}
	return names
}

// reportOf is what an event reports.
func (x *served) reportOf(v Event) reported {
	r := reported{event: &happened{unit: v.Unit}}
	if !v.At.IsZero() {
		r.event.at = max(1, v.At.UnixMilli()) // 0 is none
	}
	if r.reward, r.metrics = x.decl.Told(v.Name, v.Fields); x.decl.AddsUp() {
		r.id = v.Name + "\n" + v.ID
	}
	return r
}

// decided finds the decision of an event that comes now; ok is false if there is none that was made before it.
func (x *served) decided(r *reported, now int64) (ok bool) {
	var err error
	if r.ticket, err = x.event(r.event.unit); err != nil {
		return false
	}
	ahead := now - x.date(now) // of the clock by which others tell the time
	return r.event.at == 0 || r.event.at >= r.deadline-1000*int64(x.units[r.unit].open)-ahead
}

// openFor is how long an assignment is open, as it is kept.
func (x *served) openFor(milliseconds int64) uint32 {
	if !x.timed() {
		return 0
	}
	return uint32((milliseconds + 999) / 1000) // MaxWindow fits
}
