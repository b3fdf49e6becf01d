package serve

import (
	"context"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
)

// Offers: decisions of an experiment whose exposure is activate. An offer is in no queue; when it is
// activated, it is a decision with the next number of its arm, and with the deadline that it was
// offered with. What comes of it is kept under its key among the units, so that it is a decision
// once: a reward never activates, and what a reward is answered depends on the activation and on
// the clock alone.

// A reporting is what somebody reports of a decision.
type reporting byte

const (
	rewarded reporting = iota
	activated
	notShown
	hidden // a report that the reward is hidden in
)

// Activate says whether a unit meets its decision, and returns when that is durable. Where the
// experiment's exposure is activate, a decision that is shown counts from then on; one that is not is
// forgotten, and the unit can be assigned anew. The first of the two holds, and both are answered
// alike: Accepted until the decision's ActivateBy, and Late from then on. Where the exposure is
// retract, a decision that is not shown counts no more, until the window of its reward has passed;
// what is answered, and what counts, is the same whether a reward came before.
func (e *Engine) Activate(ctx context.Context, name, token string, shown bool) (Status, error) {
	x, err := e.find(name)
	if err != nil {
		return "", err
	}
	if e.cfg.ReadOnly {
		return "", ErrReadOnly
	}
	t, ok := newSigner(x.tokenKey).read(token)
	switch {
	case !ok:
		return "", ErrToken
	case t.number == tested:
		return Accepted, nil
	case t.by == 0 && shown:
		return "", fmt.Errorf("experiment %q: %w", name, fieldError("decision", "is of an experiment whose "+
			"decisions count at once: %w", ErrState))
	case t.by == 0 && x.decl.Exposure != decl.ExposeRetract:
		return "", fmt.Errorf("experiment %q: %w", name, fieldError("shown", "is false, and the experiment's "+
			"exposure is not retract: %w", ErrState))
	case t.number == beyond:
		return OverLimit, nil
	}
	j := &job{on: x, at: e.now(), results: make([]Result, 1), reports: []reported{{ticket: t, what: notShown}}}
	if shown {
		j.reports[0].what = activated
	}
	if err := e.do(ctx, j); err != nil {
		return "", fmt.Errorf("experiment %q: %w", name, err)
	}
	return j.results[0].Status, nil
}

// activate is Activate, with a play.
func (x *served) activate(r reported, now int64) (Status, error) {
	key := r.key()
	_, said := x.units[key]
	mine, unit := x.units[r.unit]
	switch {
	case now >= r.by || x.gone(r.arm):
		return Late, nil
	case said:
		return Accepted, nil
	case x.play.Stopped() || x.rec.State == Stopping: // nothing becomes a decision any more
		return Void, nil
	case unit && int(mine.used) >= x.decl.AtOnce(), r.unit != (tag{}) && x.erased(r.unit):
		return OverLimit, nil
	}
	u := assignment{number: beyond, deadline: r.deadline, epoch: x.at, arm: uint16(r.arm)}
	if r.what == activated {
		d, ok := x.offered(r)
		if !ok {
			return Void, nil
		}
		var err error
		if u.number, err = x.count(&d, now, r.deadline); err != nil {
			return Void, err
		}
		x.tossedOffer(r, now)
		if r.unit != (tag{}) {
			x.keep(r.unit, assignment{number: r.number, deadline: r.deadline, by: r.by,
				propensity: r.propensity, epoch: x.place(r.epoch), used: mine.used + 1, arm: uint16(r.arm),
				open: x.openFor(r.deadline - now)})
		}
	}
	x.keep(key, u)
	return Accepted, nil
}

// activated puts into a ticket of an offer what its decision has; the status is what its reward is
// answered if it has none.
func (x *served) activated(t *ticket, now int64) Status {
	u, said := x.units[t.key()]
	switch {
	case now >= t.deadline:
		return Late
	case !said || u.number == beyond:
		return Void
	}
	t.number, t.epoch = min(u.number, math.MaxInt), x.epochs[u.epoch]
	return Accepted
}

// met says whether an offer is a decision.
func (x *served) met(u assignment) bool {
	came, said := x.units[ticket{number: u.number, epoch: x.epochs[u.epoch]}.key()]
	return said && came.number != beyond
}

// holds says whether a unit that asks again is answered the same.
func (x *served) holds(u assignment, now int64) bool {
	if u.by != 0 {
		came, said := x.units[ticket{number: u.number, epoch: x.epochs[u.epoch]}.key()]
		switch {
		case !said: // or it was, and is forgotten since its window has passed: then it was activated
			return now < u.by || !x.decl.Free && int(u.used) >= x.decl.AtOnce()
		case came.number == beyond:
			return false
		}
	}
	return !x.decl.Free && (now < u.deadline || int(u.used) >= x.decl.AtOnce())
}

// offer makes an assignment an offer, which can be activated for so long.
func (x *served) offer(u *assignment, now, within int64) {
	u.number, u.by, u.deadline = x.offers, now+within, now+within+x.window
	x.offers++
}

// issue makes an assignment a decision, or an offer of one if it can be activated for so long.
func (x *served) issue(u *assignment, d *play.Decision, now, within int64) (err error) {
	if within > 0 {
		x.offer(u, now, within)
		return nil
	}
	u.deadline, u.open = now+x.window, x.openFor(x.window)
	u.used++
	if u.number, err = x.count(d, now, u.deadline); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// count makes a decision, which is written with the next commit, and gives its number.
func (x *served) count(d *play.Decision, now, deadline int64) (int64, error) {
	k, err := x.play.DecideUntil(*d, now, deadline)
	if err != nil {
		return 0, err
	}
	x.todo |= theQueues
	x.board.queues[d.Arm].Decisions++
	x.hours.count(d.Arm, now)
	x.enter(d.Arm, k.Number, d.Cell)
	if d.Vector != nil {
		x.events.fresh = append(x.events.fresh, play.Event{Number: k.Number, Vector: d.Vector, Weights: d.Weights})
	}
	return int64(k.Number), nil
}

// place is that of an epoch in epochs.
func (x *served) place(e epochTag) int32 {
	for i := range x.epochs {
		if x.epochs[i] == e {
			return int32(i)
		}
	}
	x.epochs = append(x.epochs, e)
	return int32(len(x.epochs) - 1)
}
