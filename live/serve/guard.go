package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// Guards pause an arm that is surely past a bound (the theorem of interval.Sums.Side). They read a board,
// which is made of the lines that everybody may see, and nothing else: what they do is post-processing,
// costs nothing, and follows from the transcript, so that Replay asks for the same at the same line.
//
// An arm that the policy can go on without is taken off, for good, as an operator would have it. Where the
// policy cannot, and of the arm that everybody else is given, the experiment is paused: everybody
// gets that arm, who was assigned another one too, until an operator resumes it, which is a line of the
// transcript. A guard pauses it for an arm once. Decisions change at the tick that shows the
// release, whatever windows are open.

// A Harm is an arm that is surely past bounds of guards.
type Harm struct {
	Arm     string   `json:"arm"`
	Metrics []string `json:"metrics"` // of these guards
}

func (h Harm) String() string {
	return h.Arm + " is past its guard of " + strings.Join(h.Metrics, ", ")
}

// A watch is the guards of a board.
type watch struct {
	of    []bound
	drops bool // the policy can go on without an arm
	home  int  // the arm of who is not in the experiment
	held  bool // the experiment is paused by a guard
	arms  []decl.Arm
	ramp
}

// A bound is a guard as arms are judged by it.
type bound struct {
	decl.Guard
	metric     int     // of the experiment's, −1: the reward
	lo, hi, at float64 // the metric's range, and the bound mapped from it to [0,1]
	each       float64 // the risk for one arm
	noise      privacy.Mechanism
	// by arm: on which side of the bound the mean surely is; whether it was ever past it; and whether the
	// experiment was paused for it
	side       []int
	past, said []bool
}

// newWatch is that of what was declared.
func newWatch(x *Experiment) (w watch, err error) {
	if w.ramp = (ramp{steps: x.Ramp}); len(x.Guard)+len(x.Ramp) == 0 {
		return w, nil
	}
	metrics, err := x.PlayMetrics()
	if err != nil {
		return w, err
	}
	p, err := x.NewPolicy(decl.ZeroCoins{})
	if err != nil {
		return w, err
	}
	_, w.drops = p.(play.Dropper)
	w.home = max(0, slices.IndexFunc(x.Arms, func(a decl.Arm) bool { return a.Name == x.Fallback }))
	w.arms = x.Arms[:x.FirstArms()]
	n := x.FirstArms()
	for _, g := range x.Guard {
		b := bound{Guard: g, each: x.GuardRisk(g), side: make([]int, n), past: make([]bool, n), said: make([]bool, n)}
		b.metric, b.lo, b.hi = x.Of(g)
		b.at = (g.Bound - b.lo) / (b.hi - b.lo)
		if b.metric >= 0 {
			b.noise = metrics[b.metric].Mechanism
		}
		w.of = append(w.of, b)
	}
	return w, nil
}

// clone is what others may read while lines come.
func (w watch) clone() watch {
	w.of = slices.Clone(w.of)
	for i := range w.of {
		b := &w.of[i]
		b.side, b.past, b.said = slices.Clone(b.side), slices.Clone(b.past), slices.Clone(b.said)
	}
	return w
}

// sums are what was released of an arm for the bound.
func (b *bound) sums(arms []ArmInfo, metrics [][]float64, a int) interval.Sums {
	if b.metric < 0 {
		return arms[a].Sums()
	}
	return interval.Sums{N: arms[a].Released, Releases: arms[a].Releases, Sum: metrics[b.metric][a], Noise: b.noise}
}

// harmful is the side of the bound on which an arm must not be.
func (b *bound) harmful() int { return -b.Keeps() }

// judge holds an arm, of which something was released, against the guards.
func (b *board) judge(arm int) error {
	for i := range b.watch.of {
		g := &b.watch.of[i]
		side, err := g.sums(b.queues, b.metrics, arm).Side(g.at, g.each)
		if err != nil {
			return err
		}
		g.side[arm], g.past[arm] = side, g.past[arm] || side == g.harmful()
	}
	return nil
}

// harms says that an arm was ever surely past a bound: nothing but an operator who names it keeps it.
func (w watch) harms(arm int) bool {
	return slices.ContainsFunc(w.of, func(g bound) bool { return g.past[arm] })
}

// A judged is what is to be done about an arm that harms.
type judged struct {
	arm    int
	by     []int // guards
	remove bool  // it is taken off; else the experiment is paused
}

// harmed is the first arm that a guard has not done anything about yet; ok is false if there is none.
func (b *board) harmed() (j judged, ok bool) {
	for arm, q := range b.queues {
		for i, g := range b.watch.of {
			if !q.Off && g.past[arm] && !g.said[arm] {
				j.by = append(j.by, i)
			}
		}
		if len(j.by) > 0 {
			j.arm, j.remove = arm, b.watch.drops && b.on() > 1 && arm != b.given()
			return j, true
		}
	}
	return j, false
}

// on is how many arms are.
func (b *board) on() (n int) {
	for _, q := range b.queues {
		if !q.Off {
			n++
		}
	}
	return n
}

// given is the arm of who is not in the experiment: the fallback, or the first that is on.
func (b *board) given() int {
	if !b.queues[b.watch.home].Off {
		return b.watch.home
	}
	return max(0, slices.IndexFunc(b.queues, func(a ArmInfo) bool { return !a.Off }))
}

// harm is what everybody is told of it.
func (b *board) harm(arms []decl.Arm, j judged) Harm {
	out := Harm{Arm: arms[j.arm].Name}
	for _, i := range j.by {
		out.Metrics = append(out.Metrics, b.watch.of[i].Metric)
	}
	return out
}

// pauses notes that the experiment is paused for what guards have found of an arm.
func (b *board) pauses(j judged) {
	b.watch.held = true
	for _, i := range j.by {
		b.watch.of[i].said[j.arm] = true
	}
}

// changed is what a line has changed of what guards do.
func (b *board) changed(text json.RawMessage, at time.Time) error {
	var c Change
	if len(text) == 0 || len(b.watch.of)+len(b.watch.steps) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if h := c.Guard; h != nil { // which it may know; another arm may be harmed by now
		j := judged{arm: slices.IndexFunc(b.watch.arms, func(a decl.Arm) bool { return a.Name == h.Arm })}
		for i, g := range b.watch.of {
			if j.arm >= 0 && g.past[j.arm] && slices.Contains(h.Metrics, g.Metric) {
				j.by = append(j.by, i)
			}
		}
		b.pauses(j)
	}
	b.watch.held = b.watch.held && !c.Resume
	if c.Share != nil {
		b.watch.stepped(*c.Share, at.UnixMilli())
	}
	return nil
}

// due says whether a line of a play may follow those that the board has: what guards have to do comes first,
// and they do nothing else. The rest may come before, since with it nothing is decided any more.
func (b *board) due(x *Experiment, began time.Time, e *entry) error {
	arms := b.watch.arms
	if c := e.change; c != nil && c.Share != nil && len(b.watch.steps) > 0 {
		if err := b.mayStep(x, began.UnixMilli(), e.at.UnixMilli()); err != nil {
			return err
		}
		if next := b.watch.steps[b.watch.at+1].Share; *c.Share != next {
			return fmt.Errorf("the ramp steps up to %v, must step to %v", *c.Share, next)
		}
	}
	j, ok := b.harmed()
	c := e.change
	switch {
	case !ok && c != nil && c.Guard != nil:
		return fmt.Errorf("a guard pauses it, %v, and nothing that was released says so", *c.Guard)
	case c != nil && c.Resume && !b.watch.held:
		return errors.New("it is resumed, and no guard has paused it")
	case !ok || e.Rest != nil:
		return nil
	}
	h := b.harm(arms, j)
	switch {
	case j.remove && (e.Off == nil || *e.Off != j.arm):
		return fmt.Errorf("%v, and is not taken off", h)
	case !j.remove && (c == nil || c.Guard == nil || c.Guard.Arm != h.Arm || !slices.Equal(c.Guard.Metrics, h.Metrics)):
		return fmt.Errorf("%v, and the experiment is not paused", h)
	}
	return nil
}

// guarded holds the lines of a transcript against what its guards must have done, line by line, and finds what there
// was when arms joined an A/B test.
func (r *Replayed) guarded(x *Experiment, all []entry) (line int, err error) {
	if len(x.Guard)+len(x.Ramp) == 0 && !x.Split() {
		return 0, nil
	}
	b, err := newBoard(x)
	if err != nil {
		return 1, err
	}
	for i, e := range all {
		if e.line, err = readLine(e.text); err == nil && e.plays() {
			if err = b.due(x, r.Started, &e); err == nil {
				err = b.show(&e.line, e.at)
			}
		}
		if err != nil {
			return i + 1, err
		}
	}
	r.watch = b.watch
	for a := range r.Arms {
		r.Arms[a].Joined = b.queues[a].Joined
		for c := range r.Cells {
			r.Cells[c].Arms[a].Joined = b.cells[c].Arms[a].Joined
		}
	}
	return 0, nil
}

// guards does, at a public tick, what is to be done about an arm that harms; c is nil if there is none.
func (x *served) guards(now int64) (c *play.Commit, err error) {
	j, ok := x.board.harmed()
	if !ok {
		return nil, nil
	}
	h := x.board.harm(x.decl.Arms, j)
	x.did = append(x.did, Entry{Did: "guard", Experiment: x.decl.Name, With: h.String()})
	x.todo |= theRecord
	if s := x.rec.Stop; s != nil && s.Keep == j.arm { // whoever chose it did not know
		s.Keep = x.board.given()
	}
	if j.remove {
		x.rec.Off = slices.DeleteFunc(x.rec.Off, func(arm int) bool { return arm == j.arm })
		c, err = x.remove(j.arm)
	} else {
		if x.rec.State == Running {
			x.rec.State = Paused
		}
		x.rec.Changes = slices.DeleteFunc(x.rec.Changes, func(c Change) bool { return c.Resume })
		x.board.pauses(j)
		var line []byte
		if line, err = (Change{Guard: &h}).MarshalJSON(); err == nil {
			c, err = x.play.Note(line)
		}
	}
	if x.decl.Webhook != "" {
		x.rec.Harms = append(x.rec.Harms, Guarded{Experiment: x.decl.Name, State: x.rec.State, Guard: h,
			Time: time.UnixMilli(now).UTC()})
	}
	return c, err
}

// goOn resumes, if a guard has paused it with a line of the transcript at the next tick.
func (x *served) goOn() error {
	if x.rec.State != Paused || !x.board.watch.held {
		return x.move(Running, Paused)
	}
	if !slices.ContainsFunc(x.rec.Changes, func(c Change) bool { return c.Resume }) {
		x.rec.Changes = append(x.rec.Changes, Change{Resume: true})
		x.todo |= theRecord
	}
	return nil
}

// A Guarded is what a webhook is told when a guard has done something, as JSON.
type Guarded struct {
	Experiment string    `json:"experiment"`
	State      State     `json:"state"` // paused, or running or stopping without the arm
	Guard      Harm      `json:"guard"`
	Time       time.Time `json:"time"`
}

// Guards are an experiment's guards as page, report, API, Prometheus and Replay show them.
type Guards struct {
	// Paused says which arms are past which guards while the experiment is paused by one; empty if it is not.
	Paused string    `json:"paused,omitempty"`
	Says   string    `json:"says"` // what they promise, in words
	Each   []Guarder `json:"each"`
}

// A Guarder is one of them.
type Guarder struct {
	Metric string         `json:"metric"`
	Bound  string         `json:"bound"` // in words
	Side   string         `json:"side"`  // below or above
	At     float64        `json:"at"`
	Risk   float64        `json:"risk"` // as declared
	Arms   []GuardedState `json:"arms"`
}

// A GuardedState is how an arm keeps a bound. The interval is the one that the guard goes by, in the
// metric's units, nil before the first release.
type GuardedState struct {
	Arm      string      `json:"arm"`
	Interval *[2]float64 `json:"interval"`
	State    string      `json:"state"`
}

// What a GuardedState says.
const (
	KeepsGuard   = "keeps it"         // surely
	UnsureGuard  = "not sure yet"     // the bound is in the interval
	RemovedGuard = "removed"          // the arm was surely past it, and is taken off
	PastGuard    = "past, and paused" // and the experiment is paused
	ResumedGuard = "past, and resumed"
)

// Past says that the arm was surely past the bound.
func (g GuardedState) Past() bool { return g.State != KeepsGuard && g.State != UnsureGuard }

// Given is the arm that everybody gets who is not in the experiment, or while a guard has paused it.
func (i *Info) Given() string {
	b := board{queues: i.Arms, watch: i.watch}
	return i.Experiment.Arms[b.given()].Name
}

// Guards are the experiment's guards; nil if it has none.
func (i *Info) Guards() *Guards { return i.watch.guards(&i.Experiment, i.Arms, i.Metrics) }

// Guards is as that of Info.
func (r *Replayed) Guards() *Guards { return r.watch.guards(&r.Experiment, r.Arms, r.Metrics) }

func (w watch) guards(x *Experiment, arms []ArmInfo, metrics [][]float64) *Guards {
	if len(w.of) == 0 {
		return nil
	}
	out := &Guards{Says: saysOfGuards(x)}
	if w.held {
		out.Paused = w.why(x.Arms, arms)
	}
	for _, b := range w.of {
		one := Guarder{Metric: b.Metric, Bound: b.Side + " " + fmt.Sprint(b.Bound), Side: b.Side, At: b.Bound,
			Risk: b.Risk}
		for a, arm := range arms {
			to := GuardedState{Arm: x.Arms[a].Name, State: b.stateOf(a, arm.Off, w.held)}
			if lo, hi, err := b.sums(arms, metrics, a).Interval(b.each); arm.Released > 0 && err == nil {
				to.Interval = &[2]float64{b.lo + float64((b.hi-b.lo)*lo), b.lo + float64((b.hi-b.lo)*hi)}
			}
			one.Arms = append(one.Arms, to)
		}
		out.Each = append(out.Each, one)
	}
	return out
}

func (b *bound) stateOf(arm int, off, held bool) string {
	switch {
	case b.past[arm] && off:
		return RemovedGuard
	case b.past[arm] && (held || !b.said[arm]):
		return PastGuard
	case b.past[arm]:
		return ResumedGuard
	case b.side[arm] == -b.harmful():
		return KeepsGuard
	}
	return UnsureGuard
}

// why says which arms are past which guards, of those that are on.
func (w watch) why(names []decl.Arm, arms []ArmInfo) string {
	var all []string
	for a, arm := range arms {
		h := Harm{Arm: names[a].Name}
		for _, b := range w.of {
			if b.past[a] && !arm.Off {
				h.Metrics = append(h.Metrics, b.Metric)
			}
		}
		if h.Metrics != nil {
			all = append(all, h.String())
		}
	}
	return strings.Join(all, "; ")
}

// saysOfGuards is what the guards promise.
func saysOfGuards(x *Experiment) string {
	risk := 0.0
	for _, g := range x.Guard {
		risk += x.GuardRisk(g) * float64(len(x.Arms))
	}
	text := fmt.Sprintf("Guards go by intervals of their own, which include the noise and stay valid however often "+
		"you look. With probability at most %.3g they ever pause an arm whose mean keeps its bounds: all guards and "+
		"arms together.", risk)
	if c := x.IntervalCondition(); c != "" {
		text += " " + c
	}
	return text
}
