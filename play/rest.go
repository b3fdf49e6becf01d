package play

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/policy"
)

// Finish ends the decisions: there is none from now on, and Arm and Offer are −1. Windows stay what they
// are. A batch that has all its decisions is closed as before when it is due, and the policy is given it.
// When none can be closed any more, or none that releases anything, and all windows have passed, Close
// releases the rest: all that is in the queues, those of arms that were taken off too, once. The policy is not given it, since a cut batch
// is not what it asked for; the line is evidence to everybody else. With contexts there is no rest: a
// segment ends where the policy says, and what follows the last of them is never released. Finish may be
// called again, and is to be after a Restore.
//
// The rest costs a unit nothing more. Each decision is in one release: Close takes a batch's rows out of
// the queues, the rest is what no batch has taken, and nothing follows it. So each reward is in one slot,
// of fresh noise, and slots compose in parallel. When it comes, and of which rows, follows from counts
// and the clock alone: no decision is added, whether a batch has all its decisions is a matter of counts,
// and the time is the last of the windows. A restart finds the same rows, also where they have been asked for.
func (l *Live) Finish() {
	l.ending = true
	for a := range l.s.Arms {
		if q := &l.s.Arms[a]; l.vectors == nil && l.rows == nil && len(q.Segments) > 0 && q.last().End == 0 {
			q.last().End = q.Issued
		}
	}
}

// Left is how many decisions were not released. They can be, all or with contexts those of whole
// segments, from settled on; ok is false if none can.
func (l *Live) Left() (n int, settled int64, ok bool) {
	for a := range l.s.Arms {
		q := &l.s.Arms[a]
		n += q.Issued - q.Head
		for i := range q.Segments {
			if s := &q.Segments[i]; l.vectors == nil || s.whole(q.Issued) {
				if settled = max(settled, s.Settles); !ok {
					settled, ok = s.Settles, true
				}
			}
		}
	}
	return n, settled, ok
}

// idle says that after Finish, when all windows have passed, the batch that is out releases nothing. There
// may be as many of these as there are decisions.
func (l *Live) idle(now int64) bool {
	if !l.ending || l.vectors != nil || slices.ContainsFunc(l.s.Batch, func(p policy.Play) bool { return p.Release }) {
		return false
	}
	_, settled, ok := l.Left()
	return ok && now >= settled
}

// restDue is when the rest can be released, if no batch can be closed.
func (l *Live) restDue(now int64) (at int64, ok bool) {
	if !l.ending || l.vectors != nil {
		return 0, false
	}
	if l.cfg.Drop {
		for a := range l.s.Arms {
			l.s.Arms[a].lapse(now, true)
		}
	}
	_, at, ok = l.Left()
	return at, ok
}

// restRows are the rows of the rest in which a decision counts.
func (l *Live) restRows() (rows []Taken) {
	for a, q := range l.s.Arms {
		if q.Issued-q.Head > q.lost {
			rows = append(rows, Taken{a, q.Head, q.Issued})
		}
	}
	return rows
}

// closeRest releases the rest.
func (l *Live) closeRest() (*Commit, error) {
	c, text := &Commit{note: true}, line{}
	var all, rows []row
	text.Rest = make([]play, 0, len(l.s.Arms)) // rows point into it
	for a := range l.s.Arms {
		if k := len(l.s.Arms[a].Segments); k > 0 {
			all = append(all, row{arm: a, segments: k})
		}
	}
	few := l.few(all)
	for i, r := range all {
		cells, n, gone, err := l.pull(c, r, few[i])
		if err != nil {
			return nil, err
		}
		text.Rest = append(text.Rest, play{Arm: r.arm, Rounds: n, Gone: gone, Cells: cells})
		if n > 0 {
			rows = append(rows, row{arm: r.arm, at: &text.Rest[len(text.Rest)-1]})
		}
	}
	l.line.Reset()
	if len(rows) > 0 { // nothing empty is released
		if _, err := l.curator.Release(l.slots(rows)); err != nil {
			return nil, err
		}
		text.Release = bytes.Clone(bytes.TrimSpace(l.line.Bytes()))
		if err := l.releaseFurther(l.slots(rows), &text); err != nil {
			return nil, err
		}
	}
	l.rested = true
	return c, l.wait(c, text)
}

// addRest is the line of the rest.
func (l arms) addRest(p *past, in line) error {
	wrong := in.Off != nil || in.Add != nil || in.Gone != 0 || len(in.Plays) > 0
	var rows []row
	last := -1
	for i, r := range in.Rest {
		if r.Arm <= last || r.Arm >= len(p.heads) || r.Release || min(r.Rounds, r.Gone) < 0 ||
			max(r.Rounds, r.Gone) == 0 || r.Gone > 0 && l.cfg.Take == Exactly ||
			l.cfg.Cells.isCells(r.Cells, r.Rounds > 0) != nil {
			wrong = true
			break
		}
		if last = r.Arm; r.Rounds > 0 {
			rows = append(rows, row{arm: r.Arm, at: &in.Rest[i]})
		}
	}
	if l.rows != nil { // a whole row is released as one
		start, n := int64(0), int64(0)
		for _, h := range p.heads {
			start += int64(h)
		}
		for _, r := range in.Rest {
			n += int64(plus(r.Rounds, max(0, r.Gone)))
		}
		wrong = wrong || n >= l.rows.after(start)-start
	}
	if wrong || len(in.Rest) == 0 {
		return fmt.Errorf("%w: this cannot be what was left", ErrState)
	}
	released, err := l.addRelease(p, rows, in)
	if err != nil {
		return err
	}
	for i, r := range rows {
		if n := r.at.Rounds; released.N(i) != n {
			return fmt.Errorf("%w: it releases %d rewards of arm %d, and says %d", ErrState, released.N(i), r.arm, n)
		}
	}
	for _, r := range in.Rest {
		p.heads[r.Arm] = plus(p.heads[r.Arm], plus(r.Rounds, r.Gone))
	}
	p.rested = true
	return nil
}
