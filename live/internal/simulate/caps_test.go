package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// aDay is what all experiments of a world may cost one person within a day.
var aDay = serve.PersonCap{Unit: "person", Budget: privacy.Pure{Epsilon: 3}, Days: 1}

const day = int64(24 * time.Hour / time.Millisecond)

// weight is what an experiment may cost one person, +Inf if nothing bounds it.
func (b *book) weight() float64 {
	sum := 0.0
	for _, x := range append([]privacy.Budget{b.x.Budget}, b.metricBudgets()...) {
		e, ok := x.(privacy.Pure)
		if !ok {
			return math.Inf(1)
		}
		sum += e.Epsilon
	}
	switch m := float64(b.x.Unit.PerPerson); {
	case m > 0:
		return m * sum / float64(b.most)
	case b.x.Unit.Of == aDay.Unit && !b.x.Free:
		return sum
	}
	return math.Inf(1)
}

func (b *book) metricBudgets() (out []privacy.Budget) {
	for _, m := range b.x.Metrics {
		out = append(out, m.Budget)
	}
	return out
}

// reads says that whoever is in a quarter of the layer may be in the experiment.
func (b *book) reads(quarter int) bool {
	p := (float64(quarter) + 0.5) / 4
	return b.x.Layer.Name == "" || b.x.Unit.PerPerson > 0 || b.x.Layer.From <= p && p < b.x.Layer.To
}

// lost is the most that one person is charged for the experiments that count.
func (w *world) lost(counts func(b *book) bool) (most float64) {
	for quarter := range 4 {
		sum := 0.0
		for _, b := range w.byName {
			if b.reads(quarter) && counts(b) {
				sum += b.weight()
			}
		}
		most = max(most, sum)
	}
	return most
}

// withinCap holds that what was released in the day that ends with a release costs one person no more than
// the cap.
func (w *world) withinCap(b *book, now int64) error {
	b.shown = now
	most := w.lost(func(b *book) bool { return b.shown >= now-day && b.shown > 0 })
	if w.kind == "capped" && most > 3+1e-9 {
		return broken(budgets, "in the day that ends with line %d of %s a person may lose %v, of 3", len(b.lines)-1,
			b.x.Name, most)
	}
	return nil
}

// spend is what an operator does with the cap.
func (w *world) spend(b *book) {
	ctx, name := w.t.Context(), b.x.Name
	switch w.IntN(5) {
	case 0, 1:
		w.another()
	case 2:
		if err := w.p.e.Archive(ctx, name); err != nil {
			w.story("an operator stops %s: %v", name, w.stop(name))
		} else {
			w.story("an operator archives %s", name)
		}
	case 3:
		d := time.Duration(6+w.IntN(30)) * time.Hour
		w.story("%v pass", d)
		w.disk.disarm() // it is no outage
		w.pass(d)
		w.sync()
	case 4: // all that goes on ends, and the next may begin
		for _, name := range w.names {
			w.story("an operator stops %s: %v", name, w.p.e.StopNow(ctx, name, "", name))
		}
		w.another()
	}
}

// another has an operator start one more experiment, or one that was refused before, and holds the answer
// against what all cost one person.
func (w *world) another() {
	ctx, b := w.t.Context(), (*book)(nil)
	if n := len(w.drafts); n > 0 && w.IntN(2) == 0 {
		b, w.drafts = w.drafts[0], w.drafts[1:]
	} else if len(w.byName) == 9 {
		return
	} else {
		d := declarer{Rand: w.Rand, kind: w.kind, now: time.UnixMilli(w.clock(w.p)), since: true}
		from := w.IntN(4)
		b = w.declared(d.declare(fmt.Sprint("shop-", len(w.byName)+1), 1, d.perhaps(2,
			"layer: {name: page, from: %v, to: %v}", float64(from)/4, float64(from+1+w.IntN(4-from))/4)))
		err := w.p.e.Create(ctx, *b.x)
		if w.still(); b.id == 0 { // nor will it be
			w.story("it is not taken: %v", err)
			delete(w.byName, b.x.Name)
			delete(w.arms, b.x.Name)
			return
		}
	}
	at := w.clock(w.p)
	err := w.p.e.Start(ctx, b.x.Name)
	w.still()
	w.story("an operator starts %s, which costs a person %v: %v", b.x.Name, b.weight(), err)
	if b.state == serve.Draft || b.state == "" {
		w.drafts = append(w.drafts, b)
	} else {
		w.names = append(w.names, b.x.Name)
	}
	all := w.lost(func(o *book) bool {
		return o == b || o.state != serve.Draft && o.state != "" && (!o.over || at < o.overAt+day+day/24)
	})
	if errors.Is(err, serve.ErrPersonCap) && !w.jumped && all <= 3 {
		w.fail(broken(goesOn, "%s is refused, and all that counts costs a person %v, of 3", b.x.Name, all))
	}
}
