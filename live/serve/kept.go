package serve

import (
	"context"
	"fmt"
	"time"
)

// A Kept is what an experiment keeps of a unit, for whoever asks what is known of them. It has no reward and
// does not say whether one came, which no part of the service knows of a unit: it is the same, and takes the same work,
// whatever was reported.
type Kept struct {
	Experiment string `json:"experiment"`
	State      State  `json:"state"` // of the experiment
	Assigned   bool   `json:"assigned"`
	// Erased: the unit was, and a keyed hash is kept, so that it is not assigned again.
	Erased bool `json:"erased,omitempty"`
	// Arm is what was given last. With contexts the action's name is not kept.
	Arm        string  `json:"arm,omitempty"`
	Propensity float64 `json:"propensity,omitempty"`
	// Time is when it was given, to the second, or activated; nil where an earlier program gave it, which has kept
	// Expires alone, and of what was not activated.
	Time *time.Time `json:"time,omitempty"`
	// Expires is when the window of its reward has passed, and ActivateBy when it can be activated no more.
	Expires    *time.Time `json:"expires_at,omitempty"`
	ActivateBy *time.Time `json:"activate_by,omitempty"`
	// Assignments are how many the unit had.
	Assignments uint32 `json:"assignments,omitempty"`
	// Person is how many decisions the experiment counts of a person of this name.
	Person  uint32 `json:"person,omitempty"`
	Rewards string `json:"rewards"` // what there is of them, in words
}

// What there is of the rewards of anybody.
const (
	sumsAlone = "Rewards are kept in sums of many decisions alone. The service cannot say what was reported of this " +
		"unit, nor whether anything was."
	sumsHidden = "The service sees no reward: what is reported hides it, and is opened in sums of many decisions alone. It " +
		"cannot say what was reported of this unit, nor whether anything was."
	sumsTotals = "Rewards are kept in sums of many decisions. Until a decision is released, a running total stands in a row of " +
		"its own, under the decision's number: it is read for that sum alone, and for no answer."
)

// Kept says what an experiment keeps of a unit, and writes in the journal that somebody has asked, without the name.
func (e *Engine) Kept(ctx context.Context, name, unit string) (Kept, error) {
	if unit == "" || len(unit) > maxUnit {
		return Kept{}, fmt.Errorf("%w has %d bytes, must have from 1 to %d", ErrUnit, len(unit), maxUnit)
	}
	x, err := e.find(name)
	if err != nil {
		return Kept{}, err
	}
	if !e.cfg.ReadOnly {
		if err := e.act(ctx, name, Entry{Did: "look up a unit"}, func(*served, int64) error { return nil }); err != nil {
			return Kept{}, err
		}
		if x, err = e.find(name); err != nil { // it may have been read again since
			return Kept{}, err
		}
	}
	x.mu.Lock()
	read := x.play == nil && x.rec.State != Draft && x.rec.State != Archived
	t, p := tagOf(x.tags, unit), tagOf(x.persons, unit)
	stones := [2]tag{x.stone(t), x.stone(p)}
	of, form := x.units, x.form()
	if !read {
		defer x.mu.Unlock()
		return x.kept(of, t, p, stones), nil
	}
	x.mu.Unlock()
	// Without a play assignments are in the store alone.
	of = map[tag]assignment{}
	e.mu.RLock()
	st := e.reading
	e.mu.RUnlock()
	for block, err := range e.read(st, st.Units(ctx, x.id)) {
		if err == nil {
			err = form.read(block, func(at tag, u assignment, _ epochTag, _ *event) {
				if at == t || at == p || at == stones[0] || at == stones[1] {
					of[at] = u
				}
			})
		}
		if err != nil {
			return Kept{}, fmt.Errorf("experiment %q: %w", name, err)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.kept(of, t, p, stones), nil
}

// kept is what units have of one, of a person of its name, and of what was erased of both.
func (x *served) kept(units map[tag]assignment, t, p tag, stones [2]tag) Kept {
	out := Kept{Experiment: x.decl.Name, State: x.durable.state, Rewards: sumsAlone}
	switch {
	case x.gatherer != nil:
		out.Rewards = sumsHidden
	case x.aggregates:
		out.Rewards = sumsTotals
	}
	_, out.Erased = units[stones[0]]
	if x.decl.Unit.PerPerson > 0 {
		out.Person = units[p].used
		if _, was := units[stones[1]]; was {
			out.Erased = true
		}
	}
	u, was := units[t]
	if out.Assigned = was && u.propensity > 0 && u.arm < personArm; !out.Assigned {
		return out
	}
	at := func(ms int64) *time.Time {
		t := time.UnixMilli(ms).UTC()
		return &t
	}
	out.Propensity, out.Assignments, out.Expires = u.propensity, u.used, at(u.deadline)
	if x.decl.Contextual == nil && int(u.arm) < len(x.decl.Arms) {
		out.Arm = x.decl.Arms[u.arm].Name
	}
	if u.open > 0 {
		out.Time = at(u.deadline - 1000*int64(u.open))
	}
	if u.by != 0 {
		out.ActivateBy = at(u.by)
	}
	return out
}
