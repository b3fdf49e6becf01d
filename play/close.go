package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/internal/gramline"
)

// Due is when the batch that is out, or with contexts the oldest segment, can be closed, if all its
// decisions have been made, or else after Finish the rest; ok is false if not, or if there is none. It
// depends on counts, on public vectors and on the clock alone.
func (l *Live) Due(now int64) (at int64, ok bool) {
	// a batch that is out stays so while what is ahead of it, or a note, waits for its commit
	if l.failed != nil || l.pending != nil && (l.vectors != nil || l.s.Batch == nil) {
		return 0, false
	}
	if at, ok = l.due(now); !ok {
		at, ok = l.restDue(now)
	}
	return at, ok
}

// due is Due of the batch.
func (l *Live) due(now int64) (at int64, ok bool) {
	batch := l.side.out()
	if batch == nil || l.idle(now) {
		return 0, false
	}
	for _, p := range batch {
		q := &l.s.Arms[p.Arm]
		if l.cfg.Cut > 0 {
			q.tick(now)
		}
		if l.cfg.Drop {
			q.lapse(now, false)
		}
	}
	at = -maxTime
	for _, p := range batch {
		q := &l.s.Arms[p.Arm]
		switch _, settles, ok := l.enough(q); {
		case !p.Release && q.Issued < q.target():
			return 0, false
		case !p.Release:
		case q.ahead > 0:
			at = max(at, now)
		case !ok:
			return 0, false
		default:
			at = max(at, settles)
		}
	}
	return at, true
}

// enough is what the batch that is out takes of a queue, see Queue.enough.
func (l *Live) enough(q *Queue) (k int, settles int64, ok bool) {
	if l.rows != nil {
		return l.rows.enough(q)
	}
	return q.enough(q.Asked)
}

// A Taken is a row of decisions that went into a release.
type Taken struct{ Arm, Start, End int }

// Slots are the rows of decisions that Close would release now, in the order of the batch's plays, of the
// rest by arm; ok is false while it is not due. They stay what they are until it has closed, also over a restart
// from a state in which it was due.
func (l *Live) Slots(now int64) (rows []Taken, ok bool) {
	if at, due := l.Due(now); !due || now < at || l.pending != nil {
		return nil, false
	}
	if _, batch := l.due(now); !batch {
		return l.restRows(), true
	}
	for _, p := range l.side.out() {
		if p.Release {
			q := &l.s.Arms[p.Arm]
			if k, _, _ := l.enough(q); k > 0 {
				rows = append(rows, Taken{p.Arm, q.Head, q.Segments[k-1].End})
			}
		}
	}
	return rows, true
}

// A Sum is what was gathered of a row of decisions whose rewards a Live does not see
// (Config.Gathering): the sum of so many of them, in steps, with the noise that release.Gathered says.
type Sum struct {
	Taken
	Answers int
	Steps   int64
}

// A noisyCurator takes sums that were gathered: release.Gathered is one.
type noisyCurator interface {
	AddNoisy(arm, answers int, sum int64) error
}

// CloseGathered is Close with what was gathered of each of the rows of Slots, in their order. The
// rewards of these decisions are in the sums alone: what was settled counts as decided and as 0.
func (l *Live) CloseGathered(now int64, sums []Sum) (*Commit, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	c, gathers := l.curator.(noisyCurator)
	if !gathers {
		return nil, fmt.Errorf("play: the curator is a %T, must be one of gathered sums", l.curator)
	}
	rows, ok := l.Slots(now)
	if !ok {
		return nil, nil
	}
	if !slices.EqualFunc(rows, sums, func(row Taken, s Sum) bool { return row == s.Taken }) {
		return nil, fmt.Errorf("play: the sums are of %d rows, must be of the %d of the batch", len(sums), len(rows))
	}
	for _, s := range sums {
		if err := c.AddNoisy(s.Arm, s.Answers, s.Steps); err != nil {
			return nil, l.fail(err)
		}
	}
	return l.Close(now)
}

// A Commit is a batch that has closed. Line must become durable together with the state as it is
// now (State), in which the decisions of Taken are gone: in one transaction. After that, and before
// anything of it is told to anybody, Live.Commit. If the transaction fails, throw the Live away and
// restore what is durable.
type Commit struct {
	Line  []byte // of the transcript, with its end of line
	Taken []Taken

	drop  func() // tells the policy of an arm that is off
	note  bool   // the policy is not told of it
	rules []ruleLine
}

// ready says why nothing can be committed now.
func (l *Live) ready() error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.pending != nil:
		return ErrPending
	case l.rested, l.stopped && !l.ending && l.side.out() == nil:
		return ErrStopped
	}
	return nil
}

// fail has all further calls fail with what is wrong with a batch, or with the line of a segment.
func (l *Live) fail(err error) error {
	what := "batch"
	if l.cfg.Contexts != nil {
		what = "line"
	}
	l.failed = fmt.Errorf("play: %s %d: %w", what, l.s.Lines, err)
	return l.failed
}

// Close closes the batch that is out if it is due, and draws the noise of what it releases, and of
// what is released ahead, which may also be without the batch; the result is nil if there is nothing.
// Until the commit decisions and rewards go on, and are of the state that follows.
func (l *Live) Close(now int64) (*Commit, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	at, batch := l.due(now)
	due := batch && now >= at
	var c *Commit
	var err error
	if rows := l.early(now); due || len(rows) > 0 {
		c, err = l.close(due, rows)
	} else if at, rest := l.restDue(now); !batch && rest && now >= at {
		c, err = l.closeRest()
	}
	if err != nil {
		return nil, l.fail(err)
	}
	return c, nil
}

// A row is what a release has of an arm: so many of the oldest segments of its queue, which have what
// was asked for. It stands in the line at a play.
type row struct {
	arm, asked, segments int
	at                   *play
}

// close closes the batch if it is due, and releases these rows ahead.
func (l *Live) close(due bool, early []row) (*Commit, error) {
	c, text := &Commit{note: !due}, line{}
	var rows []row
	if due {
		text = l.side.head()
		for i, p := range l.side.out() {
			q := &l.s.Arms[p.Arm]
			switch k, _, _ := l.enough(q); {
			case !p.Release:
			case q.ahead > 0:
				text.Plays[i].Held, q.Asked = true, 0
			default:
				rows = append(rows, row{arm: p.Arm, asked: q.Asked, segments: k})
				if l.vectors == nil {
					rows[len(rows)-1].at = &text.Plays[i]
				}
			}
		}
	}
	text.Ahead = make([]play, len(early))
	for i, r := range early {
		text.Ahead[i] = play{Arm: r.arm, Rounds: r.asked}
		r.at = &text.Ahead[i]
		rows = append(rows, r)
	}
	all, few := rows, l.few(rows)
	rows = rows[:0]
	for i, r := range all {
		q := &l.s.Arms[r.arm]
		asked := q.Asked
		cells, n, gone, err := l.pull(c, r, few[i])
		if err != nil {
			return nil, err
		}
		if len(cells) > 0 {
			r.at.Cells = cells
		}
		if gone > 0 {
			r.at.Gone = gone
		}
		if i >= len(all)-len(early) { // what was asked for is still to be had
			q.Asked = asked
		}
		if n == 0 && l.rows != nil { // of a joint batch, nothing empty is released
			r.at.Release = false
			continue
		}
		rows = append(rows, r)
	}
	l.line.Reset()
	if err := l.side.release(rows, text); err != nil {
		return nil, err
	}
	text.Release = bytes.TrimSpace(l.line.Bytes())
	if len(rows) > 0 {
		if err := l.releaseFurther(l.slots(rows), &text); err != nil {
			return nil, err
		}
	}
	c.rules = text.Rules
	if !due {
		return c, l.write(c, text)
	}
	return c, l.wait(c, text)
}

// pull gives the curators the row, the oldest segments of an arm: of its decisions n count, and gone do not;
// of cells those that have any, without those that are few.
func (l *Live) pull(c *Commit, r row, few []bool) (cells []int, n, gone int, err error) {
	q := &l.s.Arms[r.arm]
	start, parts := q.Head, []part{{}}
	if few != nil {
		parts = joined(q.parts(r.segments, l.missing, len(few)), few)
	}
	n, sums := q.take(r.segments, l.missing)
	if few == nil {
		parts[0] = part{n, sums}
	}
	if q.Head > start {
		c.Taken = append(c.Taken, Taken{r.arm, start, q.Head})
	}
	gone = q.Head - start - n
	own := len(sums) - len(l.further)
	for cell, p := range parts {
		if p.n == 0 {
			continue
		}
		if few != nil {
			cells = append(cells, cell)
		}
		slot := r.arm*len(parts) + cell
		err = l.side.put(slot, p.n, p.sums[:own])
		for j := 0; j < len(l.further) && err == nil; j++ {
			err = l.further[j].curator.AddSteps(slot, p.n, p.sums[own+j])
		}
		if err != nil {
			return nil, n, gone, err
		}
	}
	return cells, n, gone, nil
}

// wait ends the batch with a line, and waits for the commit.
func (l *Live) wait(c *Commit, text line) error {
	if err := l.write(c, text); err != nil {
		return err
	}
	l.s.Batch = nil
	clear(l.releases)
	for i, p := range l.plan { // of what goes on while the policy has not been asked
		l.before[i] = min(l.before[i], l.s.Arms[p.Arm].Asked)
	}
	return nil
}

// write has a line written, and waits for the commit.
func (l *Live) write(c *Commit, text line) error {
	gram := text.Gram
	text.Gram = nil
	b, err := json.Marshal(text)
	if err != nil {
		return err
	}
	c.Line = append(gramline.Put(b, gram), '\n')
	l.s.Lines++
	l.pending = c
	return nil
}

// Commit hands the release of a batch that is durable to the policy, and has its next batch. The
// state with that batch is to be written before anybody is told of it, or with the next commit:
// restored without it, the policy asks again for the same.
func (l *Live) Commit(c *Commit) error {
	switch {
	case l.failed != nil:
		return l.failed
	case c == nil || c != l.pending:
		return errors.New("play: what is committed is not what Close returned last")
	}
	if l.pending = nil; !c.note {
		l.failed = l.side.learn(c)
	}
	return l.failed
}
