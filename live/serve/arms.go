package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
)

// What experiments with arms have alone: who is given which, and how one is taken off.

// ValueOf is what who is given an arm is shown: its name, if none was declared. A visitor who was
// shown something else, such as a default of the caller's, would be counted for this arm all the same.
func ValueOf(a decl.Arm) json.RawMessage {
	if len(a.Value) > 0 && string(a.Value) != "null" {
		return a.Value
	}
	name, _ := json.Marshal(a.Name) // a string always can be
	return name
}

// armOf is the number of an arm by its name, −1 if there is none.
func (x *served) armOf(name string) int {
	return slices.IndexFunc(x.decl.Arms, func(a decl.Arm) bool { return a.Name == name })
}

// gone says that an arm was taken off.
func (x *served) gone(arm int) bool { return x.board.queues[arm].Off }

// leaves says that an arm was taken off, or is to be.
func (x *served) leaves(arm int) bool { return x.gone(arm) || slices.Contains(x.rec.Off, arm) }

func (x *served) decide(ask Ask, now int64) (Decision, error) {
	switch {
	case x.decl.Contextual != nil:
		return Decision{}, ErrContextual
	case len(ask.Unit) > maxUnit:
		return Decision{}, fmt.Errorf("%w has %d bytes, must have at most %d", ErrUnit, len(ask.Unit), maxUnit)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.debts.owe(x)
	return x.armFor(ask, now)
}

// armFor gives a unit an arm.
func (x *served) armFor(ask Ask, now int64) (Decision, error) {
	unit := ask.Unit
	if ask.Force != "" {
		arm := x.armOf(ask.Force)
		if arm < 0 {
			return Decision{}, ErrForce
		}
		d := x.give(arm, Forced)
		if x.gatherer == nil {
			d.Token = x.sign.sign(ticket{arm: arm, number: tested}, tag{})
		}
		return d, nil
	}
	ends := x.ends(now)
	switch s := x.rec.State; {
	case ask.NoConsent || !x.decl.For(ask.Context):
		return x.give(x.instead(), Default), nil
	case ask.hold == heldOut:
		return x.give(x.instead(), Holdout), nil
	case ask.hold == heldOrIn && (ends || s == Stopped || s == Archived):
		return Decision{}, fmt.Errorf("%w is missing: the experiment has a holdout", ErrUnit)
	case s == Stopped || s == Archived:
		return x.give(x.rec.Keep, Static), nil
	case (s == Paused || ends) && !x.decl.Free && unit != "" && !x.board.watch.held:
		t := tagOf(x.tags, unit)
		if u, was := x.units[t]; was && !x.gone(int(u.arm)) && (u.by == 0 || x.met(u) || !ends && x.holds(u, now)) {
			return x.told(t, u, Split, now), nil
		}
		if ends {
			return x.give(x.meanwhile(), Static), nil
		}
		return x.give(x.instead(), Disabled), nil
	case ends:
		return x.give(x.meanwhile(), Static), nil
	case s != Running || !x.started(now):
		return x.give(x.instead(), Disabled), nil
	case unit == "" && !x.decl.Free:
		return Decision{}, fmt.Errorf("%w is missing: the experiment is sticky", ErrUnit)
	}
	if err := x.checkPerson(ask.Person); err != nil {
		return Decision{}, err
	}
	if !x.in(unit) && !x.assigned(unit) {
		return x.give(x.instead(), Default), nil
	}
	if unit == "" {
		return x.assign(tag{}, assignment{}, ask, now)
	}
	t := tagOf(x.tags, unit)
	if x.erased(t) {
		return x.give(x.instead(), Default), nil
	}
	u, was := x.units[t]
	spent := was && int(u.used) >= x.decl.AtOnce()
	switch {
	case spent && x.gone(int(u.arm)):
		return x.give(x.instead(), Limit), nil
	case was && x.gone(int(u.arm)): // and is assigned again
	case was && x.holds(u, now):
		return x.told(t, u, Split, now), nil
	case spent:
		u.number = beyond
		return x.told(t, u, Limit, now), nil
	}
	return x.assign(t, u, ask, now)
}

// assigned says that a unit was: it was in the experiment's share then, and stays in.
func (x *served) assigned(unit string) bool {
	if unit == "" {
		return false
	}
	_, was := x.units[tagOf(x.tags, unit)]
	return was
}

// ends says that the decisions have ended, and the experiment has not.
func (x *served) ends(now int64) bool {
	return x.rec.State == Stopping || x.rec.State == Running && x.started(now) && x.over(now)
}

// instead is the fallback, or the first arm that is on if that was taken off; −1 where there are none.
func (x *served) instead() int {
	if len(x.decl.Arms) == 0 {
		return -1
	}
	arm := max(0, x.armOf(x.decl.Fallback))
	if x.leaves(arm) {
		arm = max(0, slices.IndexFunc(x.decl.Arms, func(a decl.Arm) bool { return !x.leaves(x.armOf(a.Name)) }))
	}
	return arm
}

// give is an arm that does not count.
func (x *served) give(arm int, why Reason) Decision {
	return Decision{Arm: arm, Name: x.decl.Arms[arm].Name, Value: x.values[arm], Propensity: 1, Reason: why}
}

// told is the decision of an assignment.
func (x *served) told(t tag, u assignment, why Reason, now int64) Decision {
	d := x.give(int(u.arm), why)
	d.Propensity, d.Expires = u.propensity, time.UnixMilli(u.deadline)
	k := ticket{arm: int(u.arm), number: u.number, deadline: u.deadline, epoch: x.epochs[u.epoch]}
	if u.by != 0 {
		k.by, k.propensity, d.ActivateBy = u.by, u.propensity, time.UnixMilli(u.by)
	}
	d.Token = x.sign.sign(k, t)
	d.Report = x.task(k, d.Token, now)
	return d
}

// assign makes a new assignment, of a person if they are counted; before is the unit's last.
func (x *served) assign(t tag, before assignment, ask Ask, now int64) (Decision, error) {
	if x.full(ask.Person) {
		return x.give(x.instead(), Limit), nil
	}
	within, next := x.decl.Activation().Milliseconds(), x.play.Arm
	if within > 0 {
		next = x.play.Offer
	}
	greedy := next()
	if greedy < 0 {
		return x.give(x.instead(), Disabled), nil // it has stopped, and that is being written
	}
	on := 0
	for a := range x.board.queues {
		if !x.gone(a) {
			on++
		}
	}
	arm, propensity := x.floored(greedy, len(x.board.queues), on, x.gone)
	if shares := x.play.Shares(); shares != nil {
		arm, propensity = x.armBy(shares, ask.Unit)
	}
	u := assignment{propensity: propensity, epoch: x.at, used: before.used, arm: uint16(arm)}
	if err := x.issue(&u, &play.Decision{Arm: arm, Cell: x.decl.Cell(ask.Context)}, now, within); err != nil {
		return Decision{}, err
	}
	if x.coinOfNow(now); within == 0 {
		x.tossed(arm, propensity, now)
	}
	if t != (tag{}) {
		x.keep(t, u)
	}
	x.countPerson(ask.Person)
	return x.told(t, u, Split, now), nil
}

// rankArms is armFor, for an event.
func (x *served) rankArms(ask RankAsk, now int64) (Ranking, given, error) {
	if err := x.checkRank(ask); err != nil {
		return Ranking{}, given{}, err
	}
	d, err := x.armFor(Ask{Unit: ask.Event, Person: ask.Person, Context: ask.Context,
		NoConsent: ask.NoConsent, hold: ask.hold}, now)
	if err != nil {
		return Ranking{}, given{}, err
	}
	out := Ranking{Event: ask.Event, Action: d.Name, Propensity: d.Propensity, Expires: d.Expires,
		ActivateBy: d.ActivateBy, Reason: d.Reason}
	rest := rounded((1 - d.Propensity) / float64(max(1, len(ask.Actions)-1)))
	var shares []float64
	if d.Reason == Split && x.play != nil {
		shares = x.play.Shares()
	}
	for _, a := range ask.Actions {
		p := rest
		switch {
		case a.ID == d.Name:
			p = d.Propensity
		case shares != nil:
			p = shares[x.armOf(a.ID)]
		}
		out.Ranked = append(out.Ranked, Ranked{a.ID, p})
	}
	if d.Reason != Split {
		return out, given{}, nil
	}
	k, err := x.event(ask.Event)
	return out, given{k.unit, k.number, k.epoch}, err
}

// checkRank says what cannot be asked of an experiment with arms.
func (x *served) checkRank(ask RankAsk) error {
	switch {
	case x.decl.Free:
		return fieldError("event", "names a decision, and the experiment is not sticky")
	case x.decl.Assignments() > 1:
		return fieldError("event", "names one decision, and the experiment assigns a unit %d times",
			x.decl.Assignments())
	case len(ask.Context) > 0 && !x.decl.ReadsContext():
		return fieldError("context", "is given, and the experiment is not contextual: it has arms")
	case len(ask.Excluded) > 0:
		return fieldError("excluded", "is given, and the experiment has arms, which are never excluded")
	case ask.Deferred && x.decl.Exposure != decl.ExposeActivate:
		return fieldError("deferred", "is true, and the experiment's exposure is not %s",
			decl.ExposeActivate)
	}
	seen := make([]bool, len(x.decl.Arms))
	for i, a := range ask.Actions {
		arm := x.armOf(a.ID)
		at := fmt.Sprintf("actions[%d]", i)
		switch {
		case arm < 0 || x.gone(arm):
			return fieldError(at+".id", "is %q, must be an arm that is on", clip(a.ID))
		case seen[arm]:
			return fieldError(at+".id", "is %q, which is there before", a.ID)
		case len(a.Features) > 0:
			return fieldError(at+".features", "are given, and the experiment is not contextual: it has arms")
		}
		seen[arm] = true
	}
	for arm, a := range x.decl.Arms {
		if !x.gone(arm) && !seen[arm] {
			return fieldError("actions", "has not the arm %q, must have all that are on", a.Name)
		}
	}
	return nil
}

// drops says whether the policy can go on without an arm.
func drops(x *Experiment) (bool, error) {
	p, err := x.NewPolicy(&noise.Fast{})
	if err != nil {
		return false, err
	}
	_, ok := p.(play.Dropper)
	return ok, nil
}

// KeepsArms says why no arm can be taken off in any state, and is empty if one can.
func (i *Info) KeepsArms() string {
	on := 0
	for a := range i.Arms {
		if !i.Arms[a].Off {
			on++
		}
	}
	if i.Contextual != nil {
		return "it has none"
	}
	can, err := drops(&i.Experiment)
	switch {
	case i.Experiment.Split():
		return "an A/B test compares its arms until it stops"
	case err != nil || !can:
		return "policy " + i.Experiment.Policy.Policy + " cannot go on without one"
	case on < 2:
		return "one is left"
	}
	return ""
}

// off are the numbers of arms that can be taken off, by their names.
func (x *served) off(names []string) (arms []int, err error) {
	switch {
	case len(names) == 0:
		return nil, nil
	case x.decl.Contextual != nil:
		return nil, fieldError("off[0]", "is given, and the experiment has no arms: exclude actions from "+
			"their ranks: %w", ErrState)
	}
	can, err := drops(&x.decl)
	if err != nil {
		return nil, err
	}
	gone := slices.Clone(x.rec.Off)
	for a := range x.decl.Arms {
		if x.gone(a) {
			gone = append(gone, a)
		}
	}
	for i, name := range names {
		a, at := x.armOf(name), fmt.Sprintf("off[%d]", i)
		switch {
		case a < 0:
			return nil, fieldError(at, "is %q, must be one of the experiment's arms: %w", clip(name), ErrState)
		case x.rec.State == Draft:
			return nil, fieldError(at, "is arm %q of a draft, must be of an experiment that has started: "+
				"declare one without it: %w", name, ErrState)
		case !can:
			return nil, fieldError(at, "is arm %q, and policy %s cannot go on without an arm: %w",
				name, x.decl.Policy.Policy, ErrState)
		case slices.Contains(gone, a):
			return nil, fieldError(at, "is arm %q, which is off already: %w", name, ErrState)
		case len(gone)+2 > len(x.decl.Arms):
			return nil, fieldError(at, "is arm %q, the last one: stop the experiment instead: %w", name,
				ErrState)
		}
		arms, gone = append(arms, a), append(gone, a)
	}
	return arms, nil
}

// takeOff takes the next arm off that is to be; c is nil if there is none. Not while a batch is asked for:
// who was asked has given noise for its rows, and would be asked for others of the same decisions.
func (x *served) takeOff(now int64) (c *play.Commit, err error) {
	for len(x.rec.Off) > 0 && !x.asks(now) {
		arm := x.rec.Off[0]
		x.rec.Off = x.rec.Off[1:]
		x.todo |= theRecord
		if x.board.on() > 1 {
			return x.remove(arm)
		} // else guards have left it alone
	}
	return nil, nil
}

// remove takes an arm off.
func (x *served) remove(arm int) (*play.Commit, error) {
	c, err := x.play.TakeOff(arm)
	if err == nil {
		x.board.queues[arm].Off = true
	}
	return c, err
}

// addArm adds an arm with its line, which is written with the record that has it. It may be given at once: an
// assignment to it is written after the line, and what a crash loses of both is void.
func (x *served) addArm(c Change, line []byte) (*play.Commit, error) {
	commit, err := x.play.AddArm(c.Add[0].Share, line)
	if err != nil {
		return nil, err
	}
	c.done(&x.decl)
	arm := x.decl.Arms[len(x.decl.Arms)-1]
	x.values = append(slices.Clip(x.values), ValueOf(arm))
	x.board.grow(arm)
	x.rec.Added, x.rec.Joined = append(x.rec.Added, x.hours.at), x.decl.Joined
	x.hours.grow(x.hours.at)
	x.written = append(x.written, wrote{Arm: store.Arm{Head: -1}}) // nothing is
	return commit, nil
}
