package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
)

// A ramp is where a declared one stands, of a board. It follows from lines and from their times.
type ramp struct {
	steps []decl.Step
	at    int   // the step
	since int64 // the time of the line of this step; 0: it is the first
}

// stepped notes that a share was stepped up to.
func (r *ramp) stepped(share float64, at int64) {
	for i, s := range r.steps {
		if s.Share == share {
			r.at, r.since = i, at
		}
	}
}

// share is that of units that are in the experiment now; 0 is all.
func (x *served) share() float64 {
	if r := x.board.watch.ramp; len(r.steps) > 0 {
		return r.steps[r.at].Share
	}
	return x.decl.Share
}

// until is when the time of the step is over.
func (r *ramp) until(x *Experiment, began int64) int64 {
	if !x.Start.IsZero() {
		began = max(began, x.Start.UnixMilli())
	}
	return max(began, r.since) + r.steps[r.at].For.Milliseconds()
}

var errTop = errors.New("the ramp is at its last step")

// mayStep says why the ramp may not step up at a time, of an experiment that began at another, nil if it may: when
// the time of its step is over, no guard has paused it, and each arm surely keeps each guard. All of that follows from
// lines that were shown and from the clock, so it tells nothing more. The theorem of interval.Sums.Side bounds the
// probability that it ever steps up while an arm was past its bound at each of its decisions.
func (b *board) mayStep(x *Experiment, began, at int64) error {
	w := &b.watch
	if w.at+1 >= len(w.steps) {
		return errTop
	}
	if until := w.until(x, began); at < until {
		return fmt.Errorf("its step lasts until %s", time.UnixMilli(until).UTC().Format(atForm))
	}
	if w.held {
		return errors.New("a guard has paused it")
	}
	for _, g := range w.of {
		for arm, q := range b.queues {
			if !q.Off && (g.past[arm] || g.side[arm] != g.Keeps()) {
				return fmt.Errorf("%s does not surely keep %s %s %v yet", x.Arms[arm].Name, g.Metric, g.Side, g.Bound)
			}
		}
	}
	return nil
}

// rampUp is the next step of the ramp if it is made at a public tick.
func (x *served) rampUp(at int64) (c Change, ok bool) {
	w := &x.board.watch
	if x.rec.State != Running || !x.started(at) || x.board.mayStep(&x.decl, x.began, at) != nil {
		return c, false
	}
	next := w.steps[w.at+1].Share
	w.stepped(next, at)
	x.did = append(x.did, Entry{Did: "ramp", Experiment: x.decl.Name, With: fmt.Sprint(next)})
	return Change{Share: &next}, true
}

func percentOf(share float64) string { return fmt.Sprintf("%.3g\u202f%%", 100*share) }

// A Ramp is where an experiment's ramp stands.
type Ramp struct {
	Share float64  `json:"share"`
	Next  *float64 `json:"next"` // null at the last step
	// NotBefore is when the step's time is over, nil at the last step and before the start.
	NotBefore *time.Time `json:"not_before,omitempty"`
	Says      string     `json:"says"`
}

// Ramp is where the experiment's ramp stands; nil if it has none.
func (i *Info) Ramp() *Ramp {
	b := board{queues: i.Arms, watch: i.watch}
	if len(b.watch.steps) == 0 {
		return nil
	}
	out := &Ramp{Share: b.watch.steps[b.watch.at].Share}
	out.Says = percentOf(out.Share) + " of units are in it"
	if b.watch.at+1 == len(b.watch.steps) {
		return out
	}
	next := b.watch.steps[b.watch.at+1].Share
	out.Next = &next
	out.Says += "; next " + percentOf(next)
	if i.began == 0 || !i.State.plays() && i.State != Waiting {
		return out
	}
	until := time.UnixMilli(b.watch.until(&i.Experiment, i.began)).UTC()
	out.NotBefore = &until
	out.Says += ", not before " + until.Format("2006-01-02 15:04 UTC")
	if err := b.mayStep(&i.Experiment, i.began, until.UnixMilli()); err != nil {
		out.Says += ": " + err.Error()
	}
	return out
}
