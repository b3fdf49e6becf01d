package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/gramline"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A line is what is read of an object of a transcript, whatever its kind: the one reader of lines for
// all that is shown, booked and listed.
type line struct {
	Live, Off *int
	Add       *int // an arm that is added, of which Change says more
	From      int  // of an A/B test, after how many decisions it begins
	Plays     []struct {
		planned
		Held  bool  // its release was ahead, in a line above
		Cells []int // that are released of it
		Gone  int   // decisions that count nowhere
	}
	Ahead []struct { // what is released ahead of a batch
		planned
		Cells []int
		Gone  int
	}
	Rest []struct {
		Arm, Rounds, Gone int
		Cells             []int
	}
	Gone int  // of old programs, decisions of the arm that is off
	N    *int // the decisions of a segment with contexts
	// as the ledger writes them: the rewards of the arms that are released, or of a segment
	Release json.RawMessage
	Metrics []json.RawMessage
	Rules   []struct {
		Weights, Squares int64
		Release          json.RawMessage
	}
	Change, Cohort json.RawMessage
	End            *string
}

// readLine reads all of an object but the sums of products, which are nearly all of a line with contexts.
func readLine(object []byte) (in line, err error) {
	rest, _, _ := gramline.Cut(object)
	err = json.Unmarshal(rest, &in)
	return in, err
}

// further are the releases beside that of the rewards: of metrics, or of rules.
func (in *line) further() []json.RawMessage {
	out := slices.Clip(in.Metrics)
	for _, r := range in.Rules {
		out = append(out, r.Release)
	}
	return out
}

// book books a line's releases on a ledger again.
func (in *line) book(ledger *privacy.Ledger) (err error) {
	switch {
	case len(in.Release) == 0:
		return nil
	case in.N != nil:
		_, err = ledger.RestoreVector(in.Release)
	default:
		_, err = ledger.Restore(in.Release)
	}
	for _, text := range in.further() {
		if err == nil {
			_, err = ledger.Restore(text)
		}
	}
	return err
}

// A board is what everybody may see of an experiment's decisions and of what was released of them.
type board struct {
	queues  []ArmInfo     // by arm; of contexts one, whose sum is a vector, and is not here
	names   []string      // of what is released beside rewards: metrics, or rules
	metrics [][]float64   // by metric and arm
	rules   []play.Earned // of contexts
	watch   watch         // of guards
	cells   []CellInfo    // of which these are the totals
	first   int64         // when the first release was, by the clock of the service; 0: there is none
	gone    []int         // by arm, the decisions of joint batches that were released, or count nowhere
	joining []joining     // arms that are to begin
}

// A joining is an arm that begins when so many decisions are gone.
type joining struct{ arm, from int }

func newBoard(x *Experiment) (b board, err error) {
	b.queues, b.cells = make([]ArmInfo, max(1, x.FirstArms())), newCells(x)
	for _, m := range x.Metrics {
		b.names = append(b.names, m.Name)
		b.metrics = append(b.metrics, make([]float64, x.FirstArms()))
	}
	if x.Contextual == nil {
		b.watch, err = newWatch(x)
		return b, err
	}
	rules, err := x.PlayRules()
	lo, hi := x.Range()
	for _, r := range rules {
		b.names = append(b.names, r.Name)
		b.rules = append(b.rules, play.Earned{Name: r.Name, Clip: r.Clip, Lo: lo, Hi: hi})
	}
	return b, err
}

// grow has one arm more.
func (b *board) grow(arm decl.Arm) {
	b.queues = append(slices.Clip(b.queues), ArmInfo{})
	for m := range b.metrics {
		b.metrics[m] = append(b.metrics[m], 0)
	}
	for c := range b.cells {
		b.cells[c].grow()
	}
	b.watch.arms = append(slices.Clip(b.watch.arms), arm)
	for i := range b.watch.of {
		g := &b.watch.of[i]
		g.side, g.past, g.said = append(g.side, 0), append(g.past, false), append(g.said, false)
	}
}

// grows has the arm that a line adds, if it does not have it yet.
func (b *board) grows(in *line) error {
	if in.Add == nil || *in.Add < len(b.queues) {
		return nil
	}
	var c Change
	if err := json.Unmarshal(in.Change, &c); err != nil {
		return err
	}
	if *in.Add != len(b.queues) || len(c.Add) != 1 {
		return errors.New("a line of the transcript adds an arm, and does not say which")
	}
	b.grow(c.Add[0].arm())
	return nil
}

// tell says it; a mapper is of contexts alone.
func (b *board) tell(out *Info, vectors *feature.Mapper) {
	if vectors != nil {
		q := b.queues[0]
		out.Contextual = &ContextualInfo{Decisions: q.Decisions, Released: q.Released, Releases: q.Releases,
			Dim: vectors.Dim(), Norm: vectors.Norm(), Noise: q.Noise, Rules: slices.Clone(b.rules)}
		return
	}
	out.Arms, out.Cells = slices.Clone(b.queues), cloneCells(b.cells)
	for _, sums := range b.metrics {
		out.Metrics = append(out.Metrics, slices.Clone(sums))
	}
}

// show adds what a line of this time has released.
func (b *board) show(in *line, at time.Time) error {
	released, err := b.released(in)
	if err != nil {
		return err
	}
	if len(released) > 0 && b.first == 0 {
		b.first = at.UnixMilli()
	}
	for _, r := range released {
		if r.cell >= 0 {
			b.cells[r.cell].add(r)
		}
		switch further := r.further - 1; {
		case further < 0:
			q := &b.queues[r.Arm]
			q.Released, q.Releases = q.Released+r.N, q.Releases+1
			q.Sum, q.Noise = q.Sum+r.value, r.Mechanism
		case len(b.metrics) > 0:
			b.metrics[further][r.Arm] += r.value
		default:
			to, w := &b.rules[further], in.Rules[further]
			to.N, to.Releases = to.N+r.N, to.Releases+1
			to.Sum, to.Noise = to.Sum+r.value, r.Mechanism
			to.Weights += float64(w.Weights) * release.ExactStep
			to.Squares += float64(w.Squares) * (release.ExactStep * release.ExactStep)
		}
	}
	if err := b.grows(in); err != nil {
		return err
	}
	b.joins(in, released)
	if in.Off != nil && *in.Off >= 0 && *in.Off < len(b.queues) {
		b.queues[*in.Off].Off = true
	}
	for _, r := range released {
		if r.further == 0 && !b.queues[r.Arm].Off {
			if err := b.judge(r.Arm); err != nil {
				return err
			}
		}
	}
	return b.changed(in.Change, at)
}

// joins notes what there was when arms of an A/B test begin: rows are whole lines, so it is known between two.
func (b *board) joins(in *line, released []amount) {
	b.gone = append(b.gone, make([]int, len(b.queues)-len(b.gone))...)
	for _, r := range released {
		if r.further == 0 {
			b.gone[r.Arm] += r.N
		}
	}
	for _, p := range in.Plays {
		b.gone[p.Arm] += p.Gone
	}
	if in.From > 0 {
		b.joining = append(b.joining, joining{*in.Add, in.From})
	}
	all := 0
	for _, n := range b.gone {
		all += n
	}
	for len(b.joining) > 0 && all >= b.joining[0].from {
		arm := b.joining[0].arm
		b.joining = b.joining[1:]
		b.queues[arm].Joined = joinedTo(b.queues, b.metrics)
		for a, n := range b.gone {
			b.queues[arm].Joined.Arms[a].Decisions = n
		}
		for c := range b.cells {
			cell := &b.cells[c]
			cell.Arms[arm].Joined = joinedTo(cell.Arms, cell.Metrics)
		}
	}
}

func joinedTo(arms []ArmInfo, metrics [][]float64) *Joined {
	out := &Joined{Arms: slices.Clone(arms)}
	for a := range out.Arms {
		out.Arms[a].Joined = nil
	}
	for _, sums := range metrics {
		out.Metrics = append(out.Metrics, slices.Clone(sums))
	}
	return out
}

// An amount is a sum that was released.
type amount struct {
	Booked
	further int     // of its metric or rule, from 1 on; 0: of the rewards
	cell    int     // −1 where there are none
	value   float64 // if that is a number
}

var errReleases = errors.New("a line of the transcript does not release what it says")

// released are the sums that a line has released: of the rewards of each arm, then of each metric or rule.
func (b *board) released(in *line) (out []amount, err error) {
	var places []place
	add := func(arm int, cells []int) {
		if b.cells == nil {
			cells = []int{-1}
		}
		for _, c := range cells {
			places = append(places, place{arm, c})
		}
	}
	for _, p := range in.Plays {
		if p.Release && !p.Held {
			add(p.Arm, p.Cells)
		}
	}
	for _, p := range in.Ahead {
		add(p.Arm, p.Cells)
	}
	for _, r := range in.Rest {
		if r.Rounds > 0 {
			add(r.Arm, r.Cells)
		}
	}
	switch {
	case len(in.Release) == 0 && len(places) == 0:
		return nil, nil
	case len(in.further()) != len(b.names), slices.ContainsFunc(places, func(p place) bool {
		return p.arm < 0 || p.arm >= len(b.queues) || p.cell >= len(b.cells) || (p.cell < 0) != (b.cells == nil)
	}):
		return nil, errReleases
	case in.N != nil:
		places = []place{{0, -1}}
		out, err = vectorOf(in.Release, *in.N)
	default:
		out, err = sumsOf(in.Release, places, 0)
	}
	for i, text := range in.further() {
		if err != nil {
			return nil, err
		}
		var more []amount
		more, err = sumsOf(text, places, i+1)
		out = append(out, more...)
	}
	return out, err
}

// A place is whose a sum is: an arm's, or that of a cell of it.
type place struct{ arm, cell int }

// vectorOf reads a release of so many rewards by their vectors.
func vectorOf(text []byte, n int) ([]amount, error) {
	var in struct {
		Slot      int
		Mechanism json.RawMessage
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	m, err := privacy.UnmarshalMechanism(in.Mechanism)
	return []amount{{Booked: Booked{Slot: in.Slot, N: n, Mechanism: m}, cell: -1}}, err
}

// sumsOf reads a release of a sum of each of these places.
func sumsOf(text []byte, places []place, further int) (out []amount, err error) {
	var in struct {
		Slots, N  []int
		Sum       []float64
		Mechanism json.RawMessage
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	m, err := privacy.UnmarshalMechanism(in.Mechanism)
	if err != nil {
		return nil, err
	}
	if len(in.Slots) != len(places) || len(in.N) != len(places) || len(in.Sum) != len(places) {
		return nil, errReleases
	}
	for i, p := range places {
		b := Booked{Arm: p.arm, Slot: in.Slots[i], N: in.N[i], Mechanism: m}
		out = append(out, amount{b, further, p.cell, in.Sum[i]})
	}
	return out, nil
}

// batch is what everybody may read in a line.
func (b *board) batch(e *entry) (Batch, error) {
	out := Batch{Closed: e.at, Off: -1, Change: e.change, Cohort: e.cohort, Rest: e.Rest != nil}
	if e.Off != nil {
		out.Off = *e.Off
	}
	for _, p := range e.Plays {
		out.Plays = append(out.Plays, Played{p.Arm, p.Rounds, p.Release})
	}
	for _, r := range e.Rest {
		out.Plays = append(out.Plays, Played{r.Arm, r.Rounds, r.Rounds > 0})
	}
	if e.N != nil {
		out.Plays = []Played{{Rounds: *e.N, Released: true}}
	}
	released, err := b.released(&e.line)
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrTranscript, err)
	}
	for _, r := range released {
		if r.further > 0 {
			r.Metric = b.names[r.further-1]
		} else if e.N != nil {
			r.value = math.NaN()
		}
		if out.Sums = append(out.Sums, r.value); r.cell >= 0 {
			out.Cells = append(out.Cells, b.cells[r.cell].Name)
		}
		out.Released = append(out.Released, r.Booked)
	}
	return out, nil
}
