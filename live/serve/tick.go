package serve

import (
	"bytes"
	"errors"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

// onTick does what is done at public ticks alone: the release that was closed before is handed to
// the policy and shown, and what is due is closed.
func (x *served) onTick(w *store.Write, now int64) error {
	tick := now / x.tick
	if tick == x.ticked {
		return nil
	}
	at := tick * x.tick
	x.ticked = tick
	x.forgetOld(now)
	if c := x.pending; c != nil {
		x.pending = nil
		if err := x.play.Commit(c); err != nil {
			return err
		}
		if err := x.show(c.Line, at); err != nil {
			return err
		}
		x.todo |= thePlan | theQueues
	}
	if err := x.stopOnTick(at); err != nil || x.play == nil {
		return err
	}
	c, err := x.changing(now)
	if c == nil && err == nil {
		c, err = x.closeBatch(at)
	}
	if x.rec.State == Stopping && errors.Is(err, errNever) {
		return x.end(at) // it is destroyed, and the last line says how much
	}
	if err != nil || c == nil {
		return err
	}
	x.pending, x.closed = c, at
	x.todo |= thePlan | theQueues
	w.Taken = c.Taken
	x.held = x.lines + len(x.out)
	x.sayText(at, bytes.TrimSuffix(c.Line, []byte("\n")))
	for _, t := range c.Taken {
		for at := range x.parts {
			if at[0] == t.Arm && at[1] >= t.Start && at[1] < t.End {
				delete(x.parts, at)
			}
		}
	}
	return nil
}

// closeBatch closes the batch that is due at a tick, if its sums are there; where rewards come in the
// open they always are.
func (x *served) closeBatch(at int64) (*play.Commit, error) {
	if x.gatherer == nil {
		return x.play.Close(at)
	}
	rows, due := x.play.Slots(at)
	if !due {
		return nil, nil
	}
	if x.gathering == nil {
		x.gathering = &gathering{rows: rows, since: at}
		x.todo |= theQueues // that they end where they end is durable before anybody is asked
	}
	sums, err := x.gathering.done()
	if err != nil || len(sums) < len(rows) {
		return nil, err
	}
	x.gathering, x.unsure = nil, false
	return x.play.CloseGathered(at, sums)
}

// show lets everybody see a line from a time on.
func (x *served) show(text []byte, at int64) error {
	x.shown++
	in, err := readLine(text)
	if err != nil {
		return err
	}
	if len(in.Release) > 0 {
		x.seen = at
	}
	return x.board.show(&in, time.UnixMilli(x.closed))
}

// ended says how the experiment stops if the play has ended by itself: by its last release, or by
// the last line that was there at a restart. One of contexts releases all of its decisions first.
func (x *served) ended() (s stopping, ok bool) {
	switch all := x.board.queues[0]; {
	case !x.play.Stopped(), x.decl.Contextual != nil && all.Released < all.Decisions:
		return s, false
	case x.answer != nil && x.answer() >= 0 && !x.board.watch.harms(x.answer()):
		return stopping{Why: endAnswer, Keep: x.answer()}, true
	}
	s, err := x.stopping("", endPolicy)
	return s, err == nil
}

// waits is what decisions wait for, and until when; for nothing if it is empty. Those with contexts wait
// when there are as many as there are to be.
func (x *served) waits(now int64) (wait string, until int64) {
	contexts := x.decl.Contextual != nil
	switch {
	case contexts && !x.play.Stopped():
		return "", 0
	case !contexts && x.pending != nil && len(x.play.Out()) == 0:
		return "release", (now/x.tick + 1) * x.tick
	}
	at, due := x.play.Due(now)
	if contexts && !due { // what is left was closed, and the next tick shows it
		at, due = now, true
	}
	if !due {
		return "", 0
	}
	return "rewards", at
}
