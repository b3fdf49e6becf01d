package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

// keep keeps an assignment, which is written with the next commit.
func (x *served) keep(t tag, u assignment) {
	x.units[t] = u
	x.fresh = x.appendUnit(x.fresh, t, u)
}

func (x *served) appendUnit(b []byte, t tag, u assignment) []byte {
	v, ok := x.events.of[t]
	return x.form().append(b, t, u, x.epochs[u.epoch], v, ok)
}

// timed says whether the time of an assignment is kept: always, but where the experiment is of an earlier program.
func (x *served) timed() bool { return x.rec.Timed || len(x.listens) > 0 }

// form is how units are stored.
func (x *served) form() unitForm {
	f := unitForm{timed: x.timed(), events: x.decl.Contextual != nil}
	if f.events {
		f.dim, f.rules = x.events.mapper.Dim(), len(x.decl.Contextual.Rules)
	}
	return f
}

// settle takes the rewards of a job, and notes in touched which segments they are in.
func (x *served) settle(j *job, touched map[[2]int][]int) error {
	for _, r := range j.reports {
		out := &j.results[r.result]
		if r.what == rewarded { // whichever door it came through
			if out.Err = x.inTheOpen(); out.Err != nil {
				continue
			}
		}
		if r.event != nil && !x.decided(&r, j.at) {
			out.Status = Void
			continue
		}
		if x.play == nil {
			out.Status = Void
			if j.at >= r.deadline || r.what != rewarded && j.at >= r.by {
				out.Status = Late
			}
			continue
		}
		if r.what != rewarded && r.by != 0 {
			var err error
			if out.Status, err = x.activate(r, j.at); err != nil {
				return err
			}
			continue
		}
		if r.by != 0 {
			if out.Status = x.activated(&r.ticket, j.at); out.Status != Accepted {
				continue
			}
		}
		if x.gathering.has(r.arm, r.number) { // what is asked for does not change any more
			out.Status = Late
			continue
		}
		number := int(min(r.number, math.MaxInt)) // no decision has a number that an int has not
		s, _ := x.play.Segment(r.arm, number)
		had := s.Came.Has(number-s.Start) || s.Gone.Has(number-s.Start) || shut(s, number-s.Start)
		code := kindsSaid(len(s.Cells)) * (number - s.Start)
		k := play.Ticket{Arm: r.arm, Number: number, Deadline: r.deadline, Epoch: x.known[r.epoch]}
		var got play.Status
		var err error
		if r.what == notShown {
			code, had = code+1, s.Gone.Has(number-s.Start)
			got, err = x.play.Withdraw(k, j.at)
		} else {
			got, err = x.play.Add(k, x.nameOf(k.Arm, k.Number, r.id), r.reward, r.metrics, j.at)
			if x.aggregates && got == play.Accepted { // what counts nowhere writes nothing
				x.reported[numbered{k.Arm, k.Number}] = struct{}{}
			}
		}
		if err != nil {
			return err
		}
		out.Status = status(got)
		if got == play.Accepted { // the same work whether it came before or not
			at := [2]int{r.arm, s.Start}
			touched[at] = append(touched[at], code)
			if had {
				touched[at] = touched[at][:len(touched[at])-1]
			} else if r.what == hidden {
				x.came = append(x.came, store.Hidden{Arm: r.arm, Number: number, Data: r.row})
			}
		}
	}
	return nil
}

// maxParts is how many parts of redeemed decisions a segment has before they are made one.
const maxParts = 64

// collect is all that has to be written of the experiment, after it has taken rewards and, in a
// sweep, handed out what was released and closed what is due. A release that came with whatever is
// written first would be earlier where a reward came. ok is false if there is nothing.
func (x *served) collect(jobs []*job, now int64, sweep bool) (w store.Write, ok bool, err error) {
	w.ID = x.id
	touched := map[[2]int][]int{}
	for _, j := range jobs { // in the order in which they came, so that it is the same in whichever commits they are
		for _, v := range j.exposures {
			x.expose(v, j.at)
		}
		if err := x.settle(j, touched); err != nil {
			return w, false, err
		}
	}
	ticked := x.ticked
	if sweep && x.rec.State.plays() {
		if err := x.onTick(&w, now); err != nil {
			return w, false, err
		}
	}
	if x.ticked != ticked {
		x.leaseOnTick(x.ticked * x.tick)
	}
	for at, codes := range x.celled {
		touched[at] = append(touched[at], codes...)
	}
	x.celled = nil
	if x.todo.has(theQueues) && x.play != nil {
		x.mark(&w)
		x.events.write(&w, x.play)
	}
	marked := w.Segments
	for at, numbers := range touched {
		if x.play == nil {
			break
		}
		s, there := x.play.Segment(at[0], at[1])
		if !there || s.Start != at[1] { // it has just been released
			continue
		}
		if row := x.segmentOf(at[0], s); !slices.Contains(marked, row) {
			w.Segments = append(w.Segments, row)
		}
		w.Parts = append(w.Parts, x.part(at, numbers))
	}
	if x.play != nil {
		w.Totals = x.totals()
	}
	clear(x.reported)
	if x.todo.has(theRecord) {
		data, err := x.data()
		if err != nil {
			return w, false, err
		}
		w.Record = &store.Record{ID: x.id, Name: x.decl.Name, Data: data}
	}
	if x.todo.has(theUnits) {
		x.rewrite()
	}
	if len(x.fresh) > 0 {
		w.Units, x.fresh = x.fresh, nil
	}
	w.Number = x.lines
	if w.Lines = x.link(); len(w.Lines) > 0 || x.todo.has(thePlan) && x.play != nil {
		w.Plan = x.plan()
	}
	if x.play != nil && !x.todo.has(dropSums) {
		w.Reports = x.came
	}
	x.came = nil
	w.DropSums, w.DropUnits = x.todo.has(dropSums), x.todo.has(dropUnits)
	ok = w.Record != nil || w.Plan != nil || len(w.Arms)+len(w.Segments)+len(w.Totals)+len(w.Units)+len(w.Lines) > 0 ||
		w.DropSums || w.DropUnits || len(touched) > 0
	x.todo = 0
	return w, ok, nil
}

// enter notes the cell of a decision that was made, which is written with it.
func (x *served) enter(arm, number, cell int) {
	s, _ := x.play.Segment(arm, number)
	if at := [2]int{arm, s.Start}; s.Cells != nil {
		if x.celled == nil {
			x.celled = map[[2]int][]int{}
		}
		kinds := kindsSaid(len(s.Cells))
		x.celled[at] = append(x.celled[at], kinds*(number-s.Start)+kindsSaid(cell))
	}
}

// part is the decisions that a segment's rewards came for in this commit, and the cells of new ones.
func (x *served) part(at [2]int, numbers []int) store.Part {
	x.parts[at]++
	p := store.Part{Arm: at[0], Start: at[1], Number: x.parts[at]}
	if p.Number > maxParts {
		s, _ := x.play.Segment(at[0], at[1])
		p.Number, p.Redeemed = 0, words(said(s))
		x.parts[at] = 0
		return p
	}
	slices.Sort(numbers)
	p.Redeemed = gaps(numbers)
	return p
}

// mark adds the arms and segments that decisions have changed.
func (x *served) mark(w *store.Write) {
	w.Hours = x.hours.write()
	for a := range x.written {
		was := &x.written[a]
		q := x.play.Queue(a, max(was.Issued-1, 0))
		arm := store.Arm{Arm: a, Head: q.Head, Issued: q.Issued, Asked: q.Asked, Off: q.Off, Runs: q.Runs}
		if arm.Head != was.Head || arm.Issued != was.Issued || arm.Asked != was.Asked ||
			arm.Off != was.Off || len(arm.Runs) != len(was.Runs) {
			w.Arms = append(w.Arms, arm)
			was.Arm = arm
		}
		for _, s := range q.Segments {
			row := x.segmentOf(a, s)
			bare := row
			bare.Sum, bare.More = 0, "" // which is written with its rewards
			if bare != was.tail {
				w.Segments = append(w.Segments, row)
			}
		}
		if n := len(q.Segments); n > 0 {
			was.tail = x.segmentOf(a, q.Segments[n-1])
			was.tail.Sum, was.tail.More = 0, ""
		}
	}
}

func (x *served) segmentOf(arm int, s play.Segment) store.Segment {
	return store.Segment{Arm: arm, Start: s.Start, End: s.End, Cut: s.Cut, Settles: s.Settles, Sum: s.Sum,
		More: sumsText(s.More, x.decl.Contextual != nil)}
}

type planned struct {
	Arm     int  `json:"arm"`
	Rounds  int  `json:"rounds"`
	Release bool `json:"release,omitempty"`
}

// A batchOut is the batch that is out, without plays if there is none, and the hash of the last line of
// the transcript: one that was cut off, or added, is missed when it is read again. Kept is the
// curator's state after that line, where its noise outlives a release: it is secret, is written with
// the line that shows it first, and gone when the play has ended.
type batchOut struct {
	Plays []planned `json:"plays,omitempty"`
	Tip   string    `json:"tip"`
	Kept  []byte    `json:"kept,omitempty"`
}

func (x *served) plan() []byte {
	out := batchOut{Tip: x.tip}
	if x.play != nil {
		for _, p := range x.play.Out() {
			out.Plays = append(out.Plays, planned(p))
		}
		out.Kept = x.play.Kept()
	}
	b, _ := json.Marshal(out) // of numbers and text
	return b
}

func readPlan(data []byte) (in batchOut, err error) {
	if len(data) == 0 {
		return in, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("the batch that is out: %w", err)
	}
	return in, nil
}
