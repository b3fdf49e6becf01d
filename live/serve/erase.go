package serve

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// erasedArm marks, among the units, that somebody was erased.
const erasedArm = math.MaxUint16

// Erase destroys what is kept of a unit: that it was assigned, what, when and how often. What stays
// is a keyed hash of another kind, so that it is not assigned again, and does not pay a second
// time, until the experiment is archived; that of a unit which never came is kept too, so that
// nobody is told who did. A reward of the unit that was counted stays in its sum, where it cannot be
// told from others, until that is released with its noise or destroyed: where several reports of a decision
// count, what they were worth, and what it reports later counts nowhere. So does an event's vector,
// without its name, and then in the transcript's Σaaᵀ. When it returns nil this is
// durable, and what was on the disk is overwritten as far as the store can (see store.SQLite).
//
// Where an experiment has stopped, nobody's assignment is wanted any more, and all of them go.
func (e *Engine) Erase(ctx context.Context, name, unit string) error {
	if unit == "" || len(unit) > maxUnit {
		return fmt.Errorf("%w has %d bytes, must have from 1 to %d", ErrUnit, len(unit), maxUnit)
	}
	return e.act(ctx, name, Entry{Did: "erase"}, func(x *served, _ int64) error {
		switch x.rec.State {
		case Draft:
			return fmt.Errorf("it is draft, must have started: %w", ErrState)
		case Running, Paused, Stopping:
			t := tagOf(x.tags, unit)
			x.seal(t)
			delete(x.units, t)
			delete(x.events.of, t)
			x.units[x.stone(t)] = assignment{arm: erasedArm, propensity: 1}
			if x.decl.Unit.PerPerson > 0 { // the name may be a person's
				t := tagOf(x.persons, unit)
				delete(x.units, t)
				x.units[x.stone(t)] = assignment{arm: erasedArm, propensity: 1}
			}
			x.stoned = true
		default:
			clear(x.units)
			x.events.forget()
			if x.rec.State == Failed { // nothing of it will ever be released
				x.todo |= dropSums
			}
		}
		x.todo |= theUnits
		return nil
	})
}

// stone is what is left of a unit that was erased.
func (x *served) stone(t tag) tag { return tagOf(x.stones, string(t[:])) }

// erased says whether a unit was.
func (x *served) erased(t tag) bool {
	if !x.stoned {
		return false
	}
	_, was := x.units[x.stone(t)]
	return was
}

// rewrite has all assignments written anew, and what was written before destroyed. They are written epoch by
// epoch, so that the first stays the first, which marks of later have, and else in an order that says nothing.
func (x *served) rewrite() {
	x.todo |= dropUnits
	x.fresh = make([]byte, 0, len(x.units)*unitBytes)
	for _, t := range slices.SortedFunc(maps.Keys(x.units), func(a, b tag) int {
		return cmp.Or(cmp.Compare(x.units[a].epoch, x.units[b].epoch), bytes.Compare(a[:], b[:]))
	}) {
		x.fresh = x.appendUnit(x.fresh, t, x.units[t])
	}
}

// forgetOld forgets the units whose time has come, once a day, where the experiment says so (decl.Experiment.Forget). What
// it does follows from the times of decisions and the service's clock, which never goes back.
func (x *served) forgetOld(now int64) {
	keep, long := x.decl.Forget.Milliseconds(), decl.Day.Milliseconds()
	day := now / long
	if keep == 0 || x.play == nil || day == x.day {
		return
	}
	x.day = day
	begin := time.UnixMilli(x.began)
	if x.decl.Start.After(begin) {
		begin = x.decl.Start
	}
	if now >= x.decl.LastEnd(begin).UnixMilli() { // who came back would have one assignment too many
		return
	}
	for t, u := range x.units {
		old := u.decided()/long+keep/long < day
		if u.propensity == 0 { // what came of an offer
			old = now >= u.deadline
		}
		if old && u.arm != erasedArm {
			delete(x.units, t)
			x.todo |= theUnits
		}
	}
}

// expire archives what has stopped when its retention has passed.
func (x *served) expire(c *store.Commit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	keep := x.decl.Retention.Milliseconds()
	if x.rec.State == Stopped && keep > 0 && x.date(c.Now) >= x.rec.Ended+keep && x.archive() == nil {
		note(context.Background(), c, Entry{Did: "archive", Experiment: x.decl.Name,
			With: "its retention has passed"})
	}
}
