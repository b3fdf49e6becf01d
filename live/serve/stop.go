package serve

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
)

// How an experiment stops, by its operator, its end or its policy: decisions end at once, windows pass, what
// can be released is, all that is left with one last release (play.Live.Finish), and then the winner is
// given. An operator may have it stop now, which destroys what is not released.

// A stopping is how an experiment stops, from the instant on at which its decisions ended.
type stopping struct {
	Why    endReason `json:"why"`
	Keep   int       `json:"keep"`             // the arm that everybody is given then; −1 where there are none
	Leader bool      `json:"leader,omitempty"` // it is the one that leads then, and Keep is not it
	Policy bool      `json:"policy,omitempty"` // with contexts, the best action by what was learnt
}

// Stop ends the decisions of an experiment for good. New units get the fallback, or the arm that is to be
// kept if keep names it, and who has an arm keeps it; windows pass, and rewards are taken until their
// deadlines. When all that can be released was, the experiment has stopped, at once if nothing waits.
// From then on every decision gives the arm that is kept: that of this name, decl.KeepLeader for the one with the
// highest private mean, or as declared if keep is empty. An arm that was taken off cannot be kept. With
// contexts keep is decl.KeepPolicy, or empty.
func (e *Engine) Stop(ctx context.Context, name, keep string) error {
	return e.act(ctx, name, Entry{Did: "stop", With: keep}, func(x *served, now int64) error {
		s, err := x.stopping(keep, endOperator)
		if err != nil {
			return err
		}
		if before := x.rec.Stop; before != nil && keep == "" { // it has failed since
			s = *before
		}
		return x.stop(s, now)
	})
}

// StopNow is Stop without a wait, also of an experiment that is stopping: rewards that were not released
// are destroyed. Confirm must be the experiment's name; an error about it says how many they are.
func (e *Engine) StopNow(ctx context.Context, name, keep, confirm string) error {
	return e.act(ctx, name, Entry{Did: "stop now", With: keep}, func(x *served, now int64) error {
		s, err := x.stopping(keep, endOperator)
		switch before := x.rec.Stop; {
		case err != nil:
			return err
		case x.rec.State == Stopped || x.rec.State == Archived:
			return x.stop(s, now)
		case confirm != name:
			return fieldError("confirm", "is %q, must be the name of the experiment, %s; decisions whose rewards "+
				"would be destroyed unreleased: %d", clip(confirm), name, x.left())
		case before != nil && keep == "":
			s = *before
		}
		x.rec.Stop = &s
		return x.end(now)
	})
}

// stopping is a stop that keeps the arm of a name, the leader, or if it is empty what was declared.
func (x *served) stopping(name string, why endReason) (stopping, error) {
	declared := name == ""
	if declared {
		name = x.decl.Stop.Keep
	}
	s := stopping{Why: why, Keep: x.armOf(name)}
	switch {
	case x.decl.Contextual != nil && name == decl.KeepPolicy && x.estimate() != nil:
		s.Policy = true
	case !declared && name == decl.KeepPolicy && x.decl.Contextual != nil:
		return s, fieldError("keep", "is policy, and what was learnt is not known: leave it out, to have the first "+
			"action given")
	case !declared && x.decl.Contextual != nil:
		return s, fieldError("keep", "is %q, and the experiment has no arms, must be %s, or left out to have the first "+
			"action given", clip(name), decl.KeepPolicy)
	case s.Keep >= 0 && !x.leaves(s.Keep) && !(declared && x.board.watch.harms(s.Keep)):
	case s.Keep < 0 && name == decl.KeepLeader:
		s.Leader = true
	case declared:
		s.Keep = x.instead()
	case s.Keep < 0:
		return s, fieldError("keep", "is %q, must be one of the experiment's arms, or %s", clip(name),
			decl.KeepLeader)
	default:
		return s, fieldError("keep", "is %q, which is off for good, must be an arm that is not", name)
	}
	return s, nil
}

// stop ends the decisions, and the experiment if nothing can be released any more.
func (x *served) stop(s stopping, now int64) error {
	switch x.rec.State {
	case Stopped, Archived:
		return fmt.Errorf("it is %s already: %w", x.rec.State, ErrState)
	case Stopping:
		_, settled, _ := x.play.Left()
		return fmt.Errorf("it is stopping already, until %s: to stop it now, and destroy what waits, "+
			"say now and confirm: %w", time.UnixMilli(settled).UTC().Format(time.RFC3339), ErrState)
	}
	x.rec.Stop = &s
	if x.play == nil {
		return x.end(now)
	}
	x.play.Finish()
	if _, _, can := x.play.Left(); !can {
		return x.end(now)
	}
	x.rec.State = Stopping
	x.todo |= theRecord | theQueues // what there is to be released is durable with it
	return nil
}

// left is how many decisions wait to be released, at most where they are not played.
func (x *served) left() (n int) {
	switch s := x.rec.State; {
	case x.play != nil:
		n, _, _ = x.play.Left()
	case s == Failed || s.plays():
		for _, q := range x.board.queues {
			n += q.Decisions - q.Released
		}
	}
	return n
}

// stopOnTick has what ends by itself stop, at a public tick, and what has nothing left to release end.
func (x *served) stopOnTick(at int64) error {
	s, own := x.ended()
	switch {
	case x.rec.State != Stopping && own:
		return x.stop(s, at)
	case x.rec.State != Stopping && x.over(at):
		s, err := x.stopping("", endDate)
		if err != nil {
			return err
		}
		return x.stop(s, at)
	case x.rec.State != Stopping:
		return nil
	case own && s.Why == endAnswer && x.rec.Stop.Leader: // which it found in its last whole batch
		x.rec.Stop = &s
		x.todo |= theRecord
	}
	if _, _, can := x.play.Left(); can {
		return nil
	}
	return x.end(at)
}

// winner is the arm that is kept, −1 where there are none, and whether it is for its mean.
func (x *served) winner() (arm int, leads bool) {
	if !x.rec.Stop.Leader {
		return x.rec.Stop.Keep, false
	}
	if best := leader(x.board.queues, func(a int) bool { return x.leaves(a) || x.board.watch.harms(a) }); best >= 0 {
		return best, true
	}
	return x.instead(), false
}

// leader is the arm with the highest private mean of those that can be kept, −1 if nothing was released of any.
func leader(arms []ArmInfo, leaves func(arm int) bool) int {
	best, most := -1, 0.0
	for a, q := range arms {
		if mean := q.Sum / float64(q.Released); q.Released > 0 && !leaves(a) && (best < 0 || mean > most) {
			best, most = a, mean
		}
	}
	return best
}

// meanwhile is what new units are given while the experiment stops.
func (x *served) meanwhile() int {
	s := x.rec.Stop
	if s == nil { // it is past its end, which comes with the next tick
		of, _ := x.stopping("", endDate) // which is none of a name that could be wrong
		s = &of
	}
	if s.Leader {
		return x.instead()
	}
	return s.Keep
}

// end stops the experiment as its record says, and keeps an arm.
func (x *served) end(now int64) error {
	if x.pending != nil { // it is durable
		if err := x.show(x.pending.Line, now); err != nil {
			return err
		}
		if x.decl.Contextual != nil { // and is learnt from by whoever reads it
			if err := x.play.Commit(x.pending); err != nil {
				return err
			}
		}
	}
	s, gone := x.rec.Stop, x.left() // of one that failed at most
	keep, leads := x.winner()
	if learnt := s.Policy && x.board.queues[0].Released > 0; (s.Leader || s.Policy) && !leads && !learnt {
		s = &stopping{Why: s.Why, Keep: keep}
		x.rec.Stop = s
	}
	if x.tip != "" || len(x.out) > 0 { // there is a transcript, which holds
		if err := x.say(now, ending{End: s.Why, Keep: keep, Leader: s.Leader, Policy: s.Policy, Without: x.rec.Off,
			Gone: gone, Coins: hex.EncodeToString(x.rec.Coins[:])}); err != nil {
			return err
		}
	}
	x.rec.Last = x.lastSeen(now)
	x.rec.State, x.rec.Keep, x.rec.Why, x.rec.Ended = Stopped, keep, s.Why, now
	x.forgetPlay()
	x.rec.Off, x.rec.Changes = nil, nil
	x.todo = x.todo&^theQueues | theRecord | dropSums
	if x.decl.Forget > 0 { // nobody's assignment is wanted any more
		clear(x.units)
		x.todo |= dropUnits
	}
	return nil
}
